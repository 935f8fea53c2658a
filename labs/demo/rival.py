"""A rival for the living site: every known page in turn, with as many requests as the crawl made."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from heapq import heapify, heappop, heappush

from labs.demo.site import Serving, Site, mean_freshness
from labs.experiments.visits import ReplayedLook

Times = Mapping[str, Sequence[datetime]]


@dataclass(frozen=True, slots=True)
class Freshness:
    """True freshness averaged over a span, 0 to 1: with every page counted alike, and by importance."""

    plain: float
    weighted: float


@dataclass(frozen=True, slots=True)
class Match:
    """What two policies had over the same span of the same site, with equally many requests."""

    requests: int
    ours: Freshness
    uniform: Freshness

    @property
    def margin(self) -> Freshness:
        """By how much ours is above uniform."""
        return Freshness(self.ours.plain - self.uniform.plain, self.ours.weighted - self.uniform.weighted)


def match(
    site: Site,
    times: Times,
    *,
    importances: Mapping[str, float],
    requests: int,
    since: datetime,
    until: datetime,
    counted_from: datetime | None = None,
) -> Match:
    """Compare a crawl with looking at every known page in turn, over the pages that there are.

    times: when our copy of each path became what the page was, ascending; see `copied`.  importances: the mean page has
    1, as has one that is not named.  requests: that the crawl made after `since`.  counted_from: what was fresh before
    that is not counted; from `since` on, if not given.
    A page that is there and not known yet is not fresh; it is the same page for both.
    """
    turns = in_turn(site, times, requests=requests, since=since, until=until)
    span = counted_from or since, until

    def over(visits: Times) -> Freshness:
        return Freshness(
            plain=mean_freshness(site, visits, *span),
            weighted=mean_freshness(site, visits, *span, weights=importances),
        )

    return Match(requests, ours=over(times), uniform=over(turns))


def in_turn(site: Site, times: Times, *, requests: int, since: datetime, until: datetime) -> dict[str, list[datetime]]:
    """When a uniform policy would have copied each page: always the one longest unseen, at even distances in time.

    What was known before, and when each new page was first met, is the same for both; such a first look counts. A page
    that turns out to be gone has cost a request and is left out from then on.
    """
    found = {path: [at for at in seen if at <= since] or [seen[0]] for path, seen in times.items() if seen}
    turns = requests - sum(seen[0] > since for seen in found.values())
    waiting = [(seen[-1], path) for path, seen in found.items() if seen[0] > since or site.exists(path, since)]
    heapify(waiting)
    for n in range(turns):
        at = since + (n + 0.5) / turns * (until - since)
        if not waiting or waiting[0][0] > at:
            continue
        _, path = heappop(waiting)
        if site.exists(path, at):
            heappush(waiting, (at, path))
            if not site.sheet(path).is_broken(at) and not denies(site, path):
                found[path].append(at)
    return found


def copied(site: Site, looks_by_path: Mapping[str, Iterable[ReplayedLook]]) -> dict[str, list[datetime]]:
    """When our copy of each path became what the page was: not by looks at which the server denied its changes."""
    return {
        path: [look.at for n, look in enumerate(seen) if n == 0 or look.changed or not denies(site, path)]
        for path, seen in looks_by_path.items()
    }


def denies(site: Site, path: str) -> bool:
    """Whether the server answers "not modified" for ever, whatever became of the page."""
    return site.find(path) is not None and site.serving(path) is Serving.LIAR_FROZEN
