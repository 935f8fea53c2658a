"""The settings of a domain."""

from dataclasses import dataclass, field
from datetime import timedelta

from crawler.core.cash import Ordering
from crawler.core.http import Url
from crawler.core.page_rules import PageRule, refuse_twins


@dataclass(frozen=True, slots=True)
class DomainSettings:
    """What a user may say about a domain. None and empty mean: as everywhere.

    external_links: as how many links within the domain one to another domain counts, when a page's cash is shared out.
    target_freshness: the share of importance that is to be fresh, above 0 and below 1.  target_age: no page is to be
    longer unseen. At most one of them; the budgets cap what a target may use.
    rules: about pages of a pattern, each pattern once.
    ValueError, a sentence for the user, for two targets, an impossible one, or two rules of one pattern.
    """

    seeds: tuple[Url, ...] = ()
    weight: float = 1.0
    budget_per_day: int | None = None  # requests per UTC day
    bytes_per_day: int | None = None  # received in a UTC day
    target_freshness: float | None = None
    target_age: timedelta | None = None
    delay: timedelta | None = None
    parallelism: int | None = None
    max_depth: int | None = None
    max_pages: int | None = None
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    allow_private: bool = False
    ordering: Ordering = field(default_factory=Ordering)
    external_links: float = 0.0
    rules: tuple[PageRule, ...] = ()

    def __post_init__(self) -> None:
        refuse_twins(self.rules)
        if self.target_freshness is not None and self.target_age is not None:
            raise ValueError("a domain has one target, a share that is fresh or an age, and not both")
        if self.target_freshness is not None and not 0 < self.target_freshness < 1:
            raise ValueError(f"a target of {self.target_freshness:g} is not between 0 and 1")
        if self.target_age is not None and self.target_age <= timedelta(0):
            raise ValueError("a target age must be above 0")
