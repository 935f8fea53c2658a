"""Run days of the living site, each with a plan and a shift, and collect the reported freshness."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from statistics import fmean

from crawler.clock import Clock
from crawler.core.domain import Domain
from crawler.core.http.urls import get_path_and_query
from crawler.engine.resources import open_resources
from crawler.engine.shift import build_holder_name, run_shift
from crawler.planner.plan import plan_domains
from crawler.settings import Settings
from crawler.store import domains, report
from crawler.store.database import Database
from labs.demo.rival import Freshness
from labs.demo.server import LivingServer, Remote
from labs.experiments.visits import costs

DAY = timedelta(days=1)
MOMENTS = 4  # per day, at which the report is read
ALL = 1_000_000  # more pages than the site has

Days = Callable[[int, int], None]  # arguments: days done, days in total


@dataclass(frozen=True, slots=True)
class Month:
    """The requests of a span of days and the freshness reported in it.

    since: the last visit before these days; a visit is later than its shift's instant by the time that it took.
    until: the last shift's instant.  requests: requests for pages, without robots.txt.  importances: by path, as known
    last.  reported: reported freshness, averaged over time.
    """

    since: datetime
    until: datetime
    requests: int
    importances: Mapping[str, float]
    reported: Freshness


async def live_through(
    db: Database,
    domain: Domain,
    site: Remote | LivingServer,
    *,
    settings: Settings,
    budget: int,
    since: datetime,
    days: int,
    progress: Days = lambda _done, _all: None,
) -> Month:
    """Run the days: each has a plan, and a shift that may spend the day's budget at once.

    budget: requests per day from now on.  The plan is for this domain only: others use real time.
    """
    settings = settings.model_copy(update={"pace": False})  # a day has only one shift
    domain = await domains.change_settings(db, domain, replace(domain.settings, budget_per_day=budget), at=since)
    before = await costs(db, domain)
    importances = await importances_of(db, domain, at=since)
    standing = await report.read_domain_report(db, domain, at=since, window=DAY)
    began = standing.last_visit_at if standing is not None else None
    said: list[Freshness] = []
    async with open_resources(settings) as webs:
        for day in range(1, days + 1):
            at = since + day * DAY
            said += await said_between(db, domain, since=at - DAY, until=at)
            site.set_instant(at)
            await plan_domains(db, at=at, settings=settings, only=domain)
            holder = build_holder_name("demo")
            await run_shift(db, webs, settings=settings, clock=Clock.from_instant(at), holder=holder, only=[domain])
            importances |= await importances_of(db, domain, at=at)
            progress(day, days)
    after = await costs(db, domain)
    return Month(began or since, since + days * DAY, after.requests - before.requests, importances, mean_of(said))


async def importances_of(db: Database, domain: Domain, *, at: datetime) -> dict[str, float]:
    """Return the importance of every page by path; the mean is 1."""
    lines = await report.list_top_pages(db, domain, top=ALL, at=at)
    return {get_path_and_query(line.url): line.importance for line in lines if line.importance is not None}


async def said_between(db: Database, domain: Domain, *, since: datetime, until: datetime) -> list[Freshness]:
    """Return the reported freshness at evenly spaced instants of a span without visits."""
    said = []
    for n in range(MOMENTS):
        at = since + (n + 0.5) / MOMENTS * (until - since)
        found = await report.read_domain_report(db, domain, at=at, window=DAY)
        if found is not None and found.freshness is not None and found.freshness_plain is not None:
            said.append(Freshness(found.freshness_plain, found.freshness))
    return said


def mean_of(said: list[Freshness]) -> Freshness:
    return Freshness(fmean(each.plain for each in said), fmean(each.weighted for each in said))
