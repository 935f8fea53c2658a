"""Who holds which site, and what it was asked under that lease: so that a worker is killed in the middle of some."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit
from uuid import UUID

import psycopg

from benchmarks.fleet.sites import Asked

Page = tuple[str, str]  # site and path
HELD = """
    SELECT split_part(d.authority, ':', 1), s.lease_token, split_part(s.holder, '/', 1)
      FROM domain_state s JOIN domain d ON d.id = s.domain_id
     WHERE s.leased_until > clock_timestamp()
"""


@dataclass(frozen=True, slots=True)
class HeldSite:
    """A lease that lives.

    site: its address.  worker: the tag of who holds it.  since: monotonic seconds; it began then or before.
    """

    site: str
    worker: str
    since: float


@dataclass(frozen=True, slots=True)
class Killed:
    """What a worker was about when it was killed.

    asked: by site, the pages that it had been asked for under the lease that was held.  recorded: those of them that
    the store has.  at: monotonic seconds.
    """

    asked: Mapping[str, frozenset[Page]]
    recorded: frozenset[Page]
    at: float

    @property
    def lost(self) -> frozenset[Page]:
        """Pages whose answers went with the worker."""
        return frozenset(page for pages in self.asked.values() for page in pages) - self.recorded

    def told(self, log: Sequence[Asked]) -> str:
        """What became of its sites, by the whole log."""
        after = [each for each in log if each.site in self.asked and each.began > self.at]
        began = [min(each.began for each in after if each.site == site) for site in {each.site for each in after}]
        first_s, last_s = min(began) - self.at, max(began) - self.at
        again = {(each.site, each.path) for each in after} & self.lost
        many = sum(len(pages) for pages in self.asked.values())
        return (
            f"killed -9 while it held {len(self.asked)} sites and had asked them for {many} pages, of which "
            f"{len(self.lost)} were not recorded; others went on at {len(began)} of the sites, {first_s:.1f} "
            f"to {last_s:.1f} s later, and asked for {len(again)} of the pages again"
        )

    def problems(self, log: Sequence[Asked]) -> list[str]:
        """What shows that the kill proved nothing, or that pages which went with it were left."""
        said = [] if self.asked else ["the killed worker held no lease in which it had asked for a page"]
        left = self.lost - {(each.site, each.path) for each in log if each.began > self.at}
        return [*said, f"{len(left)} pages that went with the worker were never asked for again"] if left else said


class LeaseWatch:
    """The leases of a crawl, as often as somebody looks. url: of its database."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._seen: dict[UUID, HeldSite] = {}

    def asked(self, log: Sequence[Asked], paths: frozenset[str]) -> dict[str, dict[str, frozenset[Page]]]:
        """By worker and site, the pages that were asked for under the leases that live now."""
        with psycopg.connect(self._url) as connection:
            rows = connection.execute(HELD).fetchall()
        now = time.monotonic()
        self._seen = {token: self._seen.get(token, HeldSite(site, worker, now)) for site, token, worker in rows}
        found: dict[str, dict[str, frozenset[Page]]] = {}
        for held in self._seen.values():
            since = [each for each in log if each.site == held.site and each.began > held.since]
            if pages := frozenset((each.site, each.path) for each in since if each.path in paths):
                found.setdefault(held.worker, {})[held.site] = pages
        return found


def recorded_pages(url: str) -> frozenset[Page]:
    """The pages that the store of a crawl has a version of."""
    with psycopg.connect(url) as connection:
        rows = connection.execute("SELECT url FROM page WHERE version > 0").fetchall()
    parts = (urlsplit(found) for (found,) in rows)
    return frozenset((each.hostname or "", each.path or "/") for each in parts)
