"""Rules of domains: settings for the pages that match a pattern."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import reduce
from typing import Any

from crawler.app.action_log import recorded
from crawler.app.database import AppDatabase
from crawler.core.domain import Domain
from crawler.core.http.urls import Url, get_path_and_query
from crawler.core.page.selectors import View
from crawler.core.page_rules import PageRule
from crawler.core.rendering.mode import RenderMode
from crawler.core.tags import LayeredSettings
from crawler.errors import BadInput, NotFound
from crawler.store import domains
from crawler.store.domain_rows import count_limited_pages

RulesChange = Callable[[tuple[PageRule, ...]], tuple[PageRule, ...]]

MAX_RULES = 1000  # each is evaluated for every page that is dispatched


def make_rule(build: Callable[[], PageRule]) -> PageRule:
    """Return the rule that `build` creates. Raises BadInput if it raises ValueError or the rule has no effect."""
    try:
        rule = build()
    except ValueError as error:
        raise BadInput(str(error)) from error
    if not rule.has_effect:
        raise BadInput(
            f"the rule for {rule.pattern} has no effect: add --min-interval, --max-interval, --weight, --once, "
            "--max-pages, --ignore, --ignore-text, --watch, --value or --render"
        )
    return rule


def merge_rule(before: Sequence[PageRule], rule: PageRule, *, first: bool = False) -> tuple[PageRule, ...]:
    """Return the rules with one added (`first`: at the top), or replaced if its pattern exists. Raises BadInput."""
    others = tuple(each for each in before if each.pattern != rule.pattern)
    if len(others) >= MAX_RULES:
        raise BadInput(f"a domain may have at most {MAX_RULES} rules")
    if first:
        return (rule, *others)
    if len(others) == len(before):
        return (*before, rule)
    return tuple(rule if each.pattern == rule.pattern else each for each in before)


@recorded("add rule")
async def add_rule(db: AppDatabase, domain: Domain, rule: PageRule, *, first: bool = False, at: datetime) -> Domain:
    """Add a rule as `merge_rule` does; return the changed domain. Raises BadInput."""
    return await change_rules(db, domain, lambda rules: merge_rule(rules, rule, first=first), at=at)


@recorded("add rule")
async def add_terms(
    db: AppDatabase, /, domain: Domain, patterns: Sequence[str], *, at: datetime, **terms: Any
) -> Domain:
    """Set terms in the rules of patterns; return the changed domain. Raises BadInput.

    New rules are added before all others, so that they apply.
    """

    def merge(rules: tuple[PageRule, ...], pattern: str) -> tuple[PageRule, ...]:
        before = next((rule for rule in rules if rule.pattern == pattern), None)
        return merge_rule(rules, replace(before or PageRule(pattern), **terms), first=before is None)

    return await change_rules(db, domain, lambda rules: reduce(merge, patterns, rules), at=at)


@recorded("remove rule")
async def remove_rule(db: AppDatabase, domain: Domain, pattern: str, *, at: datetime) -> Domain:
    """Remove the rule with this pattern; return the changed domain. Raises NotFound if there is none."""

    def remove(before: tuple[PageRule, ...]) -> tuple[PageRule, ...]:
        after = tuple(rule for rule in before if rule.pattern != pattern)
        if len(after) == len(before):
            patterns = ", ".join(rule.pattern for rule in before) or "none"
            raise NotFound(f"there is no rule for {pattern}; the existing patterns are: {patterns}")
        return after

    return await change_rules(db, domain, remove, at=at)


async def change_rules(db: AppDatabase, domain: Domain, change: RulesChange, *, at: datetime) -> Domain:
    """Change the stored rules of a domain; return the changed domain. change: gets and returns rules."""

    def change_layers(layers: LayeredSettings) -> LayeredSettings:
        return layers.set_own({"rules": change(layers.own["rules"])})

    return await domains.update_settings(db, domain, change_layers, at=at)


def parse_rule(document: Mapping[str, Any]) -> PageRule:
    """Return the rule of a document as `describe_rule` returns it. Raises BadInput for invalid values."""
    values = {name: document[name] for name in ("pattern", "weight", "once", "max_pages", "render")}
    for name in ("min_interval", "max_interval"):
        seconds = document[f"{name}_seconds"]
        values[name] = None if seconds is None else timedelta(seconds=seconds)
    view = {name: tuple(document[name]) for name in ("ignore", "watch", "ignore_text", "values")}
    return make_rule(lambda: PageRule(**values, view=View(**view)))


def make_page_pattern(url: Url) -> str:
    """Return the pattern that matches only this page. A * in its URL stands for any text."""
    return f"{get_path_and_query(url)}$"


def describe_rule(rule: PageRule) -> dict[str, Any]:
    """Return a rule for JSON."""
    return {
        "pattern": rule.pattern,
        "min_interval_seconds": None if rule.min_interval is None else rule.min_interval.total_seconds(),
        "max_interval_seconds": None if rule.max_interval is None else rule.max_interval.total_seconds(),
        "weight": rule.weight,
        "once": rule.once,
        "max_pages": rule.max_pages,
        "ignore": rule.view.ignore,
        "watch": rule.view.watch,
        "ignore_text": rule.view.ignore_text,
        "values": rule.view.values,
        "render": rule.render,
    }
