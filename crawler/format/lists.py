"""Sitemaps and feeds in words: what they are, and what they brought."""

from collections import Counter
from collections.abc import Sequence

from crawler.format.values import format_count, format_instant
from crawler.store.report import GivenDate, ListReport

FOUND_BY = {
    "robots": "named by robots.txt",
    "usual": "looked for in the usual place",
    "page": "named by a page",
    "list": "named by another list",
    "body": "a page that turned out to be one",
}


def format_lists(lists: Sequence[ListReport]) -> str:
    """What all lists of a domain brought, in a line; nothing where it has none that was read."""
    read = [each for each in lists if each.reads]
    if not read:
        return ""
    kinds = Counter(each.kind for each in read)
    what = ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items()))
    return f"{what}: {_brought(read)}"


def format_list(found: ListReport) -> str:
    """What one list is and has brought."""
    if not found.reads:
        return f"{FOUND_BY[found.found_by]}; never read"
    parts = [f"{format_count(found.entries, 'URL')}"]
    parts += [f"{count} {what}" for count, what in _left_out(found) if count]
    told = f"read {format_count(found.reads, 'time')}, news in {found.told} after the first"
    ending = f"\nread in part: {found.finding.replace('_', ' ')}" if found.finding else ""
    return (
        f"{found.kind}, {FOUND_BY[found.found_by]}: {', '.join(parts)}\n{told}: {_brought([found])}\n"
        f"a look that tells anything is worth {found.worth:.3g} pages{ending}"
    )


def format_dates(dates: Sequence[GivenDate]) -> str:
    """The dates that lists gave a page."""
    return "\n".join(
        f"{format_instant(each.at)} by a {each.source}"
        + (f" ({each.list_url})" if each.list_url else "")
        + ("; no look has tested that yet" if each.is_open else "")
        for each in dates
    )


def _left_out(found: ListReport) -> tuple[tuple[int, str], ...]:
    return (
        (found.others, "on other hosts"),
        (found.refused, "that may not be fetched"),
        (found.unusable, "without an address"),
    )


def _brought(lists: Sequence[ListReport]) -> str:
    pages, hints = sum(each.new_pages for each in lists), sum(each.hints for each in lists)
    checked, found = sum(each.hints_checked for each in lists), sum(each.hints_true for each in lists)
    said = f"{format_count(pages, 'page')} found, {format_count(hints, 'change')} hinted at"
    return f"{said}; of {checked} that looks have tested {found} were true" if checked else said
