"""The terms of the next visit to a page: its shadow price, its interval bounds, and the reason if it is requested."""

from collections.abc import Callable, Mapping
from datetime import timedelta
from enum import IntEnum

from msgspec import Struct, field

from crawler.core.freshness.estimates import PRIOR, ExpectedMagnitude, RateEstimate
from crawler.core.freshness.policies import NO_PLUGIN_POLICIES, VALUE_POLICY, RevisitPolicy
from crawler.core.freshness.signals import SourceQuality
from crawler.core.http.urls import Url


class RequestReason(IntEnum):
    """The reason for a requested visit, which is made at any price."""

    NONE = 0
    BY_USER = 1
    BY_AUDIT = 2  # part of a random sample
    BY_CANONICAL = 3  # the canonical page of its shared schedule changed
    BY_URL = 4  # a user named this page
    TO_CONFIRM = 5  # to confirm a first 404
    TO_RENDER = 6  # stored without the content that its scripts add; a browser should render it
    BY_DEADLINE = 7  # a reason that is never stored: new content was withheld for MAX_WITHHELD (core/soft_errors.py)
    BY_LIST = 8  # a sitemap or feed lists this URL, which was never a page so far


USER_REQUESTS = frozenset({RequestReason.BY_USER, RequestReason.BY_URL})
PRIORITY_REQUESTS = USER_REQUESTS | {RequestReason.TO_CONFIRM}  # not paced and before all others, highest number first


class VisitTerms(Struct, frozen=True):
    """The terms of a page's next visit.

    shadow_price: the minimum value of this visit in importance x days: the domain's price times the cost of the visit.
    prior: of the page's group.  magnitude: the expected change magnitude of its group; None means that all changes
    count the same.  once: the page is not revisited.  is_ruled: a user's rule sets `max_interval`; then a visit at this
    interval is not a floor visit (core/freshness/selection.py).  sources: the qualities of the domain's sources of
    change signals.
    """

    shadow_price: float = 0.25
    min_interval: timedelta = timedelta(minutes=10)
    max_interval: timedelta = timedelta(days=180)
    prior: RateEstimate = PRIOR
    magnitude: ExpectedMagnitude | None = None
    revisit: RevisitPolicy = VALUE_POLICY
    once: bool = False
    is_ruled: bool = False
    sources: tuple[SourceQuality, ...] = ()


DEFAULT_TERMS = VisitTerms()


class CrawlDefaults(Struct, frozen=True):
    """The defaults if neither plan nor rules give a value, and the guaranteed shares of discovery and revisits.

    shadow_price: the minimum value of a request in importance x days.  budget_per_day, bytes_per_day: for all domains
    together.  fills_budgets: spend a domain's own budget over the day even if no page reaches the price.
    page_score: a factor on the importance of pages of all domains, in addition to rules, or None.
    plugin_policies: additional revisit policies, by name.
    """

    shadow_price: float
    min_interval: timedelta
    max_interval: timedelta
    discovery_share: float
    refresh_share: float
    budget_per_day: int | None = None
    bytes_per_day: int | None = None
    fills_budgets: bool = False
    page_score: Callable[[Url], float] | None = None
    plugin_policies: Mapping[str, RevisitPolicy] = field(default_factory=lambda: NO_PLUGIN_POLICIES)
