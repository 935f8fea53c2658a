"""The real crawler on a recorded site: runs at fixed times of each virtual day, with a plan after each."""

import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from msgspec.structs import replace

from benchmarks.harness.database import migrated
from crawler.clock import Clock
from crawler.core.change.change import Change
from crawler.core.domain import Domain, Lease
from crawler.core.domain_settings import DomainSettings
from crawler.core.http.urls import Authority, get_path_and_query
from crawler.engine.coordinator import CrawlLimits
from crawler.engine.resources import CrawlResources, open_resources
from crawler.engine.shift import ShiftHooks, run_shift
from crawler.engine.stats import LeaseResult
from crawler.planner.audit import audit_domains
from crawler.planner.plan import plan_domains
from crawler.runtime.postgres.cluster import borrow_postgres, ensure_postgres
from crawler.settings import Settings
from crawler.store import domains, record, report
from crawler.store.database import Database
from labs.replay.history import SiteHistory
from labs.replay.site import RecordedSite, Sitemap, SiteRequest, serving

DAY = timedelta(days=1)
LEAD = timedelta(minutes=15)  # a run starts this long before its part of the day ends; the whole part is granted then
RUN_LIMIT = timedelta(seconds=20)  # real time; a run that takes longer has not ended by itself
# Unfetched pages that wait only because of the budget.
UNFETCHED = """
    SELECT count(*) FROM frontier
     WHERE domain_id = %(domain_id)s AND state = 'unfetched' AND coalesce(due_at <= %(at)s, true)
       AND section NOT IN (SELECT no FROM prior WHERE domain_id = %(domain_id)s AND deferred_until IS NOT NULL)
"""
VISITS = """
    SELECT p.url, v.at, v.change FROM every_visit v JOIN page p ON p.domain_id = v.domain_id AND p.key = v.key
     WHERE v.domain_id = %s AND v.change <> 'unknown' ORDER BY v.at
"""


@dataclass(frozen=True, slots=True)
class Plan:
    """The options of a replay.

    budget: requests per day.  is_cold: the budget applies from the first request on; else from the second day on.
    revisit, hours, target_freshness: settings of the domain; a target replaces the budget.
    """

    budget: int
    days: int
    runs_a_day: int
    sitemap: Sitemap
    is_cold: bool
    revisit: str = "value"
    hours: str = ""
    target_freshness: float | None = None


@dataclass(frozen=True, slots=True)
class Run:
    """One run. day: of the history.  idle_s: real seconds from its last request, or its beginning, to its end.

    repeated: leases claimed without a request since the one before.  unfetched: unfetched pages afterwards.
    """

    day: float
    requests: int
    leases: int
    repeated: int
    seconds: float
    idle_s: float
    unfetched: int


@dataclass(frozen=True, slots=True)
class Visit:
    """A visit's result according to the crawler. day: of the history."""

    day: float
    change: Change


@dataclass(frozen=True, slots=True)
class Report:
    """The freshness reported at the end of a day: the share of the known pages that are fresh.

    fresh: all pages equal.  weighted: by importance.
    """

    day: float
    fresh: float
    weighted: float


@dataclass(frozen=True, slots=True)
class Replay:
    """The observations of a replay. visits: in order, by the path of the URL, without failed ones."""

    runs: Sequence[Run]
    requests: Sequence[SiteRequest]
    visits: Mapping[str, Sequence[Visit]]
    reports: Sequence[Report]


class _LeaseCounter:
    """A counter of the leases of one run, and of those that follow another one without a request in between."""

    def __init__(self, site: RecordedSite) -> None:
        self._site, self.leases, self.repeated = site, 0, 0
        self._before = -1  # number of requests when the last lease was claimed

    async def crawl(self, _lease: Lease, crawl_it: Callable[[], Awaitable[LeaseResult]]) -> LeaseResult:
        self.leases += 1
        self.repeated += len(self._site.requests) == self._before
        self._before = len(self._site.requests)
        return await crawl_it()


async def replay(db: Database, history: SiteHistory, plan: Plan, *, progress: Callable[[Run], None]) -> Replay:
    """Replay the history: before each run, the site's server moves to the run's instant."""
    site = RecordedSite(history, plan.sitemap)
    async with serving(site):
        settings = Settings(crawl_processes=1, parser_processes=0)
        unlimited = DomainSettings(allow_private=True, delay=timedelta(0), render="never", revisit=plan.revisit)
        limited = replace(
            unlimited,
            budget_per_day=None if plan.target_freshness else plan.budget,
            target_freshness=plan.target_freshness,
            hours=plan.hours,
        )
        authority = Authority(site.root.removeprefix("http://"))
        domain = await domains.register(db, authority, scheme="http", domain_settings=unlimited, at=history.start)
        runs, reports = [], []
        async with open_resources(settings) as resources:
            for n in range(plan.days * plan.runs_a_day):
                at = history.start + (n + 1) * DAY / plan.runs_a_day - LEAD
                if n == (0 if plan.is_cold else plan.runs_a_day):
                    domain = await domains.change_settings(db, domain, limited, at=at)
                site.day = (at - history.start) / DAY
                runs.append(await _run(db, resources, site, domain, settings=settings, at=at))
                progress(runs[-1])
                await _plan(db, domain, settings=settings, at=at)
                if (n + 1) % plan.runs_a_day:
                    continue
                await audit_domains(db, at=at, only=domain)
                found = await report.read_domain_report(db, domain, at=at, window=DAY)
                if found and found.freshness_plain is not None and found.freshness is not None:
                    reports.append(Report(site.day, found.freshness_plain, found.freshness))
        visits = await _visits(db, domain, since=history.start)
    return Replay(runs, site.requests, visits, reports)


async def _plan(db: Database, domain: Domain, *, settings: Settings, at: datetime) -> None:
    """Do what the planning flow does that affects visits."""
    await plan_domains(db, at=at, settings=settings, only=domain)
    await report.fill_fingerprints(db, domain)
    await record.propose_pairs(db, domain, at=at)


async def _run(
    db: Database, resources: CrawlResources, site: RecordedSite, domain: Domain, *, settings: Settings, at: datetime
) -> Run:
    counter, before, began = _LeaseCounter(site), len(site.requests), time.monotonic()
    await run_shift(
        db,
        resources,
        settings=settings,
        clock=Clock.from_instant(at),
        holder="replay",
        only=[domain],
        limits=CrawlLimits(time_limit=RUN_LIMIT),
        hooks=ShiftHooks(wrap_crawl=counter.crawl),
    )
    ended = time.monotonic()
    async with db.transaction() as connection:
        row = await (await connection.execute(UNFETCHED, {"domain_id": domain.id, "at": at})).fetchone()
        assert row is not None  # a count
    return Run(
        day=site.day,
        requests=len(site.requests) - before,
        leases=counter.leases,
        repeated=counter.repeated,
        seconds=ended - began,
        idle_s=ended - max(began, site.answered_at),
        unfetched=row[0],
    )


async def _visits(db: Database, domain: Domain, *, since: datetime) -> Mapping[str, Sequence[Visit]]:
    found: defaultdict[str, list[Visit]] = defaultdict(list)
    async with db.transaction() as connection:
        async for url, at, change in await connection.execute(VISITS, (domain.id,)):
            found[get_path_and_query(url)].append(Visit((at - since) / DAY, Change(change)))
    return found


@contextmanager
def new_database(home: Path) -> Iterator[str]:
    """Yield the URL of an empty database on a Postgres server in `home`; both end with the block."""
    ensure_postgres(home, durable=False)  # its data are not needed after the replay
    with borrow_postgres(home) as cluster, migrated(cluster) as url:
        yield url
