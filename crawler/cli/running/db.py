"""recrawl db: the schema, what must always hold, and the way in for SQL."""

from pathlib import Path
from typing import Annotated

import typer

from crawler.cli.lazy import maintenance, sql_output
from crawler.cli.options import Json, Top, declare_argument, declare_flag, declare_option
from crawler.cli.output import print_json, print_outcome, remark, say
from crawler.cli.session import DONE, PROBLEM, run_on_database, settings
from crawler.errors import CrawlerError
from crawler.format.values import format_bytes, format_count

app = typer.Typer(no_args_is_help=True, help="Look after the database, and into it.")
NOT_RUNNING = "the embedded Postgres is not running: recrawl up keeps it running; recrawl db shell starts it meanwhile"
Write = Annotated[bool, declare_flag("--write", "Let it write; else every transaction is read-only.")]


@app.command()
def upgrade(
    partitions: Annotated[
        int | None,
        declare_option(
            "N",
            "For a new database: how many partitions each table of pages has. 4 by default, 16 for 10^7 pages.",
            "--partitions",
            min=1,
            max=256,
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Bring the database to the newest schema; does nothing where it has it.

    Examples:

        recrawl db upgrade
        RECRAWL_DATABASE_URL=postgresql://me@db.example.com/crawl recrawl db upgrade --partitions 16
    """
    before = maintenance.upgrade_database(settings(), partitions=partitions)
    current = maintenance.SchemaState.CURRENT
    message = "The database has the newest schema" + ("" if before is current else f" (it was {before.value})")
    print_outcome({"before": before, "after": current}, message, as_json=as_json)


@app.command()
def check(as_json: Json = False) -> int:
    """Check what must always hold: coins, states, versions, changes. Exit code 1 where something does not.

    Examples:

        recrawl db check
        recrawl db check --json
    """
    maintenance.require_database(settings())
    domains, findings = run_on_database(lambda db, _: maintenance.check_database(db))
    lines = [f"{finding.domain or 'all'}: {finding.text}" for finding in findings]
    print_outcome(
        {"holds": not findings, "domains": domains, "findings": findings},
        "\n".join(lines) or f"Everything holds in {format_count(domains, 'domain')}",
        as_json=as_json,
    )
    return PROBLEM if findings else DONE


@app.command()
def dump(
    file: Annotated[Path, declare_argument("FILE", "The dump; one that is there is replaced.")],
    as_json: Json = False,
) -> None:
    """Write the whole database into one compressed file, as it is at this instant. Crawling goes on meanwhile.

    It is Postgres's own format (pg_dump --format=custom), so that pg_restore reads it, too. Where no database was ever
    made there is nothing to dump, and an error: RECRAWL_DATABASE_URL or RECRAWL_HOME says where it is.

    Examples:

        recrawl db dump crawl.dump
    """
    size = maintenance.dump_database(settings(), file)
    print_outcome({"file": str(file), "bytes": size}, f"{file}: {format_bytes(size)}", as_json=as_json)


@app.command()
def restore(
    file: Annotated[Path, declare_argument("FILE", "A dump that db dump or pg_dump has made.")],
    as_json: Json = False,
) -> None:
    """Restore a dump into a home, or a database, that holds nothing yet; an older schema is brought up to date.

    Crawling goes on from there: nothing is asked for again before it falls due. All of it is restored or nothing.

    Examples:

        RECRAWL_HOME=/srv/crawl recrawl db restore crawl.dump
        RECRAWL_DATABASE_URL=postgresql://me@db.example.com/new recrawl db restore crawl.dump
    """
    count = maintenance.restore_database(settings(), file)
    message = f"{format_count(count, 'domain')} restored, as of the dump"
    print_outcome({"file": str(file), "domains": count}, message, as_json=as_json)
    if not as_json:
        remark("What was crawled meanwhile is looked at as it falls due. Let no other recrawl crawl the same domains")


@app.command()
def url(as_json: Json = False) -> int:
    """Tell where the database is, for any client of Postgres; with its password.

    Examples:

        psql "$(recrawl db url)"
        recrawl db url --json
    """
    database_url = maintenance.find_database_url(settings())
    if database_url is None and not as_json:
        raise CrawlerError(NOT_RUNNING)
    print_outcome({"url": database_url}, database_url or "", as_json=as_json)
    return DONE if database_url is not None else PROBLEM


@app.command()
def shell(write: Write = False) -> int:
    """Open psql on the database; the embedded one is started for as long as that takes.

    Examples:

        recrawl db shell
        recrawl db shell < questions.sql
    """
    return maintenance.open_shell(settings(), may_write=write)


@app.command()
def sql(
    statement: Annotated[str, declare_argument("SQL", "One statement; - reads it from stdin.")],
    write: Write = False,
    limit: Top = 100,
    csv: Annotated[bool, declare_flag("--csv", "All rows as CSV; text is never a formula.")] = False,
    as_json: Json = False,
) -> None:
    """Run one SQL statement and print its rows: of the views that docs/sql.md lists, or of any table.

    Examples:

        recrawl db sql "SELECT domain, pages_fetched, freshness FROM report_domain"
        recrawl db sql "SELECT url, title, text FROM page_text WHERE domain = 'docs.example.com'" --csv > texts.csv
    """
    sql_output.run_sql(statement, may_write=write, top=limit, as_csv=csv, as_json=as_json)


@app.command()
def grant(
    name: Annotated[str, declare_argument("NAME", "Of the role: small letters, digits and _.")],
    as_json: Json = False,
) -> None:
    """Let a role read the views and nothing else; a new one is made with a password, which is shown once.

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
        remark("Its password is shown this once; views of a later version need another recrawl db grant")
    else:
        remark("The role was there: its password stays")


@app.command()
def revoke(
    name: Annotated[str, declare_argument("NAME", "Of a role that `db grant` let in.")],
    as_json: Json = False,
) -> None:
    """Take back what `db grant` gave; a role that it made, and that has nothing else, is removed.

    Examples:

        recrawl db revoke analyst
    """
    is_gone = run_on_database(lambda db, _: maintenance.revoke_reading(db, name))
    print_outcome({"role": name, "removed": is_gone}, f"{name} may read nothing of recrawl any more", as_json=as_json)
    if is_gone and not as_json:
        remark("The role is removed with its password")
    elif not as_json:
        remark(f"The role itself stays, since it has or had other uses: DROP ROLE {name} removes it")
