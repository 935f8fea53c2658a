"""Uniform revisits of the living site for comparison: every known page in turn, with as many requests as the crawl."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from heapq import heapify, heappop, heappush

from labs.demo.site import Serving, Site, mean_freshness
from labs.experiments.visits import ReplayedLook

Times = Mapping[str, Sequence[datetime]]


@dataclass(frozen=True, slots=True)
class Freshness:
    """True freshness averaged over a span, 0 to 1: with all pages equal, and by importance."""

    plain: float
    weighted: float


@dataclass(frozen=True, slots=True)
class Match:
    """The freshness of two policies over the same span of the same site, with equally many requests."""

    requests: int
    ours: Freshness
    uniform: Freshness

    @property
    def margin(self) -> Freshness:
        """Return how much fresher ours is than uniform."""
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
    """Compare a crawl with uniform revisits of every known page, over the existing pages.

    times: when our copy of each path became current, ascending; see `copied`.  importances: by path; the mean and the
    default are 1.  requests: of the crawl after `since`.  counted_from: freshness before this is not counted; default:
    `since`.
    An existing page that is not known yet is not fresh; this is the same for both policies.
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
    """Return when uniform revisits would copy each page: always the one longest unvisited, evenly spaced in time.

    Pages known before, and the first visits of new pages, are the same for both policies. Each first visit, and each
    visit that finds a page gone, counts as a request; pages found gone are skipped from then on.
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
            if not site.sheet(path).is_broken(at) and not hides_changes(site, path):
                found[path].append(at)
    return found


def copied(site: Site, visits_by_path: Mapping[str, Iterable[ReplayedLook]]) -> dict[str, list[datetime]]:
    """Return when our copy of each path became current, without visits at which the server hid changes."""
    return {
        path: [look.at for n, look in enumerate(seen) if n == 0 or look.changed or not hides_changes(site, path)]
        for path, seen in visits_by_path.items()
    }


def hides_changes(site: Site, path: str) -> bool:
    """Return whether the server always responds with "not modified", even after changes."""
    return site.find(path) is not None and site.serving(path) is Serving.LIAR_FROZEN
