"""The events of a domain: what becomes a line of the change feed, numbered without gaps as it is recorded."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from itertools import islice
from typing import Any

from psycopg.types.json import Jsonb

from crawler.core.change.change import Change
from crawler.core.change.edits import SiteEdit
from crawler.core.change.word_diff import around_change, cut_at_word
from crawler.core.domain import Domain
from crawler.core.http.urls import Url, key_of
from crawler.core.page.lists.url_list import ListKind
from crawler.core.page.outline import Block, Sides
from crawler.core.visit.visit import State, Visit
from crawler.store.database import Connection
from crawler.store.record.novelty import Turn
from crawler.store.rows import clean, copy

EVENT_COLUMNS = """
    domain_id int8, number int8, at timestamptz, key bytea, url text, change text, version int4, distance_bits int2,
    parts text, blocks jsonb, pages int4, amount float8
"""
MOST_BLOCKS = 50  # of one change, kept with its event
MOST_BLOCK_CHARS = 500
BOILERPLATE = "boilerplate"  # of an event that is the site's and no page's
HELD_BACK, LET_GO = "held_back", "let_go"  # of an event that is of all pages like that one
REFUSED = "refused"  # of an event that no look brought: the page may not be asked for any more


async def write(
    connection: Connection,
    domain: Domain,
    visits: Sequence[Visit],
    edit: SiteEdit | None,
    turns: Sequence[Turn],
    *,
    first: int,
) -> int:
    """Number the changes on from `first`, without gaps; gives their number.

    turns: sections whose new pages are held back from now on, or let go.  edit: of the site; the last event.
    """
    rows = [_row(visit) for visit in visits if _is_event(visit)]
    for turn in turns:
        change = HELD_BACK if turn.is_held else LET_GO
        rows.append((turn.at, key_of(turn.url), turn.url, change, 0, None, "", None, None, None))
    if edit is not None:
        rows.append(_site_row(domain, edit, at=max(visit.at for visit in visits)))
    await copy(connection, "event", EVENT_COLUMNS, ((domain.id, first + n, *row) for n, row in enumerate(rows)))
    return len(rows)


def _row(visit: Visit) -> tuple[Any, ...]:
    version = visit.snapshot.version if visit.snapshot is not None else visit.target.version
    change = REFUSED if _is_refusal(visit) else visit.told.value
    number = version.number if version is not None else 0
    said = (visit.verdict.distance_bits, parts_of(visit), _blocks(visit), None, visit.amount)
    return visit.at, visit.target.key, visit.target.url, change, number, *said


def _site_row(domain: Domain, edit: SiteEdit, *, at: datetime) -> tuple[Any, ...]:
    """The event of a site-wide edit, at the domain's root."""
    root = Url(domain.root)
    parts = " ".join(sorted({place.kind for sides in edit.blocks for place in sides if place is not None}))
    return at, key_of(root), root, BOILERPLATE, 0, None, parts, _written(edit.blocks), edit.pages, None


def parts_of(visit: Visit) -> str:
    """What changed, by name: text, link, image, title, meta."""
    return " ".join(sorted(visit.verdict.significant.kinds))


def _blocks(visit: Visit) -> Jsonb | None:
    left = visit.verdict.significant
    return _written(left.sides) if left else None


def _written(blocks: Iterable[Sides]) -> Jsonb:
    """The first blocks that changed, so that nobody has to work out the difference again."""
    first = [(was or now, was, now) for was, now in islice(blocks, MOST_BLOCKS)]
    return Jsonb([[of.kind.value, *_cut(was, now)] for of, was, now in first if of is not None])


def _cut(was: Block | None, now: Block | None) -> tuple[Any, Any]:
    """Both texts as far as they are kept: of long ones what stands around the first difference."""
    if was is not None and now is not None:
        before, after = around_change(was.text, now.text, most=MOST_BLOCK_CHARS)
        return clean(before), clean(after)
    return _beginning(was), _beginning(now)


def _beginning(side: Block | None) -> Any:
    return None if side is None else clean(cut_at_word(side.text, MOST_BLOCK_CHARS))


def _is_event(visit: Visit) -> bool:
    """Whether a visit is told in the feed. What a sitemap says is told of the pages that it names."""
    kind = visit.list_news.kind if visit.list_news else visit.target.known_list and visit.target.known_list.kind
    if kind is not None and kind != ListKind.FEED:
        return False
    match visit.told:
        case Change.FIRST | Change.CHANGED | Change.BACK:
            return True
        case Change.MOVED | Change.GONE:
            return visit.target.version is not None  # nobody misses what was never there
        case Change.SAME | Change.COSMETIC | Change.UNKNOWN:
            return _is_refusal(visit)


def _is_refusal(visit: Visit) -> bool:
    """Whether a page that was read may not be fetched any more, from now on."""
    is_new = visit.state is State.REFUSED and visit.target.state is not State.REFUSED
    return is_new and visit.target.version is not None
