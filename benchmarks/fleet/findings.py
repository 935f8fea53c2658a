"""What a crawl of the fleet is held to: every page once in the store, no site asked sooner than it may be."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import psycopg

from benchmarks.fleet.sites import Asked

# A page has one visit, one version and one event; the numbers of a domain's events have no gap.
RECORDED = """
    SELECT (SELECT count(*) FROM page WHERE version = 1) AS read,
           (SELECT count(*) FROM page WHERE version > 1) AS read_again,
           (SELECT count(*) FROM visit v JOIN page p USING (domain_id, key) WHERE p.version > 0) AS visits,
           (SELECT count(*) FROM (SELECT FROM event WHERE change = 'added'
                                   GROUP BY domain_id, key HAVING count(*) > 1) x) AS told_twice,
           (SELECT count(*) FROM (SELECT FROM event
                                   GROUP BY domain_id HAVING count(*) <> max(number)) x) AS with_gaps
"""
SLACK_S = 0.002  # the clock of the site reads its own end before the crawler has the answer


@dataclass(frozen=True, slots=True)
class Fleet:
    """What one crawl did.

    pages: that the sites gave.  again: requests for a page that had been asked for before, as when a page is looked at
    twice to learn what differs by itself, or when the one who had looked was killed before it could record.
    shortest_gap_s: between the end of an answer and the next request to the same site, whoever sent it.
    steady_pages_per_s: from when all workers crawled until the first of them had nothing left.
    """

    pages: int
    began: float
    ended: float
    by_host: Counter[str]
    again: int
    shortest_gap_s: float
    steady_pages_per_s: float


def fleet_of(asked: Sequence[Asked], paths: frozenset[str]) -> Fleet:
    """The figures of a log. paths: of the pages that there are."""
    pages = [each for each in asked if each.path in paths]
    times = Counter((each.site, each.path) for each in pages)
    hosts = {each.by for each in pages}
    began = max(min(each.began for each in pages if each.by == host) for host in hosts)
    ended = min(max(each.ended for each in pages if each.by == host) for host in hosts)
    steady = sum(began <= each.began and each.ended <= ended for each in pages)
    return Fleet(
        pages=len(times),
        began=min(each.began for each in pages),
        ended=max(each.ended for each in pages),
        by_host=Counter(each.by for each in pages),
        again=sum(times.values()) - len(times),
        shortest_gap_s=min(gaps_of(asked), default=float("inf")),
        steady_pages_per_s=steady / (ended - began) if ended > began else 0.0,
    )


def gaps_of(asked: Sequence[Asked]) -> Iterator[float]:
    """Of each request to a site but its first: seconds since the answer before, below 0 where that was under way."""
    sites: defaultdict[str, list[Asked]] = defaultdict(list)
    for each in sorted(asked, key=lambda each: each.began):
        sites[each.site].append(each)
    for requests in sites.values():
        yield from (after.began - before.ended for before, after in pairwise(requests))


def problems(found: Fleet, url: str, *, wanted_pages: int, delay_s: float) -> list[str]:
    """What went wrong, one sentence each; nothing, if all is well. url: of the crawl's database."""
    with psycopg.connect(url) as connection:
        row = connection.execute(RECORDED).fetchone()
    assert row is not None
    read, read_again, visits, told_twice, with_gaps = row
    said = []
    if read != wanted_pages or found.pages != wanted_pages:
        said.append(f"{found.pages} pages were asked for and {read} recorded, of {wanted_pages}")
    if read_again or told_twice or visits != read:
        said.append(f"{read_again} pages have two versions, {told_twice} two events, {visits} visits of {read} pages")
    if with_gaps:
        said.append(f"the events of {with_gaps} domains are numbered with gaps")
    if found.shortest_gap_s < delay_s - SLACK_S:
        said.append(f"a site was asked {found.shortest_gap_s:.3f} s after its answer; its delay is {delay_s} s")
    return said
