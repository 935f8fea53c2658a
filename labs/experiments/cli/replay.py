"""The command `python -m labs replay-domain`: replay a domain's visits with another budget or another rule."""

import math
from datetime import UTC, datetime, timedelta
from pathlib import Path

from crawler.app.registration import get_domain
from crawler.cli.output import print_json, remark
from crawler.cli.session import DONE, Interrupts, run_on_database
from crawler.core.http.urls import Url
from crawler.errors import CrawlerError
from crawler.store import report
from crawler.store.database import Database
from labs.charts import show_charts
from labs.experiments.cli.compare import charts_of, measured, show_rows
from labs.experiments.comparison import Job
from labs.experiments.policies.named import OPTIMUM, OURS, UNIFORM
from labs.experiments.visits import ReplayedLook, looks_by_url
from labs.experiments.worlds.traces import History, history_of_visits

DAY = timedelta(days=1)
MAX_PAGES = 1_000_000
FACTORS = (0.25, 0.5, 1.0, 2.0, 4.0)  # of the requests that were sent
POLICIES = (OURS, UNIFORM, "importance", OPTIMUM)
MIN_DAYS = 4  # of history: the second half is measured, in whole days of a ledger


def replay(text: str, *, budgets: tuple[float, ...], seeds: int, jobs: int, figures: Path | None, as_json: bool) -> int:
    async def work(db: Database, _: Interrupts) -> tuple[str, dict[Url, list[ReplayedLook]], dict[Url, float]]:
        domain = await get_domain(db, text)
        pages = await report.list_top_pages(db, domain, top=MAX_PAGES, at=datetime.now(UTC))
        return domain.authority, await looks_by_url(db, domain), {page.url: page.importance or 0.0 for page in pages}

    name, visits, importance = run_on_database(work)
    history, per_day = history_of(name, visits, importance)
    budgets = budgets or tuple(per_day * factor for factor in FACTORS)
    rows = measured(
        [
            Job(history, each / history.pages, policy, seed)
            for each in budgets
            for policy in POLICIES
            for seed in range(1, seeds + 1)
        ],
        workers=jobs,
    )
    if as_json:
        print_json({"domain": name, "pages": history.pages, "days": history.days, "sent": per_day, "rows": rows})
    else:
        show_rows(rows)
        remark(f"{name}: {history.pages} pages, {history.days:.0f} days, {per_day:.1f} visits per day")
    show_charts(list(charts_of(rows)), folder=figures, on_terminal=not as_json)
    return DONE


def history_of(name: str, visits: dict[Url, list[ReplayedLook]], importance: dict[Url, float]) -> tuple[History, float]:
    """Return a domain's successful visits as a history, with their number per day.

    importance: of the pages that have cash; other pages get the minimum of these.
    Raise CrawlerError if there is too little to replay.
    """
    visits = {url: found for url, found in visits.items() if found}
    instants = [visit.at for found in visits.values() for visit in found]
    start = min(instants, default=datetime.now(UTC))
    days = float(math.ceil((max(instants, default=start) - start) / DAY))
    if days < MIN_DAYS:
        raise CrawlerError(
            f"{name} has visits of {days:.0f} days; a replay needs {MIN_DAYS}: run recrawl crawl {name} on more days"
        )
    known = [value for value in importance.values() if value > 0]
    smallest = min(known, default=1.0)
    history = history_of_visits(
        name,
        days,
        {url: [((visit.at - start) / DAY, visit.changed) for visit in found] for url, found in visits.items()},
        importance={url: max(importance.get(url, smallest), smallest) for url in visits},
    )
    return history, len(instants) / days
