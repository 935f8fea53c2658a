"""Figures of a replay: how the budget was used, and how stale the copies were compared with visiting pages in turn."""

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from operator import attrgetter
from statistics import fmean, median

import numpy as np

from crawler.core.change.change import Change
from crawler.core.domain_settings import DomainSettings
from labs.replay.crawl import Plan, Replay, Visit
from labs.replay.history import PageLife, SiteHistory
from labs.replay.rule import rule_visits
from labs.replay.site import Sitemap

PHASES = 8  # phases of visits in turn, over which their staleness is averaged
SHOWN = frozenset({200, 304})  # statuses with which the server shows a page
DEAD = frozenset({404, 410})
ENDS_IN_S = 10.0  # seconds within which a run ends after its last request
SPARE = 2  # requests per day that may be left while pages are unfetched
WEEK = 7

Times = Mapping[str, Sequence[float]]


@dataclass(frozen=True, slots=True)
class Staleness:
    """The share of time in which copies are stale. plain: all pages equal.  weighted: by importance."""

    plain: float
    weighted: float

    def over(self, other: "Staleness") -> "Staleness":
        """Return the ratios to another staleness; 1 if neither is ever stale."""
        return Staleness(_ratio(self.plain, other.plain), _ratio(self.weighted, other.weighted))


@dataclass(frozen=True, slots=True)
class Delays:
    """Days from an event to the visit that finds it, or to the end if none does. found: how many are found."""

    events: int
    found: int
    median: float
    mean: float
    worst: float


@dataclass(frozen=True, slots=True)
class Figures:
    """The figures of a replay. Times are days of the history.

    used: share of the budget that was spent.
    short_days: days on which more than SPARE requests were left while pages were unfetched.
    late_runs: runs that did not end within ENDS_IN_S after their last request.
    repeated_leases: leases claimed without a request since the one before.
    stale: of the crawl.  by_budget, by_requests: its ratio to visits in turn, as many as the budget or as were made.
    rule: the ratio of the plain rule (labs/replay/rule.py) at the same budget with the same weights of pages.
    dead_links: share of requests for URLs that were never pages.  for_files: for robots.txt, sitemaps and feeds.
    precision, recall: of the verdict `changed`, by the pages' own text; see `verdicts`.
    report_error: mean absolute error of the reported freshness, week by week.
    """

    days: float
    requests: int
    requests_per_day: float
    leases_per_day: float
    used: float
    short_days: int
    late_runs: int
    slowest_run_s: float
    repeated_leases: int
    stale: Staleness
    by_budget: Staleness
    by_requests: Staleness
    rule: Staleness
    discovery: Delays
    deletion: Delays
    dead_links: float
    for_files: float
    precision: float
    recall: float
    report_error: float


@dataclass(frozen=True, slots=True)
class Bound:
    """The bound of a figure. of: a name in Figures.  is_least: the limit is a minimum, not a maximum."""

    of: str
    limit: float
    is_least: bool = False

    def is_met(self, figures: Figures) -> bool:
        """Return whether the figure is within the limit."""
        found: float = attrgetter(self.of)(figures)
        return found >= self.limit if self.is_least else found <= self.limit


def figures_of(history: SiteHistory, plan: Plan, replay: Replay) -> Figures:
    """Measure a replay from the moment at which its budget applies."""
    since, until = (0.0 if plan.is_cold else 1.0), float(plan.days)
    requests = [request for request in replay.requests if request.day >= since]
    runs = [run for run in replay.runs if run.day >= since]
    by_day = Counter(int(request.day) for request in requests)
    last_of_day = {int(run.day): run for run in runs}
    shown = _requests(replay, SHOWN)
    first = [*history.importance]
    if plan.sitemap is Sitemap.NONE and not plan.is_cold:
        first = [path for path in first if path in shown]  # the others are not linked
    stale = staleness(history, shown, first, since=since, until=until)
    at_budget, at_requests = (
        in_turn(history, per_day, first, since=since, until=until, is_cold=plan.is_cold)
        for per_day in (plan.budget, len(requests) / (until - since))
    )
    by_rule = rule_staleness(history, plan.budget, first, since=since, until=until, is_cold=plan.is_cold)
    precision, recall = verdicts(history, replay.visits)
    return Figures(
        days=until - since,
        requests=len(requests),
        requests_per_day=len(requests) / (until - since),
        leases_per_day=sum(run.leases for run in runs) / (until - since),
        used=len(requests) / (plan.budget * (until - since)),
        short_days=sum(run.unfetched > 0 and by_day[day] < plan.budget - SPARE for day, run in last_of_day.items()),
        late_runs=sum(run.idle_s > ENDS_IN_S for run in runs),
        slowest_run_s=max(run.seconds for run in runs),
        repeated_leases=sum(run.repeated for run in runs),
        stale=stale,
        by_budget=stale.over(at_budget),
        by_requests=stale.over(at_requests),
        rule=by_rule.over(at_budget),
        discovery=discovery(history, shown, since=since, until=until),
        deletion=deletion(history, replay.visits, since=since, until=until),
        dead_links=sum(r.page is None and r.status in DEAD for r in requests) / max(len(requests), 1),
        for_files=sum(r.page is None and r.status in SHOWN for r in requests) / max(len(requests), 1),
        precision=precision,
        recall=recall,
        report_error=report_error(history, replay),
    )


def _requests(replay: Replay, statuses: frozenset[int]) -> Times:
    """Return when each page was requested with one of these statuses."""
    times: defaultdict[str, list[float]] = defaultdict(list)
    for request in replay.requests:
        if request.page is not None and request.status in statuses:
            times[request.page].append(request.day)
    return times


def staleness(history: SiteHistory, times: Times, pages: Collection[str], *, since: float, until: float) -> Staleness:
    """Return the staleness of these pages while they exist."""
    shares: dict[str, float] = {}
    for path in pages:
        life = history.pages[path]
        end = min(life.gone, until)
        if end > since:
            shares[path] = stale_days(life, times.get(path, ()), since=since, until=end) / (end - since)
    weights = [history.importance[path] for path in shares]
    weighted = sum(weight * share for weight, share in zip(weights, shares.values(), strict=True)) / sum(weights)
    return Staleness(fmean(shares.values()), weighted)


def stale_days(life: PageLife, visits: Sequence[float], *, since: float, until: float) -> float:
    """Return the days in which the page was never visited or had changed since its last visit."""
    first = visits[0] if visits else until
    stale = max(min(first, until) - since, 0.0)
    for visit, following in pairwise([*visits, until]):
        n = bisect_right(life.changes, visit)
        if n < len(life.changes):
            stale += max(min(following, until) - max(life.changes[n], since), 0.0)
    return stale


def in_turn(
    history: SiteHistory, per_day: float, pages: Collection[str], *, since: float, until: float, is_cold: bool
) -> Staleness:
    """Return the staleness if these pages are visited in turn, all at the same interval, averaged over PHASES."""
    gap = len(pages) / max(per_day, 1e-9)
    found = []
    for phase in range(PHASES):
        first = since + gap * (phase + 0.5) / PHASES
        visits = [first + n * gap for n in range(max(int((until - first) / gap) + 1, 0))]
        times = dict.fromkeys(pages, visits if is_cold else [since, *visits])
        found.append(staleness(history, times, pages, since=since, until=until))
    return Staleness(fmean(each.plain for each in found), fmean(each.weighted for each in found))


def rule_staleness(
    history: SiteHistory, per_day: int, pages: Collection[str], *, since: float, until: float, is_cold: bool
) -> Staleness:
    """Return the staleness of the plain rule's visits to these pages."""
    lives = [history.pages[path] for path in pages]
    mix = DomainSettings().importance_mix
    weights = mix * np.array([history.importance[path] for path in pages]) + 1 - mix
    visits = rule_visits(lives, weights, per_day, since=since, until=until)
    times = {life.path: seen[is_cold:] for life, seen in zip(lives, visits, strict=True)}
    return staleness(history, times, pages, since=since, until=until)


def bounds_of(sitemap: Sitemap, *, weighted: float) -> Sequence[Bound]:
    """Return the bounds of a replay with such a sitemap.

    weighted: the bound of staleness by importance.
    """
    alike = {Sitemap.DATES: 0.7, Sitemap.PLAIN: 1.0, Sitemap.NONE: 1.1}[sitemap]
    return (
        Bound("used", 0.97, is_least=True),
        Bound("by_budget.plain", alike),
        *([Bound("by_budget.weighted", weighted)] if sitemap is not Sitemap.NONE else []),
        Bound("dead_links", 0.03),
        Bound("precision", 0.85, is_least=True),
        Bound("recall", 0.95, is_least=True),
        Bound("report_error", 0.02),
    )


def discovery(history: SiteHistory, shown: Times, *, since: float, until: float) -> Delays:
    """Return how long later pages wait for their first visit."""
    born = [life for life in history.pages.values() if since < life.born < until]
    return _delays([(life.born, next(iter(shown.get(life.path, ())), None), min(life.gone, until)) for life in born])


def deletion(history: SiteHistory, visits: Mapping[str, Sequence[Visit]], *, since: float, until: float) -> Delays:
    """Return how long deleted pages that were fetched are considered to exist."""
    ended: defaultdict[str, list[float]] = defaultdict(list)
    fetched = set()
    for url_path, seen in visits.items():
        path = history.page_of(url_path, until)
        if path is not None:
            fetched.add(path)
            at = history.pages[path].gone
            ended[path] += [
                visit.day for visit in seen if visit.change in {Change.GONE, Change.MOVED} and visit.day >= at
            ]
    gone = [history.pages[path] for path in fetched if since < history.pages[path].gone < until]
    return _delays([(life.gone, min(ended[life.path], default=None), until) for life in gone])


def _delays(events: Sequence[tuple[float, float | None, float]]) -> Delays:
    """Summarize events: when each was, when it was found, and until when it could be found."""
    delays = [(end if found is None else found) - at for at, found, end in events] or [0.0]
    found = sum(found is not None for _, found, _ in events)
    return Delays(len(events), found, median(delays), fmean(delays), max(delays))


def verdicts(history: SiteHistory, visits: Mapping[str, Sequence[Visit]]) -> tuple[float, float]:
    """Return precision and recall of `changed` between two visits of a URL, by whether the page's own text differs.

    Text that was changed and changed back between two visits does not count, since no crawler could detect it. Neither
    do visits between which only the page's own links or images changed: recrawl reports these (docs/changes.md), but
    not where other pages have the same edit.
    """
    counts: Counter[tuple[bool, bool]] = Counter()
    for url_path, seen in visits.items():
        for before, after in pairwise(seen):
            path = history.page_of(url_path, after.day)
            then, now = (None if path is None else history.own_text(path, visit.day) for visit in (before, after))
            if path is None or then is None or now is None:
                continue
            if then != now or history.own_targets(path, before.day) == history.own_targets(path, after.day):
                counts[then != now, after.change is Change.CHANGED] += 1
    hits = counts[True, True]
    return _ratio(hits, hits + counts[False, True]), _ratio(hits, hits + counts[True, False])


def report_error(history: SiteHistory, replay: Replay) -> float:
    """Return the mean absolute error of the reported freshness of the known pages, in weekly means."""
    weeks: defaultdict[int, list[float]] = defaultdict(list)
    shown, lost = _requests(replay, SHOWN), _requests(replay, DEAD)
    for report in replay.reports:
        weeks[int(report.day) // WEEK].append(report.fresh - _fresh_share(history, shown, lost, report.day))
    return fmean(abs(fmean(errors)) for errors in weeks.values()) if weeks else 0.0


def _fresh_share(history: SiteHistory, shown: Times, lost: Times, day: float) -> float:
    """Return the share of the pages that were fetched and not found gone whose copies are current."""
    fresh = []
    for path, times in shown.items():
        n = bisect_right(times, day)
        gone = lost.get(path, ())
        if n and bisect_right(gone, day) == bisect_right(gone, times[n - 1]):
            life = history.pages[path]
            fresh.append(
                life.gone > day and bisect_right(life.changes, day) == bisect_right(life.changes, times[n - 1])
            )
    return fmean(fresh) if fresh else 1.0


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole else 1.0
