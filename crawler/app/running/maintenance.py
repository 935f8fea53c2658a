"""Maintenance of the database (prune, check, upgrade, dump, restore), SQL access, and the list of plugins."""

import asyncio
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote, urlsplit

from crawler import plugins
from crawler.app.action_log import describe_action, forget_actions, recorded
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
from crawler.store.report import Finding, QueryResult, ReaderRole
from crawler.store.report import run_query as run_statement
from crawler.store.retention.estimate import SizeEstimate
from crawler.store.retention.vacuum import vacuum


class PruneResult(NamedTuple):
    """The result of pruning, by domain. not_vacuumed: the table partitions that the vacuum skipped."""

    domains: Sequence[PruneStats]
    not_vacuumed: Sequence[str]


@recorded("prune")
async def prune_history(
    db: AppDatabase, name: str | None = None, *, at: datetime, dry_run: bool = False, give_back: bool = False
) -> PruneResult:
    """Delete the history of one domain or all according to their retention settings; a dry run changes nothing.

    at: the current real time, which decides which months are over (crawler/prune.py).
    give_back: rewrite the tables to return their space to the system.  Raises BadInput.
    """
    pruned = await prune_domains(db, await find_domains(db, name or None), at=at, dry_run=dry_run)
    has_pruned = any(each.versions or each.visits or each.packed or each.merged or each.changes for each in pruned)
    if not dry_run and name is None:
        await forget_actions(db, at=at)
    describe_action(object=name or "all domains", is_change=not dry_run)
    needs_vacuum = not dry_run and (has_pruned or give_back)
    return PruneResult(pruned, await vacuum(db, full=give_back) if needs_vacuum else [])


class CheckResult(NamedTuple):
    """The inconsistencies found, and the number of checked domains."""

    domains: int
    findings: Sequence[Finding]


async def check_database(db: AppDatabase) -> CheckResult:
    """Check the invariants of OPIC cash (docs/importance.md), page states, versions and changes."""
    return CheckResult(await report.count_domains(db), await report.check_invariants(db))


def upgrade_database(settings: Settings, *, partitions: int | None = None) -> SchemaState:
    """Upgrade the database to the current schema; return its state before.

    partitions: the number of partitions per page table of a new database.  The embedded database is upgraded whenever
    it is opened, so its state is always CURRENT. Raises BadInput if `partitions` is given for it.
    """
    if settings.database_url is None:
        if partitions is not None:
            raise BadInput("--partitions needs an external database: set RECRAWL_DATABASE_URL")
        with open_crawl_database(settings):
            return SchemaState.CURRENT
    url = settings.database_url.get_secret_value()
    before = database.read_schema_state(url)
    database.upgrade_schema(url, partitions=partitions)
    return before


def dump_database(settings: Settings, file: Path) -> int:
    """Write the database to one compressed file; return its size. Raises BadInput without data, else CrawlerError."""
    require_database(settings)
    with open_crawl_database(settings) as url:
        return client.dump_database(url, file)


def restore_database(settings: Settings, file: Path) -> int:
    """Restore a dump into an empty database; return the number of domains.

    The leases in the dump belong to processes that use the original database, so they are freed. Raises BadInput if the
    database is not empty, and CrawlerError if the file is not a dump.
    """

    async def free_leases(url: str) -> int:
        async with open_database(url, max_connections=1) as db:
            await domains.expire_leases(db, holder_prefix="")
            return await report.count_domains(db)

    with client.restore_database(settings, file) as url:
        return asyncio.run(free_leases(url))


def check_plugins(settings: Settings) -> None:
    """Raise PluginBroken if an enabled plugin cannot be used."""
    load_plugins(settings.plugins)


def list_plugins(settings: Settings) -> Sequence[PluginStatus]:
    """Return the plugins of installed packages, whether they are enabled, and their problems."""
    return plugins.list_plugins(settings.plugins)


def open_shell(settings: Settings, *, may_write: bool) -> int:
    """Run psql on the database; return its exit code."""
    with open_crawl_database(settings) as url:
        return client.run_psql(url, may_write=may_write)


revoke_reading = recorded("revoke reading")(report.revoke_reading)


@recorded("grant reading")
async def grant_reading(db: AppDatabase, name: str) -> tuple[ReaderRole, str | None]:
    """Allow a role to read the views, and nothing else. Return it, and its connection URL, or None if it existed."""
    role = await report.grant_reading(db, name)
    if role.password is None:
        return role, None
    parts = urlsplit(db.url)
    host = parts.netloc.rpartition("@")[2]
    return role, parts._replace(netloc=f"{role.name}:{quote(role.password, safe='')}@{host}").geturl()
