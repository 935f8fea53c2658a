"""Formatting of domain settings, rules and crawl hours, and of changed settings."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from crawler.core.budget.hours import find_closing, find_opening, get_speed
from crawler.core.domain import Domain
from crawler.core.domain_settings import BY_NAME, SETTINGS, DomainSettings, get_value
from crawler.core.opic.order import Order
from crawler.core.page.selectors import View
from crawler.core.page_rules import PageRule
from crawler.core.setting import SettingKind
from crawler.core.tags import UNTAGGED_SETTINGS
from crawler.format.values import format_bytes, format_count, format_share, format_span, format_when


def format_setting(name: str, value: Any) -> str:
    """Format the value of a setting, or return the setting's text for the default, which may be empty."""
    setting = BY_NAME[name]
    if value == setting.default:
        return setting.default_text
    return setting.phrase.format(_format_value(setting.kind, value))


def _format_value(kind: SettingKind, value: Any) -> str:
    match kind:
        case SettingKind.NUMBER | SettingKind.FACTOR:
            return f"{value:g}"
        case SettingKind.SHARE:
            return format_share(value)
        case SettingKind.BYTES:
            return format_bytes(value)
        case SettingKind.DELAY:
            return f"{value.total_seconds():g} s"
        case SettingKind.SPAN:
            return format_span(value)
        case SettingKind.TEXTS:
            return "\n".join(value)
        case _:
            return str(value)


def format_settings(domain_settings: DomainSettings) -> list[tuple[str, str]]:
    """Format all settings except those of the crawl order, with the label of each."""
    return [
        (setting.label, format_setting(setting.name, get_value(domain_settings, setting)))
        for setting in SETTINGS
        if not setting.is_in_ordering
    ]


def format_all_settings(domain_settings: DomainSettings) -> list[tuple[str, str]]:
    """Format all settings, with the label of each."""
    ordering = domain_settings.ordering
    share = f", {ordering.url_weight:.0%} of importance by URL" if ordering.order is Order.MIXED else ""
    boosted = f"{', '.join(ordering.boost)} (by {ordering.boost_factor:g})" if ordering.boost else ""
    unfetched, fetched = f"unfetched pages {ordering.discovery_weight:g}", f"fetched pages {ordering.revisit_weight:g}"
    return [
        *format_settings(domain_settings),
        ("Order", f"{ordering.order}{share}"),
        ("Boost", boosted),
        ("Virtual page", f"cash weights: {unfetched}, {fetched}"),
    ]


def format_changes(before: Domain, after: Domain) -> list[str]:
    """Format the settings of a domain that differ, each with its old and new value and the tag that it comes from."""
    pairs = zip(format_sourced_settings(before), format_sourced_settings(after), strict=True)
    return [f"{label}: {was or 'default'} -> {now or 'default'}" for (label, was), (_, now) in pairs if was != now]


def format_sourced_settings(domain: Domain) -> list[tuple[str, str]]:
    """Format all settings of a domain with the label of each, and where a value comes from that is not the default."""
    layers, sources = domain.layers, dict[str, str]()
    for setting in SETTINGS:
        tag = layers.find_tag(setting.name)
        is_own = setting.name in domain.own and setting.name not in UNTAGGED_SETTINGS
        sources[setting.label] = f" (tag {tag})" if tag else " (own)" if is_own else ""
    formatted = format_all_settings(domain.settings)
    return [
        (label, f"{text or 'default'}{where}" if (where := sources.get(label)) else text) for label, text in formatted
    ]


def format_values(values: Mapping[str, Any]) -> list[str]:
    """Format the settings of a tag, each with its label."""
    known = [setting for setting in SETTINGS if setting.name in values]
    return [f"{each.label}: {format_setting(each.name, values[each.name]) or values[each.name]}" for each in known]


def format_rule(rule: PageRule) -> str:
    """Format a rule as one line."""
    parts = [
        f"revisited no sooner than after {format_span(rule.min_interval)}" if rule.min_interval is not None else "",
        f"revisited no later than after {format_span(rule.max_interval)}" if rule.max_interval is not None else "",
        f"{rule.weight:g} times as important" if rule.weight is not None else "",
        "never revisited" if rule.once else "",
        f"at most {format_count(rule.max_pages, 'page')}" if rule.max_pages is not None else "",
        f"compared: {format_view(rule.view)}" if rule.view.is_partial else "",
        f"values: {', '.join(rule.view.values)}" if rule.view.values else "",
        f"rendered: {rule.render}" if rule.render is not None else "",
    ]
    return f"{rule.pattern}: {', '.join(filter(None, parts))}"


def format_view(view: View) -> str:
    """Format which parts of a page are compared; an empty string for all."""
    ignored = " and ".join(view.ignore + tuple(f"text that matches {text!r}" for text in view.ignore_text))
    watched = f"only {' and '.join(view.watch)}" if view.watch else ""
    return " ".join(filter(None, [watched or ("all" if ignored else ""), f"without {ignored}" if ignored else ""]))


def format_opening(domain: Domain, *, at: datetime) -> str:
    """Describe whether the crawl hours are open at a time, until when, and at what speed; empty without crawl hours."""
    if domain.hours.is_always:
        return ""
    opens_at = find_opening(domain.hours, at)
    if opens_at > at:
        return f"closed until {format_when(opens_at, now=at)}"
    closes_at = find_closing(domain.hours, at)
    until = f" until {format_when(closes_at, now=at)}" if closes_at else ""
    speed = get_speed(domain.hours, at)
    return f"open{until}{f', {speed:g} times the usual speed' if speed != 1 else ''}"
