"""The true quality of a crawler's copy of the living site, from the instants of its visits to each path."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise

from labs.demo.site.site import DISALLOWED, Site


@dataclass(frozen=True, slots=True)
class VerdictTally:
    """What became of the content changes of a span. happened == found + merged + pending + before.

    found: the first change that a visit found.  merged: further changes before the same visit, which cannot be told
    apart.  pending: not visited since.  before: the first visit came later.
    """

    happened: int
    found: int
    merged: int
    pending: int
    before: int


def freshness(site: Site, last_visit_by_path: Mapping[str, datetime], at: datetime) -> float:
    """Return the share of the site's existing pages whose last visit, at or before `at`, found the current version."""
    paths = site.paths(at)
    fresh = sum(path in last_visit_by_path and site.is_same(path, last_visit_by_path[path], at) for path in paths)
    return fresh / len(paths)


def mean_freshness(
    site: Site,
    visits_by_path: Mapping[str, Sequence[datetime]],
    since: datetime,
    until: datetime,
    *,
    weights: Mapping[str, float] | None = None,
) -> float:
    """Return the exact freshness averaged over a span: fresh page-time divided by all page-time.

    visits_by_path: ascending; those before the span count too.  weights: by path; default 1.
    """
    there = fresh = timedelta()
    for path in (*site.sheets_by_path, *site.moved_by_path):
        visits = visits_by_path.get(path, ())
        weight = weights.get(path, 1.0) if weights else 1.0
        for begin, end in () if path.startswith(DISALLOWED) else epochs(site, path, since, until):
            there += weight * (end - max(begin, since))
            first = bisect_left(visits, begin)
            if first < len(visits) and visits[first] < end:
                fresh += weight * (end - max(visits[first], since))
    return fresh / there


def epochs(site: Site, path: str, since: datetime, until: datetime) -> Iterator[tuple[datetime, datetime]]:
    """Yield the spans [begin, end) with one version at the path; the first may have begun before `since`."""
    sheet = site.sheet(path)
    begin, end = sheet.since or sheet.written, sheet.until or until
    if path != sheet.path:
        begin, end = end, until
    marks = (begin, *(change for change in sheet.changes if begin < change < end), min(end, until))
    return ((one, min(other, until)) for one, other in pairwise(marks) if one < until and other > since)


def tally(
    site: Site, visits_by_path: Mapping[str, Sequence[datetime]], since: datetime, until: datetime
) -> VerdictTally:
    """Return what became of the changes in (since, until]. visits_by_path: ascending, none after `until`."""
    fates = Counter[str]()
    for path in site.sheets_by_path:
        fates.update(fates_of(site.changes(path, since, until), visits_by_path.get(path, ())))
    return VerdictTally(fates.total(), fates["found"], fates["merged"], fates["pending"], fates["before"])


def fates_of(changes: Sequence[datetime], visits: Sequence[datetime]) -> Iterator[str]:
    """Yield what became of each change of one page: a field of VerdictTally."""
    next_visits = [bisect_left(visits, change) for change in changes]  # a visit at the same instant sees the change
    for n, visit in enumerate(next_visits):
        if visit == 0:
            yield "before" if visits else "pending"
        elif visit == len(visits):
            yield "pending"
        else:
            yield "merged" if n > 0 and next_visits[n - 1] == visit else "found"
