"""recrawl db: the schema, and what must always hold."""

from crawler.cli.exits import DONE, PROBLEM
from crawler.cli.output import print_json, say
from crawler.cli.session import Interrupts, with_database
from crawler.cli.values import counted
from crawler.local.stack import crawl_database
from crawler.settings import settings
from crawler.store import report
from crawler.store.database import Database, Schema, schema_of
from crawler.store.database import upgrade as migrate
from crawler.store.report import Finding


def upgrade(*, as_json: bool) -> int:
    named = settings().database_url
    if named is None:
        with crawl_database(settings()):
            before = Schema.CURRENT  # the embedded one is brought up to date whenever it is used
    else:
        before = schema_of(named.get_secret_value())
        migrate(named.get_secret_value())
    if as_json:
        print_json({"before": before, "after": Schema.CURRENT})
    else:
        say("The database has the newest schema" + ("" if before is Schema.CURRENT else f" (it was {before.value})"))
    return DONE


def check(*, as_json: bool) -> int:
    async def work(db: Database, _: Interrupts) -> tuple[int, list[Finding]]:
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
