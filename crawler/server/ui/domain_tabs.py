"""The parts of the page of a domain, each with the values that its template needs."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Any

from crawler.app.changes import FeedItem
from crawler.app.overview import DomainHead, FreshnessFacts, TrafficFacts
from crawler.app.pages import Domain
from crawler.app.status import format_wait
from crawler.format.domain_settings import format_opening, format_rule, format_sourced_settings
from crawler.format.lists import format_lists
from crawler.format.reports import BUDGET_SOURCES
from crawler.format.trust import format_trust
from crawler.server.ui import domain_plots
from crawler.server.ui.fields import GROUPS, NOTHING_TYPED, Typed, list_rule_fields, list_setting_fields
from crawler.server.ui.links import UiLinks


class Tab(StrEnum):
    """A part of the page of a domain."""

    CHANGES = "changes"
    PAGES = "pages"
    FRESHNESS = "freshness"
    TRAFFIC = "traffic"
    SETTINGS = "settings"
    RULES = "rules"


# The lengths of the freshness history, by their values in the URL.
RANGES = {
    "1d": ("24 hours", timedelta(days=1)),
    "7d": ("7 days", timedelta(days=7)),
    "30d": ("30 days", timedelta(days=30)),
    "90d": ("90 days", timedelta(days=90)),
    "365d": ("a year", timedelta(days=365)),
}
DEFAULT_RANGE = "30d"


@dataclass(frozen=True, slots=True)
class ChangedPage:
    """The changes of one page in a list. newest: its newest change.  earlier: the others in the list."""

    newest: FeedItem
    earlier: tuple[FeedItem, ...]


def group_by_page(items: Iterable[FeedItem]) -> list[ChangedPage]:
    """Return the changes of each page, in the order of their newest ones."""
    by_url: dict[str, list[FeedItem]] = {}
    for item in items:
        by_url.setdefault(item.url, []).append(item)
    return [ChangedPage(newest, tuple(earlier)) for newest, *earlier in by_url.values()]


def describe_head(head: DomainHead) -> dict[str, str]:
    """Return why a domain waits, and its crawl hours."""
    return {
        "waits": format_wait(head.wait, head.domain, now=head.at),
        "opening": format_opening(head.domain, at=head.at),
    }


def describe_freshness(facts: FreshnessFacts, links: UiLinks, *, span: str = DEFAULT_RANGE) -> dict[str, Any]:
    """Return the plots of freshness over time, of likely stale pages and of other budgets."""
    return {
        "fresh": facts,
        "span": span,
        "history": domain_plots.build_freshness_plot(facts),
        "staleness": domain_plots.build_staleness_plot(facts, links),
        "budget": domain_plots.build_budget_plot(facts.forecast) if facts.forecast else None,
        "sources": BUDGET_SOURCES,
    }


def describe_traffic(facts: TrafficFacts) -> dict[str, Any]:
    """Return the plot of requests, and the texts about validators and sitemaps."""
    hours = [each.traffic for each in facts.hours]
    return {
        "traffic": facts,
        "requests": domain_plots.build_traffic_plot(hours, until=facts.report.at) if hours else None,
        "validators": format_trust(facts.trust),
        "lists": format_lists(facts.lists),
    }


def describe_settings(domain: Domain, group: str, typed: Typed = NOTHING_TYPED) -> dict[str, Any]:
    """Return the form of a group of settings, and the settings that differ from their defaults."""
    return {
        "groups": {key: title for key, (title, _) in GROUPS.items()},
        "group": group,
        "fields": list_setting_fields(group, domain.layers, typed),
        "problem": typed.problems.get("", ""),
        "settings": [(label, value) for label, value in format_sourced_settings(domain) if value],
        "tags": ", ".join(tag.name for tag in domain.tags),
    }


def describe_rules(domain: Domain, typed: Typed = NOTHING_TYPED) -> dict[str, Any]:
    """Return the rules of a domain, and the form of a new one."""
    return {
        "rules": [
            (rule.pattern, format_rule(rule).removeprefix(f"{rule.pattern}: ")) for rule in domain.settings.rules
        ],
        "rule_fields": list_rule_fields(typed),
        "rule_problem": typed.problems.get("", ""),
        "is_typed": bool(typed.values),
    }
