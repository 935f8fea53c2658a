"""Sitemaps and feeds in words: what they are, and what they brought."""

from collections import Counter
from collections.abc import Sequence

from crawler.format.values import format_count, format_instant
from crawler.store.report import AnnouncedDate, ListReport

LIST_ORIGINS = {
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
    return f"{what}: {_format_contribution(read)}"


def format_list(list_report: ListReport) -> str:
    """What one list is and has brought."""
    if not list_report.reads:
        return f"{LIST_ORIGINS[list_report.found_by]}; never read"
    parts = [f"{format_count(list_report.entries, 'URL')}"]
    parts += [f"{count} {what}" for count, what in _count_left_out(list_report) if count]
    readings = (
        f"read {format_count(list_report.reads, 'time')}, news in {list_report.informative_reads} after the first"
    )
    ending = f"\nread in part: {list_report.finding.replace('_', ' ')}" if list_report.finding else ""
    return (
        f"{list_report.kind}, {LIST_ORIGINS[list_report.found_by]}: {', '.join(parts)}\n"
        f"{readings}: {_format_contribution([list_report])}\n"
        f"a look that tells anything is worth {list_report.value:.3g} pages{ending}"
    )


def format_dates(dates: Sequence[AnnouncedDate]) -> str:
    """The dates that lists gave a page."""
    return "\n".join(
        f"{format_instant(each.at)} by a {each.source}"
        + (f" ({each.list_url})" if each.list_url else "")
        + ("; no look has tested that yet" if each.is_open else "")
        for each in dates
    )


def _count_left_out(list_report: ListReport) -> tuple[tuple[int, str], ...]:
    return (
        (list_report.others, "on other hosts"),
        (list_report.excluded, "that may not be fetched"),
        (list_report.unusable, "without an address"),
    )


def _format_contribution(lists: Sequence[ListReport]) -> str:
    pages, hints = sum(each.new_pages for each in lists), sum(each.hints for each in lists)
    checked, confirmed = sum(each.hints_checked for each in lists), sum(each.hints_true for each in lists)
    summary = f"{format_count(pages, 'page')} found, {format_count(hints, 'change')} hinted at"
    return f"{summary}; of {checked} that looks have tested {confirmed} were true" if checked else summary
