"""The terms of the next look at a page: its price, its interval, and whether somebody asked for it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from enum import IntEnum

from crawler.core.freshness.estimates import PRIOR, ExpectedMagnitude, RateEstimate
from crawler.core.freshness.policies import NO_PLUGIN_POLICIES, VALUE_POLICY, RevisitPolicy
from crawler.core.freshness.signals import SourceQuality
from crawler.core.http.urls import Url


class RequestReason(IntEnum):
    """Reason for which a look is wanted whatever its value."""

    NONE = 0
    BY_USER = 1
    BY_AUDIT = 2  # one of a random sample
    BY_CANONICAL = 3  # the page that leads its shared schedule has changed
    BY_URL = 4  # by a user who named this very page: it comes before all others
    TO_CONFIRM = 5  # a first 404 is to be confirmed: it comes before all others once it is due
    TO_RENDER = 6  # it is stored without what its scripts write, and a browser should read it
    BY_DEADLINE = 7  # its new content was withheld as long as may be, and this visit ends that; never stored
    BY_LIST = 8  # it never was a page, and a sitemap or a feed names it


USER_REQUESTS = frozenset({RequestReason.BY_USER, RequestReason.BY_URL})
PRIORITY_REQUESTS = USER_REQUESTS | {RequestReason.TO_CONFIRM}  # visits that are not paced, and go before all others


@dataclass(frozen=True, slots=True)
class VisitTerms:
    """The terms of a page's next look.

    shadow_price: importance x days that this look must be worth; its cost is included.  min_interval, max_interval:
    bounds of the interval.  prior: of the page's group.  magnitude: how much its group's changes change; None: each change
    counts alike.  revisit: when the page is looked at again.  sources: what the sources of signals in this domain are
    worth, by their numbers.  once: the page is not looked at again.  is_ruled: `max_interval` is a user's rule; then
    such a look is no floor visit.
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


@dataclass(frozen=True, slots=True)
class CrawlDefaults:
    """The defaults where neither plan nor rules give a value, and the guaranteed shares of discovery and refresh.

    shadow_price: importance x days that a request must be worth.  budget_per_day, bytes_per_day: of all domains
    together.  fills_budgets: requests of a domain's own budget that no page is worth are made all the same, as the day
    goes by.  page_score: a factor on the importance of pages of all domains, beside that of rules; None: there is none.
    plugin_policies: revisit policies beside core's own, by name.
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
