"""Output of recrawl changes: newest first as text, in the order of the change feed as JSON."""

import sys
from datetime import UTC, datetime

from rich.text import Text

from crawler.app import changes as app
from crawler.cli.marked_text import join_parts, mark_runs, say_indented
from crawler.cli.output import make_printable, print_json, print_json_line, remark, report_cursor_errors, say
from crawler.cli.session import Interrupts, run_on_database
from crawler.format.kinds import NEWS
from crawler.format.reasons import format_reason
from crawler.format.values import format_count, format_share, format_when

TOP, TOP_JSON = 20, 1000
INDENT = 11
MAX_EDITS = 3  # blocks shown per change without --diff
# Characters of context, and of the change itself, without and with --diff.
SHORT_EDIT, LONG_EDIT = (40, 160), (200, 1000)


def show_newest(query: app.ChangesQuery, *, top: int | None, at: datetime | None, diff: bool, why: bool) -> None:
    """Print the newest changes. diff: show more of the changed blocks.  why: also cursor, version and magnitude."""
    newest = run_on_database(lambda db, _: app.list_changes(db, query, max_count=top or TOP, at=at))
    say(_format_heading(newest), style="bold")
    for item in newest.items:
        say("")
        show_change(item, now=newest.at, diff=diff, why=why)
    added = newest.counts.get(app.EventKind.ADDED, 0)
    is_folded = added and all(item.change is not app.EventKind.ADDED for item in newest.items)
    if is_folded:
        say("")
        what = query.what or query.domain
        say(f"{format_count(added, 'page')} added: recrawl changes{f' {what}' if what else ''} --kind added")
    _show_next(newest, remaining=sum(newest.counts.values()) - len(newest.items) - (added if is_folded else 0))


def print_changes_json(query: app.ChangesQuery, *, top: int | None, at: datetime | None, diff: bool) -> None:
    with report_cursor_errors(as_json=True):
        count = top or TOP_JSON
        batch = run_on_database(lambda db, _: app.read_changes(db, query, max_count=count, blocks=diff, at=at))
    print_json({"changes": batch.items, "next": batch.next_cursor, "more": batch.has_more})


def print_atom_feed(query: app.ChangesQuery, *, top: int | None, at: datetime | None) -> None:
    """Print the newest changes as an Atom feed."""
    from crawler.app.delivery.feeds import MAX_ENTRIES, render_feed  # imports all of crawler.notify

    max_entries = top or MAX_ENTRIES
    document = run_on_database(lambda db, _: render_feed(db, query, max_entries=max_entries, at=at))
    sys.stdout.buffer.write(document)


def follow_changes(query: app.ChangesQuery, *, from_now: bool, as_json: bool, diff: bool, why: bool) -> int:
    """Print changes as they are found, in the order of the feed. from_now: skip those that were found before."""

    def on_outage(error: Exception) -> None:
        remark(f"{error}; trying again")

    async def show_followed(db: app.AppDatabase) -> None:
        async for item in app.follow_changes(db, query, from_now=from_now, on_outage=on_outage):
            if as_json:
                print_json_line(item)
            else:
                show_change(item, now=datetime.now(UTC), diff=diff, why=why)
                say("")

    async def work(db: app.AppDatabase, interrupts: Interrupts) -> int:
        await interrupts.run_until_stop(show_followed(db))
        return interrupts.exit_code

    with report_cursor_errors(as_json=as_json):
        return run_on_database(work, patient=True)


def _format_heading(newest: app.NewestChanges) -> str:
    span = f" since {format_when(newest.since, now=newest.at)}" if newest.since else ""
    if not newest.counts:
        return f"No changes{span}"
    shown = {item.change for item in newest.items} | NEWS
    counts = [f"{newest.counts[kind]:,} {kind}" for kind in app.EventKind if kind in shown & newest.counts.keys()]
    return f"Changes{span}: {join_parts(counts) or 'only added pages'}"


def show_change(item: app.FeedItem, *, now: datetime, diff: bool = False, why: bool = False) -> None:
    title = make_printable(item.title or _get_path(item)).replace("\n", " ")
    head = Text.assemble((item.change.ljust(INDENT), "bold"), title)
    say_indented(head, indent=0, hanging=INDENT)
    for url in (item.url, *([f"to {item.moved_to}"] if item.moved_to else [])):
        say(" " * INDENT + url)  # never wraps URLs
    importance = f"importance {item.importance:.2g}" if item.importance is not None else ""
    say_indented(Text(join_parts([format_when(item.at, now=now), importance, _format_reach(item)])), indent=INDENT)
    if why:
        say_indented(Text(_format_figures(item)), indent=INDENT)
    edits = item.blocks if diff else item.blocks[:MAX_EDITS]
    for edit in edits:
        _show_edit(edit, diff=diff)
    if len(edits) < len(item.blocks):
        say(" " * INDENT + f"and {format_count(len(item.blocks) - len(edits), 'block')} more: recrawl diff {item.url}")


def _get_path(item: app.FeedItem) -> str:
    is_of_site = item.change is app.EventKind.TEMPLATE or item.is_about_domain
    return item.domain if is_of_site else "/" + item.url.split("/", 3)[3]


def _format_reach(item: app.FeedItem) -> str:
    """Return which pages an event is about, if not just one, and why a page fails."""
    if item.pages is not None:
        return f"on {format_count(item.pages, 'page')}"
    if item.reason:
        return format_reason(item.reason)
    is_of_template = item.change in {app.EventKind.DEFERRED, app.EventKind.RESUMED}
    return f"pages like {app.derive_template(item.url)}" if is_of_template else ""


def _format_figures(item: app.FeedItem) -> str:
    return join_parts(
        [
            f"cursor {item.position}",
            f"version {item.version}" if item.version else "",
            f"{format_share(item.magnitude)} of the page" if item.magnitude is not None else "",
            f"SimHash distance {item.distance_bits} of 64 bits" if item.distance_bits is not None else "",
            f"in its {' and '.join(item.parts)}" if item.parts else "",
        ]
    )


def _show_edit(edit: app.BlockChange, *, diff: bool) -> None:
    context, max_chars = LONG_EDIT if diff else SHORT_EDIT
    runs = app.diff_words(edit.before or "", edit.after or "", kind=edit.part)
    runs = app.shorten_runs(runs, context_chars=context, max_chars=max_chars)
    part = (edit.part.value.ljust(7), "dim")
    say_indented(Text.assemble(part, mark_runs(runs)), indent=INDENT, hanging=7)


def _show_next(newest: app.NewestChanges, *, remaining: int) -> None:
    changed = next((item for item in newest.items if item.change is app.EventKind.CHANGED), None)
    hints = [
        f"{remaining:,} more with --limit {remaining + len(newest.items)}" if remaining > 0 else "",
        f"recrawl diff {changed.url}" if changed else "",
        f"recrawl changes --since {newest.end} for later changes" if newest.end else "recrawl crawl URL",
    ]
    remark(f"Next: {'; '.join(hint for hint in hints if hint)}")
