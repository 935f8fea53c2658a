"""Track which worker leases which site and what it requested there, to kill a worker in the middle of its sites."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit
from uuid import UUID

import psycopg

from benchmarks.fleet.sites import SiteRequest

Page = tuple[str, str]  # site and path
HELD = """
    SELECT split_part(d.authority, ':', 1), s.lease_token, split_part(s.holder, '/', 1)
      FROM domain_state s JOIN domain d ON d.id = s.domain_id
     WHERE s.leased_until > clock_timestamp()
"""


@dataclass(frozen=True, slots=True)
class HeldSite:
    """A live lease.

    site: its address.
    worker: the tag of its holder.
    since: monotonic seconds; the lease began then or earlier.
    """

    site: str
    worker: str
    since: float


@dataclass(frozen=True, slots=True)
class Killed:
    """The state of a worker when it was killed.

    requested: the pages requested under its leases, by site.
    recorded: those of them in the store.
    at: monotonic seconds.
    """

    requested: Mapping[str, frozenset[Page]]
    recorded: frozenset[Page]
    at: float

    @property
    def lost(self) -> frozenset[Page]:
        """Return the requested pages that were not recorded."""
        return frozenset(page for pages in self.requested.values() for page in pages) - self.recorded

    def describe(self, log: Sequence[SiteRequest]) -> str:
        """Describe what happened to its sites, from the whole log."""
        after = [each for each in log if each.site in self.requested and each.began > self.at]
        began = [min(each.began for each in after if each.site == site) for site in {each.site for each in after}]
        first_s, last_s = min(began) - self.at, max(began) - self.at
        again = {(each.site, each.path) for each in after} & self.lost
        many = sum(len(pages) for pages in self.requested.values())
        return (
            f"killed with SIGKILL while it held {len(self.requested)} sites; of {many} requested pages, "
            f"{len(self.lost)} were not recorded; other workers resumed {len(began)} of the sites {first_s:.1f} "
            f"to {last_s:.1f} s later and requested {len(again)} of the pages again"
        )

    def problems(self, log: Sequence[SiteRequest]) -> list[str]:
        """Return why the kill proves nothing, or that lost pages were not requested again."""
        found = [] if self.requested else ["the killed worker held no lease with a requested page"]
        left = self.lost - {(each.site, each.path) for each in log if each.began > self.at}
        return [*found, f"{len(left)} lost pages were not requested again"] if left else found


class LeaseWatch:
    """The leases of a crawl at each call. url: the database of the crawl."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._seen: dict[UUID, HeldSite] = {}

    def requested(self, log: Sequence[SiteRequest], paths: frozenset[str]) -> dict[str, dict[str, frozenset[Page]]]:
        """Return the pages requested under the live leases, by worker and site."""
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
    """Return the pages of which the store has a version."""
    with psycopg.connect(url) as connection:
        rows = connection.execute("SELECT url FROM page WHERE version > 0").fetchall()
    parts = (urlsplit(found) for (found,) in rows)
    return frozenset((each.hostname or "", each.path or "/") for each in parts)
