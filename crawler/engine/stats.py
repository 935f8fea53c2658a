"""What a crawl did, counted while it goes on: one lease, or a whole shift."""

from collections import Counter, defaultdict
from dataclasses import dataclass, field, fields
from datetime import timedelta

from crawler.core.change.change import Change, Rung
from crawler.core.domain import Domain, Hold
from crawler.core.http.urls import Url
from crawler.core.rendering.outcome import RenderChoice
from crawler.core.visit.visit import State, Visit

MOST_NAMED = 50  # pages of each kind
# In the order in which they are shown, after looks and changes.
OTHER_COUNTS = (
    *("failed", "reasons", "outages", "refused", "rendered", "browserless", "new", "read", "requests"),
    *("received_bytes", "saved_bytes", "leases", "absent_lists", "dead_links", "never_there"),
)
TOLD = frozenset({Change.FIRST, Change.CHANGED, Change.GONE, Change.MOVED, Change.BACK})


@dataclass(frozen=True, slots=True)
class FoundPage:
    """A page of which there is something to tell. reason: why its look failed; empty where it did not."""

    url: Url
    reason: str = ""


@dataclass(slots=True)
class CrawlStats:
    """Counts of one lease or of a whole shift.

    new: pages heard of for the first time, not yet fetched.  reasons: of `failed`, which is their sum.  refused: pages
    that are not asked for, by robots.txt or by their user's wish.  rendered: pages that a browser has shown.
    browserless: pages that would have been, and no browser was found.  outages: why domains could not be crawled, each
    one before any look; these are no looks that failed.  absent_lists: looks for sitemaps and feeds
    that are not there and never were, at their usual places.  dead_links: looks at pages that are not there and never
    were; of no change.  never_there: the first of these that somebody has named.  pages: the first ones that are worth
    telling, by what was found; UNKNOWN for looks that failed.
    """

    looks: int = 0
    requests: int = 0
    new: int = 0
    received_bytes: int = 0
    saved_bytes: int = 0
    not_modified: int = 0
    failed: int = 0
    refused: int = 0
    rendered: int = 0
    browserless: int = 0
    changes: Counter[Change] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    outages: Counter[str] = field(default_factory=Counter)
    read: int = 0  # bodies that had to be parsed
    leases: int = 0
    absent_lists: int = 0
    dead_links: int = 0
    never_there: list[Url] = field(default_factory=list)
    pages: defaultdict[Change, list[FoundPage]] = field(default_factory=lambda: defaultdict(list))
    elapsed: timedelta = timedelta(0)

    def add(self, visit: Visit) -> None:
        """Count one recorded visit."""
        self.requests += visit.requests
        self.received_bytes += visit.received_bytes
        was_never_there = visit.is_good and visit.state is State.GONE and visit.target.version is None
        known = visit.target.known_list
        if was_never_there and known is not None and not known.kind:
            self.absent_lists += 1
            return
        self.looks += visit.requests
        self.saved_bytes += visit.saved_bytes
        self.not_modified += visit.verdict.rung is Rung.NOT_MODIFIED
        self.read += visit.links is not None
        self.new += visit.list_news.new_pages if visit.list_news else 0
        if was_never_there:
            self.dead_links += 1
            if not visit.target.depth and len(self.never_there) < MOST_NAMED:
                self.never_there.append(visit.target.url)
        else:
            self.changes[visit.told] += 1
            if visit.told in TOLD:
                self._name(visit.told, FoundPage(visit.target.url))
        if not visit.is_good and visit.requests:
            self.failed += 1
            self.reasons[visit.reason] += 1
            self._name(visit.change, FoundPage(visit.target.url, visit.reason))
        self.refused += not visit.requests
        self.rendered += visit.rendering.words is not None
        self.browserless += visit.rendering.word == RenderChoice.NO_BROWSER

    def merge(self, other: "CrawlStats") -> None:
        """Add what another crawl counted, without its time, since leases run side by side."""
        for each in fields(self):
            if each.name not in {"never_there", "pages", "elapsed"}:
                setattr(self, each.name, getattr(self, each.name) + getattr(other, each.name))
        self.never_there += other.never_there[: MOST_NAMED - len(self.never_there)]
        for change, pages in other.pages.items():
            self.pages[change] += pages[: MOST_NAMED - len(self.pages[change])]

    def _name(self, change: Change, page: FoundPage) -> None:
        if len(self.pages[change]) < MOST_NAMED:
            self.pages[change].append(page)

    def unnamed(self, change: Change) -> int:
        """How many pages of which this was found are not among `pages`."""
        found = self.failed if change is Change.UNKNOWN else self.changes[change]
        return max(found - len(self.pages[change]), 0)

    def as_dict(self) -> dict[str, object]:
        """The counts by name, for JSON, artifacts and events."""
        found: dict[str, object] = {"looks": self.looks, "not_modified": self.not_modified}
        found |= {change.value: self.changes[change] for change in Change if change is not Change.UNKNOWN}
        for name in OTHER_COUNTS:
            count = getattr(self, name)
            found[name] = dict(count.most_common()) if isinstance(count, Counter) else count
        return found | {"seconds": round(self.elapsed.total_seconds(), 2)}


@dataclass(frozen=True, slots=True)
class LeaseResult:
    """What came of one lease. hold: why the domain is left alone now, or None."""

    stats: CrawlStats
    hold: Hold | None


@dataclass(slots=True)
class ShiftResult:
    """What a shift did: in all, by domain, and which domains are left alone now.

    lost: domains that another worker took over.  broken: domains that an error of our own has ended, and which error.
    """

    stats: CrawlStats = field(default_factory=CrawlStats)
    by_domain: dict[str, CrawlStats] = field(default_factory=dict)
    holds: dict[str, Hold] = field(default_factory=dict)
    lost: list[str] = field(default_factory=list)
    broken: dict[str, str] = field(default_factory=dict)

    def take_in(self, domain: Domain, done: LeaseResult) -> None:
        """Add what one lease did."""
        self.stats.merge(done.stats)
        own = self.by_domain.setdefault(domain.authority, CrawlStats())
        own.merge(done.stats)
        own.elapsed += done.stats.elapsed
        if done.hold is not None:
            self.holds[domain.authority] = done.hold
