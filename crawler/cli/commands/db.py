"""recrawl db: the schema, and what must always hold."""

from typing import TYPE_CHECKING

import typer

from crawler.cli.exits import DONE, PROBLEM
from crawler.cli.options import Json
from crawler.cli.values import counted

if TYPE_CHECKING:
    from crawler.cli.session import Interrupts
    from crawler.store.database import Database
    from crawler.store.report import Finding

app = typer.Typer(no_args_is_help=True, help="Look after the database.")


@app.command()
def upgrade(as_json: Json = False) -> int:
    """Bring the database to the newest schema; does nothing where it has it.

    Examples:

        recrawl db upgrade
        RECRAWL_DATABASE_URL=postgresql://me@db.example.com/crawl recrawl db upgrade
    """
    from crawler.cli.output import print_json, say
    from crawler.local.stack import crawl_database
    from crawler.settings import settings
    from crawler.store import database

    named = settings().database_url
    if named is None:
        with crawl_database(settings()):
            before = database.Schema.CURRENT  # the embedded one is brought up to date whenever it is used
    else:
        before = database.schema_of(named.get_secret_value())
        database.upgrade(named.get_secret_value())
    if as_json:
        print_json({"before": before, "after": database.Schema.CURRENT})
    else:
        say(
            "The database has the newest schema"
            + ("" if before is database.Schema.CURRENT else f" (it was {before.value})")
        )
    return DONE


@app.command()
def check(as_json: Json = False) -> int:
    """Check what must always hold: coins, states, versions, changes. Exit code 1 where something does not.

    Examples:

        recrawl db check
        recrawl db check --json
    """
    from crawler.cli.output import print_json, say
    from crawler.cli.session import with_database
    from crawler.store import report

    async def work(db: "Database", _: "Interrupts") -> tuple[int, list["Finding"]]:
        return await report.count_domains(db), await report.check(db)

    domains, findings = with_database(work)
    if as_json:
        print_json({"holds": not findings, "domains": domains, "findings": findings})
    elif findings:
        for finding in findings:
            say(f"{finding.domain or 'all'}: {finding.text}")
    else:
        say(f"Everything holds in {counted(domains, 'domain')}")
    return PROBLEM if findings else DONE
