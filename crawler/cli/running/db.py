"""recrawl db: the schema, consistency checks, backups and SQL access."""

from pathlib import Path
from typing import Annotated

import typer

from crawler.cli.lazy import maintenance, sql_output
from crawler.cli.options import Json, Top, argument, flag, option
from crawler.cli.output import print_json, print_outcome, remark, say
from crawler.cli.session import DONE, PROBLEM, run_on_database, settings
from crawler.errors import CrawlerError
from crawler.format.values import format_bytes, format_count

app = typer.Typer(no_args_is_help=True, help="Maintain and query the database.")
Write = Annotated[bool, flag("--write", "Allow writes. Default: transactions are read-only.")]


@app.command()
def upgrade(
    partitions: Annotated[
        int | None,
        option(
            "N",
            "For a new database: the number of partitions of each table of pages. Default: 4. Use 16 for 10^7 pages.",
            "--partitions",
            min=1,
            max=256,
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Upgrade the database to the current schema. Does nothing if it is up to date.

    Examples:

        recrawl db upgrade
        RECRAWL_DATABASE_URL=postgresql://me@db.example.com/crawl recrawl db upgrade --partitions 16
    """
    before = maintenance.upgrade_database(settings(), partitions=partitions)
    current = maintenance.SchemaState.CURRENT
    message = "The database schema is up to date" + ("" if before is current else f" (it was {before.value})")
    print_outcome({"before": before, "after": current}, message, as_json=as_json)


@app.command()
def check(as_json: Json = False) -> int:
    """Check the consistency of the database: cash (docs/importance.md), page states, versions and changes.

    Exit code 1 if an inconsistency is found.

    Examples:

        recrawl db check
        recrawl db check --json
    """
    maintenance.require_database(settings())
    domains, findings = run_on_database(lambda db, _: maintenance.check_database(db))
    lines = [f"{finding.domain or 'all'}: {finding.text}" for finding in findings]
    message = "\n".join(lines) or f"No inconsistency found in {format_count(domains, 'domain')}"
    document = {"is_consistent": not findings, "domains": domains, "findings": findings}
    print_outcome(document, message, as_json=as_json)
    return PROBLEM if findings else DONE


@app.command()
def dump(
    file: Annotated[Path, argument("FILE", "The file to write. An existing file is replaced.")], as_json: Json = False
) -> None:
    """Back up the whole database to one compressed file. Crawling can continue meanwhile.

    The format is that of `pg_dump --format=custom`, which pg_restore can also read. RECRAWL_DATABASE_URL or
    RECRAWL_HOME selects the database. The command fails if there is none yet.

    Examples:

        recrawl db dump crawl.dump
    """
    size = maintenance.dump_database(settings(), file)
    print_outcome({"file": str(file), "bytes": size}, f"{file}: {format_bytes(size)}", as_json=as_json)


@app.command()
def restore(
    file: Annotated[Path, argument("FILE", "A dump made by recrawl db dump or pg_dump.")], as_json: Json = False
) -> None:
    """Restore a dump into an empty database or RECRAWL_HOME, and upgrade its schema if needed.

    The restore is atomic. Crawling continues from the dump: pages are revisited when they are due.

    Examples:

        RECRAWL_HOME=/srv/crawl recrawl db restore crawl.dump
        RECRAWL_DATABASE_URL=postgresql://me@db.example.com/new recrawl db restore crawl.dump
    """
    count = maintenance.restore_database(settings(), file)
    message = f"{format_count(count, 'domain')} restored from the dump"
    print_outcome({"file": str(file), "domains": count}, message, as_json=as_json)
    if not as_json:
        remark("Make sure that no other recrawl crawls the same domains")


@app.command()
def url(as_json: Json = False) -> int:
    """Print the database URL, including the password, for any Postgres client.

    Examples:

        psql "$(recrawl db url)"
        recrawl db url --json
    """
    database_url = maintenance.find_database_url(settings())
    if database_url is None and not as_json:
        raise CrawlerError("the embedded Postgres is not running: start it with recrawl up, or use recrawl db shell")
    print_outcome({"url": database_url}, database_url or "", as_json=as_json)
    return DONE if database_url is not None else PROBLEM


@app.command()
def shell(write: Write = False) -> int:
    """Open psql on the database. The embedded Postgres is started if needed.

    Examples:

        recrawl db shell
        recrawl db shell < questions.sql
    """
    return maintenance.open_shell(settings(), may_write=write)


@app.command()
def sql(
    statement: Annotated[str, argument("SQL", "One SQL statement; - reads it from stdin.")],
    write: Write = False,
    limit: Top = 100,
    csv: Annotated[
        bool, flag("--csv", "Print all rows as CSV. Text that a spreadsheet would run as a formula is escaped.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Run one SQL statement and print its rows. docs/sql.md lists the views that you can query.

    --limit applies to the table only; --csv and --json print all rows.

    Examples:

        recrawl db sql "SELECT domain, pages_fetched, freshness FROM report_domain"
        recrawl db sql "SELECT url, title, content FROM page_text WHERE domain = 'docs.example.com'" --csv > pages.csv
    """
    sql_output.run_sql(statement, may_write=write, top=limit, as_csv=csv, as_json=as_json)


@app.command()
def grant(
    name: Annotated[str, argument("NAME", "The role's name: lowercase letters, digits and _.")], as_json: Json = False
) -> None:
    """Allow a Postgres role to read the views, and nothing else.

    If the role does not exist, it is created with a password, which is shown only once.

    Examples:

        recrawl db grant analyst
    """
    role, address = run_on_database(lambda db, _: maintenance.grant_reading(db, name))
    if as_json:
        print_json({"role": role.name, "views": role.views, "password": role.password, "url": address})
        return
    say(f"{role.name} may read {format_count(len(role.views), 'view')}: {', '.join(role.views)}")
    if address is not None:
        say(address)
        remark("This password is not shown again. After an upgrade, run recrawl db grant again for new views")
    else:
        remark("The role already existed: its password is unchanged")


@app.command()
def revoke(
    name: Annotated[str, argument("NAME", "A role to which `recrawl db grant` gave access.")], as_json: Json = False
) -> None:
    """Revoke the access given by `recrawl db grant`.

    The role is dropped if `recrawl db grant` created it and it has no other privileges.

    Examples:

        recrawl db revoke analyst
    """
    is_gone = run_on_database(lambda db, _: maintenance.revoke_reading(db, name))
    print_outcome({"role": name, "removed": is_gone}, f"{name} can no longer read the views", as_json=as_json)
    if is_gone and not as_json:
        remark("The role was dropped")
    elif not as_json:
        remark(f"The role still exists because it may have other uses. To drop it: DROP ROLE {name}")
