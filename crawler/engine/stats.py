"""Counts of what a crawl did, for one lease or a whole shift."""

from collections import Counter, defaultdict
from collections.abc import Callable
from datetime import timedelta

from msgspec import Struct, field

from crawler.core.change.change import Change, Evidence
from crawler.core.domain import Domain, Suspension
from crawler.core.http.urls import Url
from crawler.core.rendering.outcome import RenderChoice
from crawler.core.visit.state import State
from crawler.core.visit.visit import Visit

MAX_LISTED_PAGES = 50  # for each kind of change
# In display order, after visits and changes.
OTHER_COUNTS = (
    *("failed", "reasons", "outages", "excluded", "rendered", "without_browser", "new_pages", "parsed_bodies"),
    *("requests", "received_bytes", "saved_bytes", "leases", "absent_lists", "dead_links", "dead_link_urls"),
)
REPORTED_CHANGES = frozenset({Change.ADDED, Change.CHANGED, Change.GONE, Change.MOVED, Change.RESTORED})


class NotablePage(Struct, frozen=True):
    """A page to report. reason: why its visit failed; empty if it did not fail."""

    url: Url
    reason: str = ""


class CrawlStats(Struct):
    """Counts of one lease or of a whole shift.

    visits: those that sent a request, without absent_lists.  new_pages: discovered pages that may be fetched.
    saved_bytes: bytes not transferred thanks to a 304 or a HEAD.  reasons: why visits failed; `failed` is their sum.
    excluded: pages that are not fetched because of robots.txt or the domain's scope.  rendered: pages that a browser
    rendered.  without_browser: pages that needed rendering while no browser was found.  outages: why domains could not
    be crawled at all; outages are no failed visits.  absent_lists: sitemaps and feeds that never existed.  dead_links:
    visits of pages that never existed; they are not changes.  dead_link_urls: the first dead links that a user added.
    notable_pages: the first pages to report for each change; UNKNOWN for failed visits.
    """

    visits: int = 0
    requests: int = 0
    new_pages: int = 0
    received_bytes: int = 0
    saved_bytes: int = 0
    not_modified: int = 0
    failed: int = 0
    excluded: int = 0
    rendered: int = 0
    without_browser: int = 0
    changes: Counter[Change] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    outages: Counter[str] = field(default_factory=Counter)
    parsed_bodies: int = 0  # bodies that had to be parsed, because they were not identical to the stored ones
    leases: int = 0
    absent_lists: int = 0
    dead_links: int = 0
    dead_link_urls: list[Url] = field(default_factory=list)
    notable_pages: defaultdict[Change, list[NotablePage]] = field(default_factory=lambda: defaultdict(list))
    elapsed: timedelta = timedelta(0)

    def add_visit(self, visit: Visit) -> None:
        """Count one recorded visit."""
        self.requests += visit.requests
        self.received_bytes += visit.received_bytes
        was_never_there = visit.is_good and visit.state is State.GONE and visit.target.version is None
        list_stats = visit.target.list_stats
        if was_never_there and list_stats is not None and not list_stats.kind:
            self.absent_lists += 1
            return
        self.visits += visit.requests
        self.saved_bytes += visit.saved_bytes
        self.not_modified += visit.verdict.evidence is Evidence.NOT_MODIFIED
        self.parsed_bodies += visit.links is not None
        self.new_pages += visit.list_result.new_pages if visit.list_result else 0
        if was_never_there:
            self.dead_links += 1
            if not visit.target.depth and len(self.dead_link_urls) < MAX_LISTED_PAGES:
                self.dead_link_urls.append(visit.target.url)
        else:
            self.changes[visit.reported_change] += 1
            if visit.reported_change in REPORTED_CHANGES:
                self._list_page(visit.reported_change, NotablePage(visit.target.url))
        if not visit.is_good and visit.requests:
            self.failed += 1
            self.reasons[visit.reason] += 1
            self._list_page(visit.change, NotablePage(visit.target.url, visit.reason))
        self.excluded += not visit.requests
        self.rendered += visit.rendering.added_words is not None
        self.without_browser += visit.rendering.outcome == RenderChoice.NO_BROWSER

    def merge(self, other: "CrawlStats") -> None:
        """Add the counts of another crawl, but not its elapsed time, because leases run concurrently."""
        for name in self.__struct_fields__:
            if name not in {"dead_link_urls", "notable_pages", "elapsed"}:
                setattr(self, name, getattr(self, name) + getattr(other, name))
        self.dead_link_urls += other.dead_link_urls[: MAX_LISTED_PAGES - len(self.dead_link_urls)]
        for change, pages in other.notable_pages.items():
            self.notable_pages[change] += pages[: MAX_LISTED_PAGES - len(self.notable_pages[change])]

    def _list_page(self, change: Change, page: NotablePage) -> None:
        if len(self.notable_pages[change]) < MAX_LISTED_PAGES:
            self.notable_pages[change].append(page)

    def count_unlisted(self, change: Change) -> int:
        """Return how many pages with this change are not listed in `notable_pages`."""
        count = self.failed if change is Change.UNKNOWN else self.changes[change]
        return max(count - len(self.notable_pages[change]), 0)

    def as_dict(self) -> dict[str, object]:
        """Return the counts by name, for JSON, artifacts and events."""
        counts: dict[str, object] = {"visits": self.visits, "not_modified": self.not_modified}
        counts |= {change.value: self.changes[change] for change in Change if change is not Change.UNKNOWN}
        for name in OTHER_COUNTS:
            count = getattr(self, name)
            counts[name] = dict(count.most_common()) if isinstance(count, Counter) else count
        return counts | {"seconds": round(self.elapsed.total_seconds(), 2)}


Progress = Callable[[CrawlStats], None]


class LeaseResult(Struct, frozen=True):
    """The result of one lease. suspension: why the domain is suspended now, or None."""

    stats: CrawlStats
    suspension: Suspension | None


class ShiftResult(Struct):
    """The result of a shift: counts in total and by domain, and suspended domains.

    lost: domains that another worker claimed.  broken: domains whose crawl ended with an internal error, and the error.
    """

    stats: CrawlStats = field(default_factory=CrawlStats)
    by_domain: dict[str, CrawlStats] = field(default_factory=dict)
    suspensions: dict[str, Suspension] = field(default_factory=dict)
    lost: list[str] = field(default_factory=list)
    broken: dict[str, str] = field(default_factory=dict)

    def add_lease(self, domain: Domain, result: LeaseResult) -> None:
        """Add the result of one lease."""
        self.stats.merge(result.stats)
        domain_stats = self.by_domain.setdefault(domain.authority, CrawlStats())
        domain_stats.merge(result.stats)
        domain_stats.elapsed += result.stats.elapsed
        if result.suspension is not None:
            self.suspensions[domain.authority] = result.suspension
