"""recrawl changes: what changed, the newest first for people, in the order of the feed for programs."""

import sys
from datetime import UTC, datetime

from rich.text import Text

from crawler.app import changes as app
from crawler.cli.marked import joined, marked, say_beneath
from crawler.cli.output import print_json, print_json_line, printable, remark, say, say_heading, telling_of_cursors
from crawler.cli.session import Interrupts, with_database
from crawler.format.kinds import KIND_WORDS, KINDS, NEWS
from crawler.format.values import format_count, format_share, format_when

TOP, TOP_JSON = 20, 1000
INDENT = 11
MOST_EDITS = 3  # of one change, unless all are asked for
SHORT, LONG = (40, 160), (200, 1000)  # characters kept beside a change, and of a change itself


def changes(query: app.ChangesQuery, *, top: int | None, at: datetime | None, diff: bool, why: bool) -> None:
    """Show the newest changes. diff: every block that changed, and more of it.  why: with the figures behind it."""
    found = with_database(lambda db, _: app.list_changes(db, query, most=top or TOP, at=at))
    say_heading(_heading(found))
    for item in found.items:
        say("")
        show_change(item, now=found.at, diff=diff, why=why)
    first = found.counts.get(app.EventKind.FIRST, 0)
    is_folded = first and all(item.change is not app.EventKind.FIRST for item in found.items)
    if is_folded:
        say("")
        what = query.what or query.domain
        more = f"recrawl changes{f' {what}' if what else ''} --kind new"
        say(f"{format_count(first, 'page')} seen for the first time: {more}")
    _show_next(found, left=sum(found.counts.values()) - len(found.items) - (first if is_folded else 0))


def changes_as_json(query: app.ChangesQuery, *, top: int | None, at: datetime | None, diff: bool) -> None:
    with telling_of_cursors(as_json=True):
        found = with_database(lambda db, _: app.read_changes(db, query, most=top or TOP_JSON, blocks=diff, at=at))
    print_json({"changes": found.items, "next": found.next, "more": found.more})


def as_atom(query: app.ChangesQuery, *, top: int | None, at: datetime | None) -> None:
    """Print the newest changes as an Atom feed."""
    from crawler.app.delivery.feeds import MOST_ENTRIES, write_feed  # with all that tells; other forms need none of it

    most = top or MOST_ENTRIES
    document = with_database(lambda db, _: write_feed(db, query, most=most, at=at))
    sys.stdout.buffer.write(document)


def follow(query: app.ChangesQuery, *, from_now: bool, as_json: bool, diff: bool, why: bool) -> int:
    """Show changes as they are found, in the order of the feed. from_now: not those that were found before."""

    async def show_all(db: app.Database) -> None:
        changes = app.follow_changes(
            db, query, from_now=from_now, on_outage=lambda error: remark(f"{error}; it is asked again")
        )
        async for item in changes:
            if as_json:
                print_json_line(item)
            else:
                show_change(item, now=datetime.now(UTC), diff=diff, why=why)
                say("")

    async def work(db: app.Database, interrupts: Interrupts) -> int:
        await interrupts.or_stop(show_all(db))
        return interrupts.exit_code

    with telling_of_cursors(as_json=as_json):
        return with_database(work, patient=True)


def _heading(found: app.NewestChanges) -> str:
    span = f" since {format_when(found.since, now=found.at)}" if found.since else ""
    if not found.counts:
        return f"Nothing changed{span}"
    shown = {item.change for item in found.items} | NEWS
    told = [
        f"{found.counts[kind]:,} {KIND_WORDS[kind]}" for kind in KINDS.values() if kind in shown & found.counts.keys()
    ]
    return f"Changes{span}: {joined(told) or 'none of pages that were known'}"


def show_change(item: app.FeedItem, *, now: datetime, diff: bool = False, why: bool = False) -> None:
    title = printable(item.title or _path(item)).replace("\n", " ")
    head = Text.assemble((KIND_WORDS[item.change].ljust(INDENT), "bold"), title)
    say_beneath(head, indent=0, hanging=INDENT)
    for url in (item.url, f"to {item.moved_to}" if item.moved_to else ""):
        if url:
            say(" " * INDENT + url)  # an address is never broken
    importance = f"importance {item.importance:.2g}" if item.importance is not None else ""
    say_beneath(Text(joined([format_when(item.at, now=now), importance, _reach(item)])), indent=INDENT)
    if why:
        say_beneath(Text(_figures(item)), indent=INDENT)
    edits = item.blocks if diff else item.blocks[:MOST_EDITS]
    for edit in edits:
        _show_edit(edit, diff=diff)
    if len(edits) < len(item.blocks):
        say(" " * INDENT + f"and {format_count(len(item.blocks) - len(edits), 'block')} more: recrawl diff {item.url}")


def _path(item: app.FeedItem) -> str:
    return "/" + item.url.split("/", 3)[3] if item.change is not app.EventKind.BOILERPLATE else item.domain


def _reach(item: app.FeedItem) -> str:
    """What an event is about that is not of one page alone."""
    if item.pages is not None:
        return f"on {format_count(item.pages, 'page')}"
    is_of_template = item.change in {app.EventKind.HELD_BACK, app.EventKind.LET_GO}
    return f"pages like {app.template_of(item.url)}" if is_of_template else ""


def _figures(item: app.FeedItem) -> str:
    return joined(
        [
            f"cursor {item.position}",
            f"version {item.version}" if item.version else "",
            f"{format_share(item.amount)} of the page" if item.amount is not None else "",
            f"SimHash distance {item.distance_bits} of 64 bits" if item.distance_bits is not None else "",
            f"in its {' and '.join(item.parts)}" if item.parts else "",
        ]
    )


def _show_edit(edit: app.Edit, *, diff: bool) -> None:
    beside, most = LONG if diff else SHORT
    runs = app.excerpt(app.diff_words(edit.was or "", edit.now or "", part=edit.part), beside=beside, most=most)
    part = (edit.part.value.ljust(7), "dim")
    say_beneath(Text.assemble(part, marked(runs)), indent=INDENT, hanging=7)


def _show_next(found: app.NewestChanges, *, left: int) -> None:
    diffed = next((item for item in found.items if item.change is app.EventKind.CHANGED), None)
    hints = [
        f"{left:,} more with --top {left + len(found.items)}" if left > 0 else "",
        f"recrawl diff {diffed.url}" if diffed else "",
        f"recrawl changes --since {found.end} for what comes after these" if found.end else "recrawl crawl URL",
    ]
    remark(f"Next: {'; '.join(hint for hint in hints if hint)}")
