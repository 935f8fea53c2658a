"""Run days of the living site, each with a plan and a crawl run, and collect the reported freshness."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from statistics import fmean

from msgspec.structs import replace

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
MOMENTS = 4  # times per day at which the report is read
ALL = 1_000_000  # more pages than the site has

Days = Callable[[int, int], None]  # arguments: days done, days in total


@dataclass(frozen=True, slots=True)
class Month:
    """The requests of a span of days and the freshness reported in it.

    since: the time of the last visit before these days, a little later than the virtual instant of its crawl run.
    until: the instant of the last crawl run.  requests: requests for pages, without robots.txt.  importances: the last
    known ones, by path.  reported: reported freshness, averaged over time.
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
    """Run the days: each has a plan, and a crawl run that may spend the day's budget at once.

    budget: requests per day from now on.  Only this domain is planned, because other domains use real time.
    """
    settings = settings.model_copy(update={"pace": False})  # a day has only one crawl run
    domain = await domains.change_settings(db, domain, replace(domain.settings, budget_per_day=budget), at=since)
    before = await costs(db, domain)
    importances = await read_importances(db, domain, at=since)
    figures = await report.read_domain_report(db, domain, at=since, window=DAY)
    began = figures.last_visit_at if figures is not None else None
    reported: list[Freshness] = []
    async with open_resources(settings) as resources:
        for day in range(1, days + 1):
            at = since + day * DAY
            reported += await read_reported_freshness(db, domain, since=at - DAY, until=at)
            site.set_instant(at)
            await plan_domains(db, at=at, settings=settings, only=domain)
            holder = build_holder_name("demo")
            await run_shift(
                db, resources, settings=settings, clock=Clock.from_instant(at), holder=holder, only=[domain]
            )
            importances |= await read_importances(db, domain, at=at)
            progress(day, days)
    after = await costs(db, domain)
    return Month(
        began or since, since + days * DAY, after.requests - before.requests, importances, average_freshness(reported)
    )


async def read_importances(db: Database, domain: Domain, *, at: datetime) -> dict[str, float]:
    """Return the importance of every page by path; the mean is 1."""
    lines = await report.list_top_pages(db, domain, top=ALL, at=at)
    return {get_path_and_query(line.url): line.importance for line in lines if line.importance is not None}


async def read_reported_freshness(db: Database, domain: Domain, *, since: datetime, until: datetime) -> list[Freshness]:
    """Return the reported freshness at evenly spaced instants of a span without visits."""
    reported = []
    for n in range(MOMENTS):
        at = since + (n + 0.5) / MOMENTS * (until - since)
        found = await report.read_domain_report(db, domain, at=at, window=DAY)
        if found is not None and found.freshness is not None and found.freshness_plain is not None:
            reported.append(Freshness(found.freshness_plain, found.freshness))
    return reported


def average_freshness(reported: list[Freshness]) -> Freshness:
    return Freshness(fmean(each.plain for each in reported), fmean(each.weighted for each in reported))
