"""recrawl changes: what changed, the newest first for people, in the order of the feed for programs."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from rich.text import Text

from crawler.app.pages import changes_of
from crawler.app.registration import domain_named, require_not_before_last_visit
from crawler.cli.cursors import told_if_useless
from crawler.cli.exits import DONE
from crawler.cli.marked import joined, marked, say_beneath, say_heading
from crawler.cli.output import print_json, print_json_line, printable, remark, say
from crawler.cli.session import Interrupts, with_database
from crawler.cli.values import DAYS_BACK
from crawler.core.change import diff_words, excerpt
from crawler.core.freshness import template_of
from crawler.errors import BadInput, StoreUnavailable
from crawler.format.kinds import KIND_WORDS, KINDS, NEWS, parse_kinds
from crawler.format.values import format_count, format_share, format_when
from crawler.runtime.pages import pages_origin
from crawler.settings import settings
from crawler.store import domains, report
from crawler.store.database import Database
from crawler.store.report import ChangeFilter, Edit, EventKind, FeedItem

TOP, TOP_JSON = 20, 1000
MOST_ENTRIES = 100  # of an Atom feed
INDENT = 11
MOST_EDITS = 3  # of one change, unless all are asked for
SHORT, LONG = (40, 160), (200, 1000)  # characters kept beside a change, and of a change itself


@dataclass(frozen=True, slots=True)
class Wish:
    """What a person asks for. what: a domain, a page, or a URL that pages lie beneath; None for all domains.

    since: a cursor of the feed, a span before now, or an instant; None for all.  kinds, top: None: as usual.
    diff: every block that changed, and more of it.  why: with the figures behind it.
    """

    what: str | None
    domain: str | None
    since: int | timedelta | datetime | None
    kinds: str | None
    top: int | None
    diff: bool
    why: bool


@dataclass(frozen=True, slots=True)
class Found:
    """Changes with how many of each kind there are. end: the cursor behind all that was read."""

    items: list[FeedItem]
    counts: Mapping[EventKind, int]
    end: int
    since: datetime | None
    now: datetime


def changes(wish: Wish, *, at: datetime | None, as_json: bool) -> int:
    kinds = parse_kinds(wish.kinds) if wish.kinds is not None else None

    async def work(db: Database, _: Interrupts) -> Found:
        where = await _place_of(db, wish)
        if at is not None:
            every = [listed.domain for listed in await domains.every(db)]
            wanted = [each for each in every if where.domain_id in {None, each.id}]
            await require_not_before_last_visit(db, wanted, at)
        instant = at or datetime.now(UTC)
        await report.stamp_feed(db, at=instant)
        where = _since(where, wish.since, now=instant)
        if isinstance(wish.since, int):
            await report.require_kept(db, where.domain_id, since=wish.since)
        shown = replace(where, kinds=kinds or (frozenset(EventKind) if as_json else NEWS))
        if as_json:
            items, end = await report.read_on(db, shown, most=(wish.top or TOP_JSON) + 1, blocks=wish.diff)
            return Found(items=items, counts={}, end=end, since=where.since, now=instant)
        return Found(
            items=await report.newest_changes(db, shown, most=wish.top or TOP, blocks=True),
            counts=await report.count_changes(db, replace(where, kinds=kinds or NEWS | {EventKind.FIRST})),
            end=await report.end_of_feed(db),
            since=where.since,
            now=instant,
        )

    with told_if_useless(as_json=as_json):
        found = with_database(work)
    if as_json:
        _print_document(found, wish)
    else:
        _show(found, wish)
    return DONE


def as_atom(wish: Wish, *, at: datetime | None) -> int:
    """Print the newest changes as an Atom feed."""
    from crawler.notify import AtomScope, atom_feed  # with all that tells; other forms need none of it

    kinds = parse_kinds(wish.kinds) if wish.kinds is not None else NEWS

    async def work(db: Database, _: Interrupts) -> bytes:
        instant = at or datetime.now(UTC)
        where = _since(await _place_of(db, wish), wish.since, now=instant)
        await report.stamp_feed(db, at=instant)
        if isinstance(wish.since, int):
            await report.require_kept(db, where.domain_id, since=wish.since)
        most = wish.top or MOST_ENTRIES
        items = await report.newest_changes(db, replace(where, kinds=kinds), most=most, blocks=True)
        scope = AtomScope(name=wish.what or wish.domain or "", origin=pages_origin(settings().home.resolve()))
        return atom_feed(items, scope, at=instant)

    document = with_database(work)
    sys.stdout.buffer.write(document)
    return DONE


def follow(wish: Wish, *, from_now: bool, as_json: bool) -> int:
    """Show changes as they are found, in the order of the feed. from_now: not those that were found before."""
    kinds = parse_kinds(wish.kinds) if wish.kinds is not None else None

    async def work(db: Database, interrupts: Interrupts) -> int:
        where = await _place_of(db, wish)
        await report.stamp_feed(db, at=datetime.now(UTC))
        end = await report.end_of_feed(db)
        shown = replace(
            _since(where, wish.since, now=datetime.now(UTC)) if not from_now else replace(where, after=end),
            kinds=kinds or (frozenset(EventKind) if as_json else NEWS),
        )
        if isinstance(wish.since, int) and not from_now:
            await report.require_kept(db, where.domain_id, since=wish.since)
        async with report.announcements(db) as announced:
            while not interrupts.stop.is_set():
                try:
                    items, cursor = await _new_items(db, shown)
                except StoreUnavailable as error:
                    remark(f"{error}; it is asked again")
                    items, cursor = [], shown.after
                for item in items:
                    if as_json:
                        print_json_line(item)
                    else:
                        _show_change(item, wish, now=datetime.now(UTC))
                        say("")
                shown = replace(shown, after=cursor)
                if not items:
                    await interrupts.or_stop(announced.wait())
        return interrupts.number or 0

    with told_if_useless(as_json=as_json):
        number = with_database(work, patient=True)
    return 128 + number if number else DONE


async def _new_items(db: Database, shown: ChangeFilter) -> tuple[list[FeedItem], int]:
    await report.stamp_feed(db, at=datetime.now(UTC))
    return await report.read_on(db, shown, most=TOP_JSON, blocks=True)


async def _place_of(db: Database, wish: Wish) -> ChangeFilter:
    """The changes of what was named. Raises BadInput."""
    if wish.what is not None and wish.domain is not None:
        raise BadInput("a domain is named twice: once is enough")
    if wish.what in DAYS_BACK:
        raise BadInput(f"{wish.what} is no domain: recrawl changes --since {wish.what}")
    if wish.domain is not None:
        return ChangeFilter(domain_id=(await domain_named(db, wish.domain)).id)
    return await changes_of(db, wish.what) if wish.what is not None else ChangeFilter()


def _since(where: ChangeFilter, since: int | timedelta | datetime | None, *, now: datetime) -> ChangeFilter:
    if since is None:
        return where
    if isinstance(since, int):
        return replace(where, after=since)
    return replace(where, since=since if isinstance(since, datetime) else now - since)


def _print_document(found: Found, wish: Wish) -> None:
    most = wish.top or TOP_JSON
    more = len(found.items) > most
    shown = found.items[:most]
    print_json({"changes": shown, "next": shown[-1].position if more else found.end, "more": more})


def _show(found: Found, wish: Wish) -> None:
    say_heading(_heading(found))
    for item in found.items:
        say("")
        _show_change(item, wish, now=found.now)
    first = found.counts.get(EventKind.FIRST, 0)
    is_folded = first and all(item.change is not EventKind.FIRST for item in found.items)
    if is_folded:
        say("")
        more = f"recrawl changes{f' {wish.what or wish.domain}' if wish.what or wish.domain else ''} --kind new"
        say(f"{format_count(first, 'page')} seen for the first time: {more}")
    _show_next(found, left=sum(found.counts.values()) - len(found.items) - (first if is_folded else 0))


def _heading(found: Found) -> str:
    span = f" since {format_when(found.since, now=found.now)}" if found.since else ""
    if not found.counts:
        return f"Nothing changed{span}"
    shown = {item.change for item in found.items} | NEWS
    told = [
        f"{found.counts[kind]:,} {KIND_WORDS[kind]}" for kind in KINDS.values() if kind in shown & found.counts.keys()
    ]
    return f"Changes{span}: {joined(told) or 'none of pages that were known'}"


def _show_change(item: FeedItem, wish: Wish, *, now: datetime) -> None:
    title = printable(item.title or _path(item)).replace("\n", " ")
    head = Text.assemble((KIND_WORDS[item.change].ljust(INDENT), "bold"), title)
    say_beneath(head, indent=0, hanging=INDENT)
    for url in (item.url, f"to {item.moved_to}" if item.moved_to else ""):
        if url:
            say(" " * INDENT + url)  # an address is never broken
    importance = f"importance {item.importance:.2g}" if item.importance is not None else ""
    say_beneath(Text(joined([format_when(item.at, now=now), importance, _reach(item)])), indent=INDENT)
    if wish.why:
        say_beneath(Text(_figures(item)), indent=INDENT)
    edits = item.blocks if wish.diff else item.blocks[:MOST_EDITS]
    for edit in edits:
        _show_edit(edit, wish)
    if len(edits) < len(item.blocks):
        say(" " * INDENT + f"and {format_count(len(item.blocks) - len(edits), 'block')} more: recrawl diff {item.url}")


def show_examples(items: Sequence[FeedItem]) -> None:
    """A few changes, as `recrawl changes` shows them."""
    wish = Wish(what=None, domain=None, since=None, kinds=None, top=None, diff=False, why=False)
    say_heading("The last changes that it found")
    for item in items:
        say("")
        _show_change(item, wish, now=items[0].at)


def _path(item: FeedItem) -> str:
    return "/" + item.url.split("/", 3)[3] if item.change is not EventKind.BOILERPLATE else item.domain


def _reach(item: FeedItem) -> str:
    """What an event is about that is not of one page alone."""
    if item.pages is not None:
        return f"on {format_count(item.pages, 'page')}"
    return f"pages like {template_of(item.url)}" if item.change in {EventKind.HELD_BACK, EventKind.LET_GO} else ""


def _figures(item: FeedItem) -> str:
    return joined(
        [
            f"cursor {item.position}",
            f"version {item.version}" if item.version else "",
            f"{format_share(item.amount)} of the page" if item.amount is not None else "",
            f"SimHash distance {item.distance_bits} of 64 bits" if item.distance_bits is not None else "",
            f"in its {' and '.join(item.parts)}" if item.parts else "",
        ]
    )


def _show_edit(edit: Edit, wish: Wish) -> None:
    beside, most = LONG if wish.diff else SHORT
    runs = excerpt(diff_words(edit.was or "", edit.now or "", part=edit.part), beside=beside, most=most)
    part = (edit.part.value.ljust(7), "dim")
    say_beneath(Text.assemble(part, marked(runs)), indent=INDENT, hanging=7)


def _show_next(found: Found, *, left: int) -> None:
    diffed = next((item for item in found.items if item.change is EventKind.CHANGED), None)
    hints = [
        f"{left:,} more with --top {left + len(found.items)}" if left > 0 else "",
        f"recrawl diff {diffed.url}" if diffed else "",
        f"recrawl changes --since {found.end} for what comes after these" if found.end else "recrawl crawl URL",
    ]
    remark(f"Next: {'; '.join(hint for hint in hints if hint)}")
