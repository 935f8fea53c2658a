"""What a run says of its result: an artifact to look at, and three lines in its log."""

import re
from collections.abc import Sequence

from crawler import times
from crawler.app.crawl import Change, CrawlStats, NotablePage, ShiftResult, Url, has_effect
from crawler.format.reasons import HEADINGS, format_reason
from crawler.format.reports import render_markdown_table
from crawler.format.values import format_bytes, format_count
from crawler.server import build_history_url

MAX_URL_CHARS = 100  # characters of an address that are shown
ALL_HEADINGS = {**HEADINGS, Change.ADDED: "Read for the first time"}
_MARKS = re.compile(r"([\\`*_{}\[\]()<>#+\-.!|~$&:])")
_UNSAFE = {ord(char): f"%{ord(char):02X}" for char in "<>\\|\"' \r\n\t"}


def summarize_shift(shift: ShiftResult, waits: Sequence[str] = ()) -> list[str]:
    """Say what happened, in three lines, and which domains were left waiting. waits: a sentence for each."""
    stats = shift.stats
    if not has_effect(shift):
        return list(waits) or ["Nothing was due"]
    visited = f"Looked at {format_count(stats.visits, 'page')} of {format_count(len(shift.by_domain), 'domain')}"
    spent = f"Spent {format_count(stats.requests, 'request')} and {format_bytes(stats.received_bytes)}"
    lines = [
        f"{visited}: {', '.join(_list_counts(stats)) or 'all as they were'}",
        f"{spent} in {stats.elapsed.total_seconds():.1f} s; saved {format_bytes(stats.saved_bytes)}",
    ]
    if shift.suspensions:
        suspended = (
            f"{name} until {times.format_instant(hold.until)} ({hold.reason})"
            for name, hold in shift.suspensions.items()
        )
        lines.append(f"Left alone: {', '.join(suspended)}")
    return [*lines, *waits]


def _list_counts(stats: CrawlStats) -> list[str]:
    headings = [change for change in ALL_HEADINGS if change is not Change.UNKNOWN]
    counts = [(ALL_HEADINGS[change].lower(), stats.changes[change]) for change in headings]
    counts += [("dead links", stats.dead_links), ("failed", stats.failed), ("new links", stats.new_pages)]
    return [f"{count:,} {name}" for name, count in counts if count]


def render_markdown(shift: ShiftResult, waits: Sequence[str] = (), *, origin: str | None = None) -> str:
    """The result of a shift as a person reads it; what strangers wrote is text in it, whatever it says.

    waits: a sentence for each domain that was left waiting.  origin: of the pages of one's own, where they are served.
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
        lines += ["", *render_markdown_table(("domain", "looked at", "changed", "new", "failed"), rows)]
    lines += [
        f"\n{name} is left alone until {times.format_instant(hold.until)}: {escape_markdown(hold.reason)}"
        for name, hold in shift.suspensions.items()
    ]
    lines += [f"\n{name} broke off: {escape_markdown(error)}" for name, error in shift.broken.items()]
    lines += [f"\n{escape_markdown(wait)}" for wait in waits]
    for change, heading in ALL_HEADINGS.items():
        pages = total.notable_pages[change]
        if pages:
            lines += ["", f"### {heading}", "", *(_render_item(page, origin) for page in pages)]
            more = total.count_unlisted(change)
            if more:
                lines.append(f"- and {more:,} more")
    if total.dead_link_urls:
        lines += ["", "### Named, and not there", "", *(f"- {render_link(url)}" for url in total.dead_link_urls)]
    return "\n".join(lines)


def _render_item(page: NotablePage, origin: str | None) -> str:
    history_link = f" ([its history](<{build_history_url(origin, page.url)}>))" if origin else ""
    return f"- {render_link(page.url)}{history_link}{f': {render_reason(page.reason)}' if page.reason else ''}"


def render_reason(reason: str) -> str:
    """Why a look failed, in words, as text of a Markdown document."""
    return escape_markdown(format_reason(reason))


def render_link(url: Url) -> str:
    """A link to a page in Markdown."""
    label = url if len(url) <= MAX_URL_CHARS else f"{url[:MAX_URL_CHARS]}…"
    return f"[{escape_markdown(label)}](<{url.translate(_UNSAFE)}>)"


def escape_markdown(words: str) -> str:
    """A stranger's words, as text of a Markdown document: none of them marks anything up."""
    return _MARKS.sub(r"\\\1", " ".join(words.split()))


def list_facts(stats: CrawlStats) -> list[tuple[str, str]]:
    """Name and value of each count that is worth telling."""
    return [
        ("Requests", f"{stats.requests:,}"),
        ("Pages looked at", f"{stats.visits:,}"),
        ("Not modified", f"{stats.not_modified:,}"),
        ("Same", f"{stats.changes[Change.UNCHANGED] + stats.changes[Change.COSMETIC]:,}"),
        ("Changed", f"{stats.changes[Change.CHANGED]:,}"),
        ("First seen", f"{stats.changes[Change.ADDED]:,}"),
        ("New links", f"{stats.new_pages:,}"),
        ("Gone", f"{stats.changes[Change.GONE]:,}"),
        ("Dead links", f"{stats.dead_links:,}"),
        ("Moved", f"{stats.changes[Change.MOVED]:,}"),
        ("Back", f"{stats.changes[Change.RESTORED]:,}"),
        ("Failed", f"{stats.failed:,}"),
        ("Refused, not asked for", f"{stats.excluded:,}"),
        ("Bytes received", f"{stats.received_bytes:,}"),
        ("Bytes saved", f"{stats.saved_bytes:,}"),
        ("Seconds", f"{stats.elapsed.total_seconds():.1f}"),
    ]
