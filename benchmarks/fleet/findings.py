"""Check a crawl of the fleet: every page is stored once, and no site is requested before its delay is over."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import psycopg

from benchmarks.fleet.sites import SiteRequest

# Each page has one visit, one version and one event; event numbers of a domain have no gaps.
RECORDED = """
    SELECT (SELECT count(*) FROM page WHERE version = 1) AS read,
           (SELECT count(*) FROM page WHERE version > 1) AS read_again,
           (SELECT count(*) FROM visit v JOIN page p USING (domain_id, key) WHERE p.version > 0) AS visits,
           (SELECT count(*) FROM (SELECT FROM event WHERE change = 'added'
                                   GROUP BY domain_id, key HAVING count(*) > 1) x) AS told_twice,
           (SELECT count(*) FROM (SELECT FROM event
                                   GROUP BY domain_id HAVING count(*) <> max(number)) x) AS with_gaps
"""
SLACK_S = 0.002  # the site reads its clock before the crawler has the response


@dataclass(frozen=True, slots=True)
class Fleet:
    """The figures of one crawl.

    pages: pages that the sites sent.
    again: repeated requests for a page: second fetches that learn what varies, and pages of a killed worker.
    shortest_gap_s: the minimum time from the end of a response to the next request to the same site by any worker.
    steady_pages_per_s: the speed while all workers crawl, until the first of them has nothing left.
    """

    pages: int
    began: float
    ended: float
    by_host: Counter[str]
    again: int
    shortest_gap_s: float
    steady_pages_per_s: float


def fleet_of(requested: Sequence[SiteRequest], paths: frozenset[str]) -> Fleet:
    """Compute the figures of a log. paths: the paths of the pages that exist."""
    pages = [each for each in requested if each.path in paths]
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
        shortest_gap_s=min(gaps_of(requested), default=float("inf")),
        steady_pages_per_s=steady / (ended - began) if ended > began else 0.0,
    )


def gaps_of(requested: Sequence[SiteRequest]) -> Iterator[float]:
    """Yield the seconds from each response to the next request to the same site; negative if the requests overlap."""
    sites: defaultdict[str, list[SiteRequest]] = defaultdict(list)
    for each in sorted(requested, key=lambda each: each.began):
        sites[each.site].append(each)
    for requests in sites.values():
        yield from (after.began - before.ended for before, after in pairwise(requests))


def problems(found: Fleet, url: str, *, wanted_pages: int, delay_s: float) -> list[str]:
    """Return a sentence for each problem. url: the database of the crawl."""
    with psycopg.connect(url) as connection:
        row = connection.execute(RECORDED).fetchone()
    assert row is not None
    read, read_again, visits, added_twice, with_gaps = row
    found_problems = []
    if read != wanted_pages or found.pages != wanted_pages:
        found_problems.append(f"{found.pages} pages were requested and {read} recorded, of {wanted_pages}")
    if read_again or added_twice or visits != read:
        found_problems.append(
            f"{read_again} pages have two versions, {added_twice} two events, {visits} visits of {read} pages"
        )
    if with_gaps:
        found_problems.append(f"the event numbers of {with_gaps} domains have gaps")
    if found.shortest_gap_s < delay_s - SLACK_S:
        found_problems.append(
            f"a site got a request {found.shortest_gap_s:.3f} s after its last response; its delay is {delay_s} s"
        )
    return found_problems
