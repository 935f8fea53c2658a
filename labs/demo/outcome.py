"""The outcome of the tour: reported figures, true figures, and those of uniform revisits."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from itertools import pairwise

from crawler.core.domain import Domain
from crawler.core.http.urls import get_path_and_query
from crawler.store import report
from crawler.store.database import Database
from crawler.store.report import ChangeFilter, EventKind, FeedItem, ListReport
from labs.demo.month import Month
from labs.demo.rival import Freshness, Match, copied, match
from labs.demo.site import LIARS, Site, VerdictTally, freshness, mean_freshness, tally
from labs.experiments.visits import ReplayedLook, costs, looks_by_url

DAY = timedelta(days=1)
EXAMPLES, SEARCHED = 3, 50  # number of changes shown, and of those searched for them


@dataclass(frozen=True, slots=True)
class DemoOutcome:
    """The results of the demo.

    freshness_*: share of the existing pages that are fresh, equally weighted; freshness_mean: over the whole time.
    match, margin: true freshness over the days after the recrawl, of the crawl and of uniform revisits.
    reported: the reported freshness of known pages over the same days, one or two points above the truth, because the
    crawler cannot know which pages are gone since their last visit and which changes a server hides.
    changes: how many of the true content changes visits found; clocks do not count.
    lied_away: changes hidden by the server, among those that visits could have found.
    false_alarms: verdicts "changed" without a change.  *_daily: cost of fetching every page every day.
    lists: the site's sitemaps and feed, with what they added.  examples: the latest changes with old and new text.
    index: the web UI as files.
    """

    domain: str
    days: int
    pages: int
    freshness_reported: float
    freshness_true: float
    freshness_mean: float
    reported: Freshness
    match: Match
    margin: Freshness
    changes: VerdictTally
    recognised: int
    lied_away: int
    false_alarms: int
    requests: int
    requests_daily: int
    received_bytes: int
    received_daily_bytes: int
    saved_bytes: int
    runs: tuple[str, ...]
    ui_url: str
    lists: tuple[ListReport, ...] = ()
    examples: tuple[FeedItem, ...] = ()
    index: str = ""


async def outcome_of(
    db: Database, domain: Domain, site: Site, month: Month, *, runs: tuple[str, ...], ui_url: str
) -> DemoOutcome:
    """Compare reported figures with the truth."""
    at = month.until
    visits = {get_path_and_query(url): seen for url, seen in (await looks_by_url(db, domain)).items()}
    times = copied(site, visits)
    found = await report.read_domain_report(db, domain, at=at, window=at - site.start + DAY)
    spent = await costs(db, domain)
    assert found is not None
    days = (at - site.start) / DAY
    recognised, lied_away, false_alarms = verdicts(site, visits)
    backlog = await report.read_backlog(db, domain, at=at)
    comparison = match(
        site, times, importances=month.importances, requests=month.requests, since=month.since, until=month.until
    )
    return DemoOutcome(
        domain=domain.authority,
        days=round(days),
        pages=len(site.paths(at)),
        freshness_reported=found.freshness_plain or 0.0,
        freshness_true=freshness(site, {path: seen[-1] for path, seen in times.items()}, at),
        freshness_mean=mean_freshness(site, times, min(seen[0] for seen in times.values()), at),
        reported=month.reported,
        match=comparison,
        margin=comparison.margin,
        changes=tally(site, {path: [look.at for look in seen] for path, seen in visits.items()}, site.start, at),
        recognised=recognised,
        lied_away=lied_away,
        false_alarms=false_alarms,
        requests=spent.requests,
        requests_daily=round(sum(len(site.paths(site.start + n * DAY)) for n in range(round(days) + 1))),
        received_bytes=spent.received_bytes,
        received_daily_bytes=round(backlog.mean_bytes * len(site.paths(at)) * (days + 1)),
        saved_bytes=spent.saved_bytes,
        runs=runs,
        ui_url=ui_url,
        lists=tuple(await report.read_url_lists(db, domain)),
        examples=await examples_of(db, domain),
    )


async def examples_of(db: Database, domain: Domain) -> tuple[FeedItem, ...]:
    """Return the newest changes in which words were replaced."""
    where = ChangeFilter(domain_id=domain.id, kinds=frozenset({EventKind.CHANGED}))
    newest = await report.list_newest_changes(db, where, max_count=SEARCHED)
    return tuple(item for item in newest if any(edit.before and edit.after for edit in item.blocks))[:EXAMPLES]


def verdicts(site: Site, visits: Mapping[str, list[ReplayedLook]]) -> tuple[int, int, int]:
    """Count detected changes, changes that the server hid, and verdicts "changed" without a change."""
    recognised = lied_away = false_alarms = 0
    for path, seen in visits.items():
        if site.find(path) is None:
            continue
        for before, look in pairwise(seen):
            differs = bool(site.changes(path, before.at, look.at))
            recognised += differs and look.changed
            lied_away += differs and not look.changed and site.serving(path) in LIARS
            false_alarms += look.changed and not differs and not was_hidden_before(site, path, seen, look)
    return recognised, lied_away, false_alarms


def was_hidden_before(site: Site, path: str, seen: list[ReplayedLook], look: ReplayedLook) -> bool:
    """Return whether this visit reveals an earlier change that the server hid then."""
    return site.serving(path) in LIARS and bool(site.changes(path, seen[0].at, look.at))
