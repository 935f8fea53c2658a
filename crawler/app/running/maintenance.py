"""The database as a whole: prune and check it, upgrade, dump and restore it, and use it by SQL; and list plugins."""

import asyncio
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote, urlsplit, urlunsplit

from crawler import plugins
from crawler.app.database import AppDatabase
from crawler.app.registration import find_domains
from crawler.errors import BadInput
from crawler.export.rows import format_value
from crawler.plugins import load_plugins
from crawler.plugins.loading import PluginStatus
from crawler.prune import PruneStats, prune_domains
from crawler.runtime.postgres import client
from crawler.runtime.stack import find_database_url, open_crawl_database, require_database
from crawler.settings import Settings
from crawler.store import database, domains, report
from crawler.store.database import SchemaState, open_database
from crawler.store.report import Finding, QueryResult, ReaderRole, revoke_reading
from crawler.store.report import run_query as run_statement
from crawler.store.retention.estimate import SizeEstimate
from crawler.store.retention.vacuum import vacuum


class PruneResult(NamedTuple):
    """What was pruned, domain by domain. not_vacuumed: tables whose room could not be used again."""

    domains: Sequence[PruneStats]
    not_vacuumed: Sequence[str]


async def prune_history(
    db: AppDatabase, name: str | None = None, *, at: datetime, dry_run: bool = False, give_back: bool = False
) -> PruneResult:
    """Thin out the past of one domain, or of all, as their settings say; a dry run changes nothing.

    at: real time.  give_back: write tables anew, so that their room goes to the system. Raises BadInput.
    """
    pruned = await prune_domains(db, await find_domains(db, name or None), at=at, dry_run=dry_run)
    has_pruned = any(each.versions or each.visits or each.packed or each.merged or each.changes for each in pruned)
    needs_vacuum = not dry_run and (has_pruned or give_back)
    return PruneResult(pruned, await vacuum(db, full=give_back) if needs_vacuum else [])


class CheckResult(NamedTuple):
    """What does not hold in so many domains."""

    domains: int
    findings: Sequence[Finding]


async def check_database(db: AppDatabase) -> CheckResult:
    """Return what must always hold and does not: cash, states, versions, changes."""
    return CheckResult(await report.count_domains(db), await report.check_invariants(db))


def upgrade_database(settings: Settings, *, partitions: int | None = None) -> SchemaState:
    """Bring the database to the newest schema; return what it had before. partitions: of a new one's tables.

    The embedded database is brought up to date whenever it is used. Raises BadInput for its partitions.
    """
    if settings.database_url is None:
        if partitions is not None:
            raise BadInput("--partitions is for a database that RECRAWL_DATABASE_URL names: set that first")
        with open_crawl_database(settings):
            return SchemaState.CURRENT
    url = settings.database_url.get_secret_value()
    before = database.read_schema_state(url)
    database.upgrade_schema(url, partitions=partitions)
    return before


def dump_database(settings: Settings, file: Path) -> int:
    """Write the database into one compressed file; return its size in bytes. Raises BadInput where none was made."""
    require_database(settings)
    with open_crawl_database(settings) as url:
        return client.dump_database(url, file)


def restore_database(settings: Settings, file: Path) -> int:
    """Restore a dump into an empty database; return how many domains it has.

    Whoever held them when the dump was made holds them in that database alone, so their leases are freed.
    """

    async def free_leases(url: str) -> int:
        async with open_database(url, max_connections=1) as db:
            await domains.expire_leases(db, holder_prefix="")
            return await report.count_domains(db)

    with client.restore_database(settings, file) as url:
        return asyncio.run(free_leases(url))


def check_plugins(settings: Settings) -> None:
    """Raise PluginBroken where a plugin in use cannot be used, before anything begins."""
    load_plugins(settings.plugins)


def list_plugins(settings: Settings) -> Sequence[PluginStatus]:
    """Return the plugins that installed packages offer, whether they are used, and what is wrong with those."""
    return plugins.list_plugins(settings.plugins)


def open_shell(settings: Settings, *, may_write: bool) -> int:
    """Run psql on the database until its user leaves it; return its exit code."""
    with open_crawl_database(settings) as url:
        return client.run_psql(url, may_write=may_write)


async def grant_reading(db: AppDatabase, name: str) -> tuple[ReaderRole, str | None]:
    """Let a role read the views and nothing else; return it, and where it connects to if it was made now."""
    role = await report.grant_reading(db, name)
    if role.password is None:
        return role, None
    parts = urlsplit(db.url)
    host = parts.netloc.rpartition("@")[2]
    return role, urlunsplit(parts._replace(netloc=f"{role.name}:{quote(role.password, safe='')}@{host}"))
