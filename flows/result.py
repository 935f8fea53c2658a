"""The result of a crawl run, as a Markdown artifact and as log lines."""

import re
from collections.abc import Sequence

from crawler import times
from crawler.app.crawl import Change, CrawlStats, NotablePage, ShiftResult, Url, has_effect
from crawler.format.reasons import HEADINGS, format_reason
from crawler.format.reports import render_markdown_table
from crawler.format.values import format_bytes, format_count
from crawler.server import build_history_url

MAX_URL_CHARS = 100  # shown characters of a URL
ALL_HEADINGS = {**HEADINGS, Change.ADDED: "Added"}
_MARKS = re.compile(r"([\\`*_{}\[\]()<>#+\-.!|~$&:])")
_UNSAFE = {ord(char): f"%{ord(char):02X}" for char in "<>\\|\"' \r\n\t"}


def summarize_shift(shift: ShiftResult, waits: Sequence[str] = ()) -> list[str]:
    """Summarize a crawl run in up to three lines, followed by `waits`, a sentence for each waiting domain."""
    stats = shift.stats
    if not has_effect(shift):
        return list(waits) or ["Nothing was due"]
    visited = f"Visited {format_count(stats.visits, 'page')} of {format_count(len(shift.by_domain), 'domain')}"
    spent = f"{format_count(stats.requests, 'request')}, {format_bytes(stats.received_bytes)} received"
    lines = [
        f"{visited}: {', '.join(_list_counts(stats)) or 'all unchanged'}",
        f"{spent} in {stats.elapsed.total_seconds():.1f} s; {format_bytes(stats.saved_bytes)} saved",
    ]
    if shift.suspensions:
        suspended = (
            f"{name} until {times.format_instant(hold.until)} ({hold.reason})"
            for name, hold in shift.suspensions.items()
        )
        lines.append(f"Suspended: {', '.join(suspended)}")
    return [*lines, *waits]


def _list_counts(stats: CrawlStats) -> list[str]:
    headings = [change for change in ALL_HEADINGS if change is not Change.UNKNOWN]
    counts = [(ALL_HEADINGS[change].lower(), stats.changes[change]) for change in headings]
    counts += [("dead links", stats.dead_links), ("failed", stats.failed), ("new URLs", stats.new_pages)]
    return [f"{count:,} {name}" for name, count in counts if count]


def render_markdown(shift: ShiftResult, waits: Sequence[str] = (), *, origin: str | None = None) -> str:
    """Render the result of a crawl run as Markdown. Text from servers is escaped.

    waits: a sentence for each waiting domain.  origin: that of the web UI, for links; None if it is not running.
    """
    total = shift.stats
    lines = ["| | |", "|---|---:|", *(f"| {name} | {value} |" for name, value in list_facts(total))]
    if total.reasons:
        reasons = ", ".join(f"{render_reason(reason)} {count}" for reason, count in total.reasons.most_common())
        lines += ["", f"Failed: {reasons}"]
    if len(shift.by_domain) > 1:
        rows = (
            (name, *map(str, (stats.visits, stats.changes[Change.CHANGED], stats.new_pages, stats.failed)))
            for name, stats in sorted(shift.by_domain.items())
        )
        lines += ["", *render_markdown_table(("domain", "visits", "changed", "new URLs", "failed"), rows)]
    lines += [
        f"\n{name} is suspended until {times.format_instant(hold.until)}: {escape_markdown(hold.reason)}"
        for name, hold in shift.suspensions.items()
    ]
    lines += [
        f"\n{name} failed with an internal error: {escape_markdown(error)}" for name, error in shift.broken.items()
    ]
    lines += [f"\n{escape_markdown(wait)}" for wait in waits]
    for change, heading in ALL_HEADINGS.items():
        pages = total.notable_pages[change]
        if pages:
            lines += ["", f"### {heading}", "", *(_render_item(page, origin) for page in pages)]
            more = total.count_unlisted(change)
            if more:
                lines.append(f"- and {more:,} more")
    if total.dead_link_urls:
        lines += ["", "### Dead links", "", *(f"- {render_link(url)}" for url in total.dead_link_urls)]
    return "\n".join(lines)


def _render_item(page: NotablePage, origin: str | None) -> str:
    history_link = f" ([history](<{build_history_url(origin, page.url)}>))" if origin else ""
    return f"- {render_link(page.url)}{history_link}{f': {render_reason(page.reason)}' if page.reason else ''}"


def render_reason(reason: str) -> str:
    """Format the reason of a failed visit as escaped Markdown text."""
    return escape_markdown(format_reason(reason))


def render_link(url: Url) -> str:
    """Render a Markdown link to a page."""
    label = url if len(url) <= MAX_URL_CHARS else f"{url[:MAX_URL_CHARS]}…"
    return f"[{escape_markdown(label)}](<{url.translate(_UNSAFE)}>)"


def escape_markdown(words: str) -> str:
    """Escape text from a server for Markdown."""
    return _MARKS.sub(r"\\\1", " ".join(words.split()))


def list_facts(stats: CrawlStats) -> list[tuple[str, str]]:
    """Return the labels and values of the counts of a crawl."""
    return [
        ("Requests", f"{stats.requests:,}"),
        ("Visits", f"{stats.visits:,}"),
        ("Not modified", f"{stats.not_modified:,}"),
        ("Unchanged", f"{stats.changes[Change.UNCHANGED] + stats.changes[Change.COSMETIC]:,}"),
        ("Changed", f"{stats.changes[Change.CHANGED]:,}"),
        ("Added", f"{stats.changes[Change.ADDED]:,}"),
        ("New URLs", f"{stats.new_pages:,}"),
        ("Gone", f"{stats.changes[Change.GONE]:,}"),
        ("Dead links", f"{stats.dead_links:,}"),
        ("Moved", f"{stats.changes[Change.MOVED]:,}"),
        ("Restored", f"{stats.changes[Change.RESTORED]:,}"),
        ("Failed", f"{stats.failed:,}"),
        ("Excluded", f"{stats.excluded:,}"),
        ("Bytes received", f"{stats.received_bytes:,}"),
        ("Bytes saved", f"{stats.saved_bytes:,}"),
        ("Seconds", f"{stats.elapsed.total_seconds():.1f}"),
    ]
