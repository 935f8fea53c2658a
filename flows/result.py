"""The result of a crawl run, as a Markdown artifact, log lines and the message of its state."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence

from crawler.app.changes import BlockChange, FeedItem, diff_words, shorten_runs
from crawler.app.crawl import Change, CrawlStats, NotablePage, ShiftResult, Url, has_effect
from crawler.app.pages import RunKind
from crawler.format.reasons import HEADINGS, format_reason
from crawler.format.values import format_bytes, format_count
from crawler.server import build_history_url
from crawler.times import format_instant

MAX_TITLE_CHARS = 120
MAX_EDITS = 2  # blocks whose changed words are shown, per page
# What a run found, the most important first.
ALL_HEADINGS = {
    change: {**HEADINGS, Change.ADDED: "Added"}[change]
    for change in (Change.CHANGED, Change.ADDED, Change.GONE, Change.UNKNOWN, Change.MOVED, Change.RESTORED)
}
_MARKS = re.compile(r"([\\`*_{}\[\]()<>#+\-.!|~$&:])")
_UNSAFE = {ord(char): f"%{ord(char):02X}" for char in "<>\\|\"' \r\n\t"}
_EMPHASIS = {RunKind.KEPT: "", RunKind.OLD: "~~", RunKind.NEW: "**"}


def has_findings(shift: ShiftResult) -> bool:
    """Return whether a run found something to show: pages, or domains that could not be crawled."""
    return bool(list_counts(shift.stats) or shift.suspensions or shift.broken)


def list_counts(stats: CrawlStats) -> list[str]:
    """Return how many pages a run found of each kind, such as "3 changed", without zeros."""
    counts = {heading.lower(): stats.changes[change] for change, heading in ALL_HEADINGS.items()}
    counts |= {"failed": stats.failed, "dead links": stats.dead_links}
    return [f"{count:,} {name}" for name, count in counts.items() if count]


def format_state(shift: ShiftResult, waits: Sequence[str] = ()) -> str:
    """Return what a run did, as the message of its state. waits: a few words for each reason to wait."""
    counts = list_counts(shift.stats)
    if not counts and shift.stats.visits:
        counts = [f"{shift.stats.visits:,} unchanged"]
    reasons = Counter(format_reason(each.reason) for each in shift.suspensions.values())
    suspended = [f"{format_count(count, 'domain')} suspended ({why})" for why, count in reasons.items()]
    return ", ".join([*counts, *waits] or suspended) or "Nothing was due"


def summarize_shift(shift: ShiftResult, waits: Sequence[str] = ()) -> list[str]:
    """Summarize a crawl run in up to three lines, followed by `waits`, a sentence for each waiting domain."""
    if not has_effect(shift):
        return list(waits) or ["Nothing was due"]
    lines = list_figures(shift)
    suspended = [
        f"{name} until {format_instant(each.until)} ({format_reason(each.reason)})"
        for name, each in shift.suspensions.items()
    ]
    if suspended:
        lines.append(f"Suspended: {', '.join(suspended)}")
    return [*lines, *waits]


def list_figures(shift: ShiftResult) -> list[str]:
    """Return what a run visited and found, and what it cost, without zeros."""
    stats = shift.stats
    visited = f"Visited {format_count(stats.visits, 'page')} of {format_count(len(shift.by_domain), 'domain')}"
    found = [*list_counts(stats), *([f"{stats.new_pages:,} new URLs"] if stats.new_pages else [])]
    received = f", {format_bytes(stats.received_bytes)} received" if stats.received_bytes else ""
    saved = f"; {format_bytes(stats.saved_bytes)} saved" if stats.saved_bytes else ""
    spent = f"{format_count(stats.requests, 'request')}{received} in {stats.elapsed.total_seconds():.1f} s{saved}"
    return [f"{visited}: {', '.join(found) or 'all unchanged'}", spent]


def list_notable_urls(shift: ShiftResult) -> set[Url]:
    """Return the pages that `render_markdown` lists."""
    return {page.url for pages in shift.stats.notable_pages.values() for page in pages}


def render_markdown(
    shift: ShiftResult, changes: Mapping[Url, FeedItem], waits: Sequence[str] = (), *, origin: str | None = None
) -> str:
    """Render the result of a crawl run as Markdown: its pages, problems, and a line of figures. Texts are escaped.

    changes: the changes of the pages in `list_notable_urls`.  waits: a sentence for each waiting domain.
    origin: that of the web UI, for links to differences; None if it is not running.
    """
    stats, lines = shift.stats, []
    for change, heading in ALL_HEADINGS.items():
        if pages := stats.notable_pages[change]:
            lines += [f"### {heading}", "", *(_render_item(page, changes.get(page.url), origin) for page in pages)]
            if more := stats.count_unlisted(change):
                lines.append(f"- and {more:,} more")
            lines.append("")
    if stats.dead_link_urls:
        lines += [
            "### Dead links",
            "",
            *(f"- {_render_title(url)} ({render_link('page', url)})" for url in stats.dead_link_urls),
            "",
        ]
    for name, each in shift.suspensions.items():
        lines += [
            f"{name} is suspended until {format_instant(each.until)}: {escape_markdown(format_reason(each.reason))}",
            "",
        ]
    for name, error in shift.broken.items():
        lines += [f"{name} failed with an internal error: {escape_markdown(error)}", ""]
    lines += [text for wait in waits for text in (escape_markdown(wait), "")]
    return "\n".join([*lines, escape_markdown("; ".join(list_figures(shift)))])


def _render_item(page: NotablePage, change: FeedItem | None, origin: str | None) -> str:
    """Render a page: its title, a link to what changed, and the first words that did, or why its visit failed."""
    version = {} if change is None or change.version < 2 else {"to": str(change.version)}
    links = [render_link("page", page.url)]
    if origin:
        history_url = build_history_url(origin, page.url, **version)
        links.insert(0, render_link("difference" if version else "history", history_url))
    item = f"- **{_render_title(page.url, change.title if change is not None else '')}** ({', '.join(links)})"
    if page.reason:
        item += f": {render_reason(page.reason)}"
    if change is not None and change.moved_to is not None:
        item += f" to {_render_title(change.moved_to)}"
    edits = change.blocks[:MAX_EDITS] if change is not None and version else ()
    return "".join([item, *(f"<br>{words}" for words in map(_render_edit, edits) if words)])


def _render_title(url: Url, title: str = "") -> str:
    """Render the title of a page, or its URL if it has none."""
    text = " ".join(title.split()) or url
    return escape_markdown(text if len(text) <= MAX_TITLE_CHARS else f"{text[:MAX_TITLE_CHARS]}…")


def _render_edit(edit: BlockChange) -> str:
    """Render the words of a block that changed: the old ones crossed out, the new ones in bold type."""
    runs = diff_words(edit.before or "", edit.after or "", kind=edit.part)
    parts = []
    for run in shorten_runs(runs, context_chars=40, max_chars=160):
        mark, text = _EMPHASIS[run.kind], escape_markdown(run.text)
        # Markdown wants the marks next to words.
        before, after = run.text[:1].isspace(), run.text[-1:].isspace()
        parts.append(f"{' ' * before}{mark}{text}{mark}{' ' * after}" if text else " ")
    return "".join(parts).replace("~~**", "~~ **").replace("**~~", "** ~~").strip()


def render_reason(reason: str) -> str:
    """Format the reason of a failed visit as escaped Markdown text."""
    return escape_markdown(format_reason(reason))


def render_link(label: str, url: str) -> str:
    """Render a Markdown link. label: constant, since Prefect's UI shows backslashes of escapes in it."""
    return f"[{label}](<{url.translate(_UNSAFE)}>)"


def escape_markdown(words: str) -> str:
    """Escape text from a server for Markdown."""
    return _MARKS.sub(r"\\\1", " ".join(words.split()))
