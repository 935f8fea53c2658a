"""Descriptions of sitemaps and feeds, and of the pages and hints found in them."""

from collections import Counter
from collections.abc import Sequence

from crawler.format.values import format_count, format_instant
from crawler.store.report import AnnouncedDate, ListReport

LIST_ORIGINS = {
    "robots": "listed in robots.txt",
    "usual": "at a usual location",
    "page": "linked by a page",
    "list": "listed in another sitemap",
    "body": "detected by its content",
}


def format_lists(lists: Sequence[ListReport]) -> str:
    """Summarize all sitemaps and feeds of a domain in a line; empty if none was read."""
    read = [each for each in lists if each.reads]
    if not read:
        return ""
    kinds = Counter(each.kind for each in read)
    what = ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items()))
    return f"{what}: {_format_contribution(read)}"


def format_list(list_report: ListReport) -> str:
    """Describe a sitemap or feed and what was found in it."""
    if not list_report.reads:
        return f"{LIST_ORIGINS[list_report.found_by]}; never read"
    parts = [f"{format_count(list_report.entries, 'URL')}"]
    parts += [f"{count} {what}" for count, what in _count_left_out(list_report) if count]
    readings = (
        f"read {format_count(list_report.reads, 'time')}, of which {list_report.informative_reads} "
        "after the first had new entries"
    )
    ending = f"\nonly partly read: {list_report.finding.replace('_', ' ')}" if list_report.finding else ""
    return (
        f"{list_report.kind}, {LIST_ORIGINS[list_report.found_by]}: {', '.join(parts)}\n"
        f"{readings}: {_format_contribution([list_report])}\n"
        f"a read with new entries has the value of {list_report.value:.3g} page visits{ending}"
    )


def format_dates(dates: Sequence[AnnouncedDate]) -> str:
    """Format the dates that sitemaps and feeds give for a page."""
    return "\n".join(
        f"{format_instant(each.at)} by a {each.source}"
        + (f" ({each.list_url})" if each.list_url else "")
        + ("; not checked by a visit yet" if each.is_open else "")
        for each in dates
    )


def _count_left_out(list_report: ListReport) -> tuple[tuple[int, str], ...]:
    return (
        (list_report.others, "on other hosts"),
        (list_report.excluded, "excluded"),
        (list_report.unusable, "without a valid URL"),
    )


def _format_contribution(lists: Sequence[ListReport]) -> str:
    pages, hints = sum(each.new_pages for each in lists), sum(each.hints for each in lists)
    checked, confirmed = sum(each.hints_checked for each in lists), sum(each.hints_true for each in lists)
    summary = f"{format_count(pages, 'page')} found, {format_count(hints, 'change')} signaled"
    return f"{summary}; {confirmed} of {checked} checked signals were right" if checked else summary
