"""Descriptions of sitemaps and feeds, and of the pages and hints found in them."""

from collections import Counter
from collections.abc import Sequence

from crawler.format.values import format_count, format_instant
from crawler.store.report import AnnouncedDate, ListReport

LIST_ORIGINS = {
    "robots": "listed in robots.txt",
    "usual": "at a default location",
    "page": "linked by a page",
    "list": "listed in another sitemap",
    "body": "detected by its content",
}


def format_lists(lists: Sequence[ListReport]) -> str:
    """Summarize all sitemaps and feeds of a domain in a line; empty if none was read."""
    read = [each for each in lists if each.reads]
    kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(Counter(each.kind for each in read).items()))
    return f"{kinds}: {_format_contribution(read)}" if read else ""


def format_list(listed: ListReport) -> str:
    """Describe a sitemap or feed and what was found in it."""
    if not listed.reads:
        return f"{LIST_ORIGINS[listed.found_by]}; never read"
    left_out = {"on other hosts": listed.others, "excluded": listed.excluded, "without a valid URL": listed.unusable}
    parts = [format_count(listed.entries, "URL"), *(f"{count} {what}" for what, count in left_out.items() if count)]
    ending = f"\nonly partly read: {listed.finding.replace('_', ' ')}" if listed.finding else ""
    return (
        f"{listed.kind}, {LIST_ORIGINS[listed.found_by]}: {', '.join(parts)}\n"
        f"read {format_count(listed.reads, 'time')}; {listed.informative_reads} of the reads after the first had new "
        f"entries: {_format_contribution([listed])}\n"
        f"a read with new entries has the value of {listed.value:.3g} page visits{ending}"
    )


def format_dates(dates: Sequence[AnnouncedDate]) -> str:
    """Format the dates that sitemaps and feeds give for a page."""
    return "\n".join(
        f"{format_instant(each.at)} by a {each.source}"
        + (f" ({each.list_url})" if each.list_url else "")
        + ("; not checked by a visit yet" if each.is_open else "")
        for each in dates
    )


def _format_contribution(lists: Sequence[ListReport]) -> str:
    pages, hints = sum(each.new_pages for each in lists), sum(each.hints for each in lists)
    checked, confirmed = sum(each.hints_checked for each in lists), sum(each.hints_true for each in lists)
    summary = f"{format_count(pages, 'page')} found, {format_count(hints, 'change')} signaled"
    return f"{summary}; {confirmed} of {checked} checked signals were right" if checked else summary
