"""A user's rules for pages that match a pattern: intervals, weight, number of pages, parts, values and rendering."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta

from msgspec import Struct

from crawler.core.http.urls import Url, UrlPattern, get_path_and_query, list_pattern_problems, parse_pattern
from crawler.core.page.selectors import FULL_VIEW, View, merge_views
from crawler.core.rendering.mode import RenderMode

MAX_SELECTORS = 50  # per rule and kind: selectors to ignore, selectors to watch, expressions, and values


@dataclass(frozen=True, slots=True)
class PageRule:
    """A rule for pages whose path and query match `pattern` (written as in Scope). None means not set.

    min_interval, max_interval: the bounds of the time between two visits to a page.
    weight: a factor on the importance of a page.  once: a fetched page is only revisited on request.
    max_pages: the maximum number of pages that match the pattern; 0 admits none.
    view: the parts of a page that are compared, and values.  render: whether pages are rendered in a browser.
    Raises ValueError with a message for the user if a value is invalid or values contradict each other.
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
        intervals = [each for each in (self.min_interval, self.max_interval) if each is not None]
        if any(each <= timedelta(0) for each in intervals):
            raise ValueError(f"an interval in the rule for {self.pattern} is not above 0")
        if intervals != sorted(intervals):
            raise ValueError(f"in the rule for {self.pattern}, the minimum interval is longer than the maximum")
        if self.weight is not None and not 0 < self.weight < float("inf"):
            raise ValueError(f"the weight of the rule for {self.pattern} is not above 0")
        if self.max_pages is not None and self.max_pages < 0:
            raise ValueError(f"the maximum number of pages in the rule for {self.pattern} is below 0: {self.max_pages}")
        if max(map(len, (self.view.ignore, self.view.watch, self.view.ignore_text, self.view.values))) > MAX_SELECTORS:
            raise ValueError(
                f"the rule for {self.pattern} has more than {MAX_SELECTORS} selectors or values of one kind"
            )

    @property
    def has_effect(self) -> bool:
        return self.has_terms or bool(self.view) or self.render is not None or self.max_pages is not None

    @property
    def has_terms(self) -> bool:
        """Return whether the rule sets an interval, a weight, or `once`."""
        return self.once or (self.min_interval, self.max_interval, self.weight) != (None, None, None)

    def matches(self, url: Url) -> bool:
        return bool(self._matches.search(get_path_and_query(url)))

    @property
    def problems(self) -> tuple[str, ...]:
        """Return why the pattern or expressions are not supported, one sentence each."""
        return (*list_pattern_problems((self.pattern,)), *self.view.problems)


class RuleTerms(Struct, frozen=True):
    """The merged terms of all rules for one page: its intervals, weight and `once`.

    Invariant: min_interval <= max_interval if both are set.
    min_interval, max_interval: as in PageRule; None means the default.
    """

    min_interval: timedelta | None = None
    max_interval: timedelta | None = None
    weight: float = 1.0
    once: bool = False


@dataclass(frozen=True, slots=True)
class PageRules:
    """The rules of a domain, in order.

    For each interval, the weight and `render`, the first matching rule that sets it applies; intervals that contradict
    each other are adjusted (merge_terms). All matching rules apply for `once`, `view` and `max_pages`.
    page_score: returns a further factor on the importance of a page, 0 or more; None for no factor.
    Raises ValueError if two rules have the same pattern.
    """

    rules: tuple[PageRule, ...] = ()
    page_score: Callable[[Url], float] | None = None

    def __post_init__(self) -> None:
        check_unique_patterns(self.rules)

    def merge_terms(self, url: Url) -> RuleTerms:
        """Merge the terms of all rules that match a page.

        If the minimum of one rule and the maximum of another contradict each other, the earlier rule sets both.
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
        """Return the score that `page_score` gives a page, or 1 without page_score."""
        return 1.0 if self.page_score is None else self.page_score(url)

    def compute_weight(self, url: Url) -> float:
        """Return the factor on a page's importance from rules and score together."""
        return self.merge_terms(url).weight * self.compute_score(url)

    def merge_view(self, url: Url) -> View:
        """Merge the views of all rules that match a page."""
        return merge_views(rule.view for rule in self.rules if rule.view and rule.matches(url))

    def get_render_mode(self, url: Url) -> RenderMode | None:
        """Return the render mode of a page, or None if no rule sets it."""
        return next((rule.render for rule in self.rules if rule.render is not None and rule.matches(url)), None)

    def list_limiting_rules(self, url: Url) -> tuple[int, ...]:
        """Return the indexes of matching rules that limit the number of pages; the page counts toward each limit."""
        return tuple(n for n, rule in enumerate(self.rules) if rule.max_pages is not None and rule.matches(url))


def check_unique_patterns(rules: tuple[PageRule, ...]) -> None:
    """Raise ValueError if two rules have the same pattern."""
    seen: set[str] = set()
    for rule in rules:
        if rule.pattern in seen:
            raise ValueError(f"there are two rules for {rule.pattern}")
        seen.add(rule.pattern)
