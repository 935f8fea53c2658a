"""The result of a crawl run, as a Markdown artifact and as log lines."""

import re
from collections.abc import Sequence

from crawler.app.crawl import Change, CrawlStats, NotablePage, ShiftResult, Url, has_effect
from crawler.format.reasons import HEADINGS, format_reason
from crawler.format.reports import render_markdown_table
from crawler.format.values import format_bytes, format_count
from crawler.server import build_history_url
from crawler.times import format_instant

MAX_URL_CHARS = 100  # longer URLs are truncated
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
    counts = {name.lower(): stats.changes[change] for change, name in ALL_HEADINGS.items() if change != Change.UNKNOWN}
    counts |= {"dead links": stats.dead_links, "failed": stats.failed, "new URLs": stats.new_pages}
    lines = [
        f"{visited}: {', '.join(f'{count:,} {name}' for name, count in counts.items() if count) or 'all unchanged'}",
        f"{spent} in {stats.elapsed.total_seconds():.1f} s; {format_bytes(stats.saved_bytes)} saved",
    ]
    suspended = [
        f"{name} until {format_instant(each.until)} ({each.reason})" for name, each in shift.suspensions.items()
    ]
    if suspended:
        lines.append(f"Suspended: {', '.join(suspended)}")
    return [*lines, *waits]


def render_markdown(shift: ShiftResult, waits: Sequence[str] = (), *, origin: str | None = None) -> str:
    """Render the result of a crawl run as Markdown. Text from servers is escaped.

    waits: a sentence for each waiting domain.  origin: that of the web UI, for links; None if it is not running.
    """
    total = shift.stats
    lines = ["| | |", "|---|---:|", *(f"| {name} | {value} |" for name, value in list_facts(total))]
    reasons = ", ".join(f"{render_reason(reason)} {count}" for reason, count in total.reasons.most_common())
    if reasons:
        lines += ["", f"Failed: {reasons}"]
    if len(shift.by_domain) > 1:
        rows = (
            (name, *map(str, (stats.visits, stats.changes[Change.CHANGED], stats.new_pages, stats.failed)))
            for name, stats in sorted(shift.by_domain.items())
        )
        lines += ["", *render_markdown_table(("domain", "visits", "changed", "new URLs", "failed"), rows)]
    for name, each in shift.suspensions.items():
        lines.append(f"\n{name} is suspended until {format_instant(each.until)}: {escape_markdown(each.reason)}")
    for name, error in shift.broken.items():
        lines.append(f"\n{name} failed with an internal error: {escape_markdown(error)}")
    lines += [f"\n{escape_markdown(wait)}" for wait in waits]
    for change, heading in ALL_HEADINGS.items():
        if pages := total.notable_pages[change]:
            lines += ["", f"### {heading}", "", *(_render_item(page, origin) for page in pages)]
            if more := total.count_unlisted(change):
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
    changes = stats.changes
    counts = {"Requests": stats.requests, "Visits": stats.visits, "Not modified": stats.not_modified}
    counts["Unchanged"] = changes[Change.UNCHANGED] + changes[Change.COSMETIC]
    counts |= {"Changed": changes[Change.CHANGED], "Added": changes[Change.ADDED], "New URLs": stats.new_pages}
    counts |= {"Gone": changes[Change.GONE], "Dead links": stats.dead_links, "Moved": changes[Change.MOVED]}
    counts |= {"Restored": changes[Change.RESTORED], "Failed": stats.failed, "Excluded": stats.excluded}
    counts |= {"Bytes received": stats.received_bytes, "Bytes saved": stats.saved_bytes}
    facts = [(name, f"{count:,}") for name, count in counts.items()]
    return [*facts, ("Seconds", f"{stats.elapsed.total_seconds():.1f}")]
