"""What a run says of its result: an artifact to look at, and three lines in its log."""

import re
from collections.abc import Sequence

from crawler import times
from crawler.app.crawl import Change, CrawlStats, FoundPage, ShiftResult, Url, has_effect
from crawler.format.reasons import HEADINGS, format_reason
from crawler.format.reports import markdown_table
from crawler.format.values import format_bytes, format_count
from crawler.server import history_at

LONGEST = 100  # characters of an address that are shown
ALL_HEADINGS = {**HEADINGS, Change.FIRST: "Read for the first time"}
_MARKS = re.compile(r"([\\`*_{}\[\]()<>#+\-.!|~$&:])")
_UNSAFE = {ord(char): f"%{ord(char):02X}" for char in "<>\\|\"' \r\n\t"}


def sentences(shift: ShiftResult, waits: Sequence[str] = ()) -> list[str]:
    """Say what happened, in three lines, and which domains were left waiting. waits: a sentence for each."""
    stats = shift.stats
    if not has_effect(shift):
        return list(waits) or ["Nothing was due"]
    looked = f"Looked at {format_count(stats.looks, 'page')} of {format_count(len(shift.by_domain), 'domain')}"
    spent = f"Spent {format_count(stats.requests, 'request')} and {format_bytes(stats.received_bytes)}"
    lines = [
        f"{looked}: {', '.join(_counts(stats)) or 'all as they were'}",
        f"{spent} in {stats.elapsed.total_seconds():.1f} s; saved {format_bytes(stats.saved_bytes)}",
    ]
    if shift.holds:
        held = (
            f"{name} until {times.format_instant(hold.until)} ({hold.reason})" for name, hold in shift.holds.items()
        )
        lines.append(f"Left alone: {', '.join(held)}")
    return [*lines, *waits]


def _counts(stats: CrawlStats) -> list[str]:
    headings = [change for change in ALL_HEADINGS if change is not Change.UNKNOWN]
    found = [(ALL_HEADINGS[change].lower(), stats.changes[change]) for change in headings]
    found += [("dead links", stats.dead_links), ("failed", stats.failed), ("new links", stats.new)]
    return [f"{count:,} {name}" for name, count in found if count]


def markdown(shift: ShiftResult, waits: Sequence[str] = (), *, origin: str | None = None) -> str:
    """The result of a shift as a person reads it; what strangers wrote is text in it, whatever it says.

    waits: a sentence for each domain that was left waiting.  origin: of the pages of one's own, where they are served.
    """
    total = shift.stats
    lines = ["| | |", "|---|---:|", *(f"| {name} | {value} |" for name, value in facts(total))]
    if total.reasons:
        reasons = ", ".join(f"{said(reason)} {count}" for reason, count in total.reasons.most_common())
        lines += ["", f"Failed: {reasons}"]
    if len(shift.by_domain) > 1:
        rows = (
            (name, *map(str, (stats.looks, stats.changes[Change.CHANGED], stats.new, stats.failed)))
            for name, stats in sorted(shift.by_domain.items())
        )
        lines += ["", *markdown_table(("domain", "looked at", "changed", "new", "failed"), rows)]
    lines += [
        f"\n{name} is left alone until {times.format_instant(hold.until)}: {text(hold.reason)}"
        for name, hold in shift.holds.items()
    ]
    lines += [f"\n{name} broke off: {text(error)}" for name, error in shift.broken.items()]
    lines += [f"\n{text(wait)}" for wait in waits]
    for change, heading in ALL_HEADINGS.items():
        pages = total.pages[change]
        if pages:
            lines += ["", f"### {heading}", "", *(_item(page, origin) for page in pages)]
            more = total.unnamed(change)
            if more:
                lines.append(f"- and {more:,} more")
    if total.never_there:
        lines += ["", "### Named, and not there", "", *(f"- {link(url)}" for url in total.never_there)]
    return "\n".join(lines)


def _item(page: FoundPage, origin: str | None) -> str:
    own = f" ([its history](<{history_at(origin, page.url)}>))" if origin else ""
    return f"- {link(page.url)}{own}{f': {said(page.reason)}' if page.reason else ''}"


def said(reason: str) -> str:
    """Why a look failed, in words, as text of a Markdown document."""
    return text(format_reason(reason))


def link(url: Url) -> str:
    """A link to a page in Markdown."""
    shown = url if len(url) <= LONGEST else f"{url[:LONGEST]}…"
    return f"[{text(shown)}](<{url.translate(_UNSAFE)}>)"


def text(words: str) -> str:
    """A stranger's words, as text of a Markdown document: none of them marks anything up."""
    return _MARKS.sub(r"\\\1", " ".join(words.split()))


def facts(stats: CrawlStats) -> list[tuple[str, str]]:
    """Name and value of each count that is worth telling."""
    return [
        ("Requests", f"{stats.requests:,}"),
        ("Pages looked at", f"{stats.looks:,}"),
        ("Not modified", f"{stats.not_modified:,}"),
        ("Same", f"{stats.changes[Change.SAME] + stats.changes[Change.COSMETIC]:,}"),
        ("Changed", f"{stats.changes[Change.CHANGED]:,}"),
        ("First seen", f"{stats.changes[Change.FIRST]:,}"),
        ("New links", f"{stats.new:,}"),
        ("Gone", f"{stats.changes[Change.GONE]:,}"),
        ("Dead links", f"{stats.dead_links:,}"),
        ("Moved", f"{stats.changes[Change.MOVED]:,}"),
        ("Back", f"{stats.changes[Change.BACK]:,}"),
        ("Failed", f"{stats.failed:,}"),
        ("Refused, not asked for", f"{stats.refused:,}"),
        ("Bytes received", f"{stats.received_bytes:,}"),
        ("Bytes saved", f"{stats.saved_bytes:,}"),
        ("Seconds", f"{stats.elapsed.total_seconds():.1f}"),
    ]
