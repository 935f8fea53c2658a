"""A user's rules for the pages of a pattern: how often to look, how much they matter, how many there may be."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta

from crawler.core.http.urls import Pattern, Url, path_and_query, pattern_of, refusals_of
from crawler.core.page.selectors import WHOLE, View, together
from crawler.core.rendering.memory import RenderMode

MOST_SAID = 50  # selectors to ignore, to watch, and expressions


@dataclass(frozen=True, slots=True)
class PageRule:
    """A rule for the pages whose path and query match `pattern`, written as in Scope. None: the rule leaves it open.

    least, most: the shortest and the longest time from one look at a page to the next.
    weight: how many times as important such a page is.  once: a page that was had is not looked at again.
    max_pages: so many pages of the pattern are admitted, 0 for none.
    view: the parts of such a page that are compared.  render: whether such a page is rendered in a browser.
    ValueError, a sentence for a person, if these contradict each other.
    """

    pattern: str
    least: timedelta | None = None
    most: timedelta | None = None
    weight: float | None = None
    once: bool = False
    max_pages: int | None = None
    view: View = WHOLE
    render: RenderMode | None = None
    _matches: Pattern = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_matches", pattern_of(self.pattern))
        if any(interval is not None and interval <= timedelta(0) for interval in (self.least, self.most)):
            raise ValueError(f"an interval of the rule for {self.pattern} is not above 0")
        if self.least is not None and self.most is not None and self.least > self.most:
            raise ValueError(f"the least interval of the rule for {self.pattern} is longer than the most")
        if self.weight is not None and not 0 < self.weight < float("inf"):
            raise ValueError(f"the weight of the rule for {self.pattern} is not above 0")
        if self.max_pages is not None and self.max_pages < 0:
            raise ValueError(f"the rule for {self.pattern} cannot admit {self.max_pages} pages")
        if max(map(len, (self.view.ignore, self.view.watch, self.view.ignore_text))) > MOST_SAID:
            raise ValueError(f"{MOST_SAID} of a kind are the most places that the rule for {self.pattern} may name")

    @property
    def says_something(self) -> bool:
        return self.is_on_terms or bool(self.view) or self.render is not None or self.max_pages is not None

    @property
    def is_on_terms(self) -> bool:
        """Whether it says how often to look at such a page, or how much it matters."""
        return self.once or (self.least, self.most, self.weight) != (None, None, None)

    def matches(self, url: Url) -> bool:
        return bool(self._matches.search(path_and_query(url)))

    @property
    def refusals(self) -> tuple[str, ...]:
        """Why its expressions are not used, a sentence for each of which that is so."""
        return (*refusals_of((self.pattern,)), *self.view.refusals)


@dataclass(frozen=True, slots=True)
class RuleResult:
    """The merged rules for one page. Always: least <= most where both are given.

    least, most: as in PageRule, None for the default.  weight: 1 unless a rule gives one.
    """

    least: timedelta | None = None
    most: timedelta | None = None
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
        refuse_twins(self.rules)

    def terms(self, url: Url) -> RuleResult:
        """The merged terms of all rules that match a page.

        A least and a most of two rules may contradict each other: then the one of the earlier rule holds for both.
        """
        least = most = weight = None
        once = False
        for rule in self.rules:
            if not rule.is_on_terms or not rule.matches(url):
                continue
            if least is None and rule.least is not None:
                least = rule.least if most is None else min(rule.least, most)
            if most is None and rule.most is not None:
                most = rule.most if least is None else max(rule.most, least)
            weight = rule.weight if weight is None else weight
            once = once or rule.once
        return RuleResult(least, most, 1.0 if weight is None else weight, once)

    def score(self, url: Url) -> float:
        """The page's score; 1 where nothing gives one."""
        return 1.0 if self.page_score is None else self.page_score(url)

    def weight(self, url: Url) -> float:
        """How many times as important a page is by rules and score together."""
        return self.terms(url).weight * self.score(url)

    def view(self, url: Url) -> View:
        """The merged View of all rules that match a page."""
        return together(rule.view for rule in self.rules if rule.view and rule.matches(url))

    def render(self, url: Url) -> RenderMode | None:
        """Whether a page is rendered in a browser; None where no rule says."""
        return next((rule.render for rule in self.rules if rule.render is not None and rule.matches(url)), None)

    def limiting(self, url: Url) -> tuple[int, ...]:
        """The rules that limit the number of pages like this one, by index; the page counts for each of them."""
        return tuple(n for n, rule in enumerate(self.rules) if rule.max_pages is not None and rule.matches(url))


def refuse_twins(rules: tuple[PageRule, ...]) -> None:
    """ValueError, naming the pattern, if two rules have the same one."""
    seen: set[str] = set()
    for rule in rules:
        if rule.pattern in seen:
            raise ValueError(f"there are two rules for {rule.pattern}")
        seen.add(rule.pattern)
