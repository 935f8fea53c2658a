"""A user's rules for the pages of a pattern: how often to look, how much they matter, how many there may be."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta

from crawler.core.http.urls import Url, UrlPattern, get_path_and_query, list_refusals, parse_pattern
from crawler.core.page.selectors import FULL_VIEW, View, merge_views
from crawler.core.rendering.memory import RenderMode

MAX_SELECTORS = 50  # selectors to ignore, to watch, and expressions


@dataclass(frozen=True, slots=True)
class PageRule:
    """A rule for the pages whose path and query match `pattern`, written as in Scope. None: the rule leaves it open.

    min_interval, max_interval: the shortest and the longest time from one look at a page to the next.
    weight: how many times as important such a page is.  once: a page that was had is not looked at again.
    max_pages: so many pages of the pattern are admitted, 0 for none.
    view: the parts of such a page that are compared.  render: whether such a page is rendered in a browser.
    ValueError, a sentence for a person, if these contradict each other.
    """

    pattern: str
    min_interval: timedelta | None = None
    max_interval: timedelta | None = None
    weight: float | None = None
    once: bool = False
    max_pages: int | None = None
    view: View = FULL_VIEW
    render: RenderMode | None = None
    _matches: UrlPattern = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_matches", parse_pattern(self.pattern))
        if any(
            interval is not None and interval <= timedelta(0) for interval in (self.min_interval, self.max_interval)
        ):
            raise ValueError(f"an interval of the rule for {self.pattern} is not above 0")
        if self.min_interval is not None and self.max_interval is not None and self.min_interval > self.max_interval:
            raise ValueError(f"the least interval of the rule for {self.pattern} is longer than the most")
        if self.weight is not None and not 0 < self.weight < float("inf"):
            raise ValueError(f"the weight of the rule for {self.pattern} is not above 0")
        if self.max_pages is not None and self.max_pages < 0:
            raise ValueError(f"the rule for {self.pattern} cannot admit {self.max_pages} pages")
        if max(map(len, (self.view.ignore, self.view.watch, self.view.ignore_text))) > MAX_SELECTORS:
            raise ValueError(f"{MAX_SELECTORS} of a kind are the most places that the rule for {self.pattern} may name")

    @property
    def has_effect(self) -> bool:
        return self.has_terms or bool(self.view) or self.render is not None or self.max_pages is not None

    @property
    def has_terms(self) -> bool:
        """Whether it says how often to look at such a page, or how much it matters."""
        return self.once or (self.min_interval, self.max_interval, self.weight) != (None, None, None)

    def matches(self, url: Url) -> bool:
        return bool(self._matches.search(get_path_and_query(url)))

    @property
    def problems(self) -> tuple[str, ...]:
        """Why its expressions are not used, a sentence for each of which that is so."""
        return (*list_refusals((self.pattern,)), *self.view.problems)


@dataclass(frozen=True, slots=True)
class RuleTerms:
    """The merged rules for one page. Always: least <= most where both are given.

    min_interval, max_interval: as in PageRule, None for the default.  weight: 1 unless a rule gives one.
    """

    min_interval: timedelta | None = None
    max_interval: timedelta | None = None
    weight: float = 1.0
    once: bool = False


@dataclass(frozen=True, slots=True)
class PageRules:
    """A domain's rules in their order; of each thing the first one that matches and says something about it holds.

    page_score: what else a page's importance is multiplied by, 0 or more; None for nothing.
    ValueError if two of them have the same pattern.
    """

    rules: tuple[PageRule, ...] = ()
    page_score: Callable[[Url], float] | None = None

    def __post_init__(self) -> None:
        check_unique_patterns(self.rules)

    def merge_terms(self, url: Url) -> RuleTerms:
        """The merged terms of all rules that match a page.

        A least and a most of two rules may contradict each other: then the one of the earlier rule holds for both.
        """
        min_interval = max_interval = weight = None
        once = False
        for rule in self.rules:
            if not rule.has_terms or not rule.matches(url):
                continue
            if min_interval is None and rule.min_interval is not None:
                min_interval = rule.min_interval if max_interval is None else min(rule.min_interval, max_interval)
            if max_interval is None and rule.max_interval is not None:
                max_interval = rule.max_interval if min_interval is None else max(rule.max_interval, min_interval)
            weight = rule.weight if weight is None else weight
            once = once or rule.once
        return RuleTerms(min_interval, max_interval, 1.0 if weight is None else weight, once)

    def compute_score(self, url: Url) -> float:
        """The page's score; 1 where nothing gives one."""
        return 1.0 if self.page_score is None else self.page_score(url)

    def compute_weight(self, url: Url) -> float:
        """How many times as important a page is by rules and score together."""
        return self.merge_terms(url).weight * self.compute_score(url)

    def merge_view(self, url: Url) -> View:
        """The merged View of all rules that match a page."""
        return merge_views(rule.view for rule in self.rules if rule.view and rule.matches(url))

    def get_render_mode(self, url: Url) -> RenderMode | None:
        """Whether a page is rendered in a browser; None where no rule says."""
        return next((rule.render for rule in self.rules if rule.render is not None and rule.matches(url)), None)

    def list_limiting_rules(self, url: Url) -> tuple[int, ...]:
        """The rules that limit the number of pages like this one, by index; the page counts for each of them."""
        return tuple(n for n, rule in enumerate(self.rules) if rule.max_pages is not None and rule.matches(url))


def check_unique_patterns(rules: tuple[PageRule, ...]) -> None:
    """ValueError, naming the pattern, if two rules have the same one."""
    seen: set[str] = set()
    for rule in rules:
        if rule.pattern in seen:
            raise ValueError(f"there are two rules for {rule.pattern}")
        seen.add(rule.pattern)
