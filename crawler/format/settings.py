"""The settings of domains in words, and what a change of them changed."""

from typing import Any

from crawler.core.domain_settings import BY_NAME, SETTINGS, DomainSettings, value_of
from crawler.core.opic import Order
from crawler.core.setting import Kind
from crawler.format.values import format_bytes, format_share, format_span


def format_setting(name: str, value: Any) -> str:
    """Format the value of a setting; an empty string where it is the default and that goes without saying."""
    setting = BY_NAME[name]
    return setting.unset if value == setting.default else setting.words.format(_format_value(setting.kind, value))


def _format_value(kind: Kind, value: Any) -> str:
    match kind:
        case Kind.NUMBER | Kind.FACTOR:
            return f"{value:g}"
        case Kind.SHARE:
            return format_share(value)
        case Kind.BYTES:
            return format_bytes(value)
        case Kind.DELAY:
            return f"{value.total_seconds():g} s"
        case Kind.SPAN:
            return format_span(value)
        case Kind.TEXTS:
            return "\n".join(value)
        case _:
            return str(value)


def format_settings(domain_settings: DomainSettings) -> list[tuple[str, str]]:
    """Format the settings that have a label, with the label of each."""
    return [
        (setting.label, format_setting(setting.name, value_of(domain_settings, setting)))
        for setting in SETTINGS
        if setting.label
    ]


def format_all_settings(domain_settings: DomainSettings) -> list[tuple[str, str]]:
    """Format the settings that have a label, and those that say together which pages come first."""
    ordering = domain_settings.ordering
    share = f", {ordering.url_share:.0%} of importance by URL" if ordering.order is Order.MIXED else ""
    favoured = f"{', '.join(ordering.favour)} (by {ordering.favour_by:g})" if ordering.favour else ""
    return [
        *format_settings(domain_settings),
        ("Order", f"{ordering.order}{share}"),
        ("Favoured", favoured),
        ("Reserve pays", f"new pages {ordering.discovery:g}, known pages {ordering.refresh:g}"),
    ]


def format_changed_settings(before: DomainSettings, after: DomainSettings) -> list[str]:
    """Format the settings that differ, each from what to what; none where all are as they were."""
    pairs = zip(format_all_settings(before), format_all_settings(after), strict=True)
    return [f"{label}: {was or 'as usual'} -> {now or 'as usual'}" for (label, was), (_, now) in pairs if was != now]
