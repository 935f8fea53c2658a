"""The events of a domain, numbered without gaps when they are recorded; each becomes an entry of the change feed."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from itertools import islice
from typing import Any

from psycopg.types.json import Jsonb

from crawler.core.change.change import Change
from crawler.core.change.edits import BoilerplateEdit
from crawler.core.change.word_diff import cut_around_change, cut_at_word
from crawler.core.domain import Domain
from crawler.core.http.urls import Url, compute_page_key
from crawler.core.page.block import Block, BlockKind, BlockPair
from crawler.core.page.lists.url_list import ListKind
from crawler.core.visit.state import State
from crawler.core.visit.visit import Visit
from crawler.store.database import Connection
from crawler.store.failure_runs import FailureEvent
from crawler.store.record.novelty import Deferral
from crawler.store.record.values import ValueEvent
from crawler.store.rows import clean_text, copy_rows

EVENT_COLUMNS = """
    domain_id int8, number int8, at timestamptz, key bytea, url text, change text, version int4, distance_bits int2,
    parts text, blocks jsonb, pages int4, magnitude float8, reason text, value jsonb
"""
MAX_BLOCKS = 50  # changed blocks stored with an event
MAX_BLOCK_CHARS = 500
TEMPLATE = "template"  # concerns the site, not a page
DEFERRED, RESUMED = "deferred", "resumed"  # concern all unfetched pages of a section
VALUE = "value"  # a value that a rule reads from the page differs
EXCLUDED = "excluded"  # the page may no longer be fetched


async def write_events(
    connection: Connection,
    domain: Domain,
    visits: Sequence[Visit],
    edit: BoilerplateEdit | None,
    deferrals: Sequence[Deferral],
    *,
    values: Sequence[ValueEvent],
    failures: Sequence[FailureEvent],
    first_number: int,
) -> int:
    """Write the events of a batch, numbered from `first_number` without gaps, and return how many there are.

    deferrals: sections whose unfetched pages are deferred or resumed.  edit: a change of the site's boilerplate.
    values: those that differ.  failures: of pages or of the domain, after the other events of their visits.
    """
    rows = [_build_event_row(visit) for visit in visits if _is_event(visit)] + list(map(_build_value_row, values))
    for deferral in deferrals:
        change = DEFERRED if deferral.is_deferred else RESUMED
        rows.append(
            (
                deferral.at,
                compute_page_key(deferral.url),
                deferral.url,
                change,
                0,
                None,
                "",
                None,
                None,
                None,
                None,
                None,
            )
        )
    if edit is not None:
        rows.append(_build_template_row(domain, edit, at=max(visit.at for visit in visits)))
    for each in failures:
        reason = clean_text(each.reason) or None
        rows.append((each.at, each.key, each.url, each.change, each.version, None, "", None, None, None, reason, None))
    numbered = ((domain.id, number, *row) for number, row in enumerate(rows, first_number))
    await copy_rows(connection, "event", EVENT_COLUMNS, numbered)
    return len(rows)


def _build_event_row(visit: Visit) -> tuple[Any, ...]:
    version = visit.snapshot.version if visit.snapshot is not None else visit.target.version
    change = EXCLUDED if _is_exclusion(visit) else visit.reported_change.value
    number, significant = version.number if version is not None else 0, visit.verdict.significant
    blocks = _encode_sides(significant.sides) if significant else None
    details = (visit.verdict.distance_bits, format_parts(visit), blocks, None, visit.magnitude, None, None)
    return visit.at, visit.target.key, visit.target.url, change, number, *details


def _build_value_row(event: ValueEvent) -> tuple[Any, ...]:
    visit, value, last = event.visit, event.value, event.last
    edit = [BlockKind.TEXT.value, last.label if last is not None else None, value.label]
    facts = {"name": value.name, "unit": value.unit, "was": event.was, "now": value.number, "finding": value.finding}
    details = (event.version, None, "", Jsonb([list(map(clean_text, edit))]), None, None, None, Jsonb(facts))
    return visit.at, visit.target.key, visit.target.url, VALUE, *details


def _build_template_row(domain: Domain, edit: BoilerplateEdit, *, at: datetime) -> tuple[Any, ...]:
    """Return the event of a change of the boilerplate, for the root of the domain."""
    root = Url(domain.root)
    parts = " ".join(sorted({block.kind for sides in edit.blocks for block in sides if block is not None}))
    return (
        at,
        compute_page_key(root),
        root,
        TEMPLATE,
        0,
        None,
        parts,
        _encode_sides(edit.blocks),
        edit.pages,
        None,
        None,
        None,
    )


def format_parts(visit: Visit) -> str:
    """Return the kinds of blocks that changed (BlockKind), separated by spaces."""
    return " ".join(sorted(visit.verdict.significant.kinds))


def _encode_sides(blocks: Iterable[BlockPair]) -> Jsonb:
    """Return the first MAX_BLOCKS changed blocks as JSON: [kind, text before, text after] each."""
    first = [(was or now, was, now) for was, now in islice(blocks, MAX_BLOCKS)]
    return Jsonb([[block.kind.value, *_cut_sides(was, now)] for block, was, now in first if block is not None])


def _cut_sides(was: Block | None, now: Block | None) -> Iterable[Any]:
    """Return the texts of both blocks; long ones are cut. None: there is no such block."""
    if was is not None and now is not None:
        return map(clean_text, cut_around_change(was.text, now.text, max_chars=MAX_BLOCK_CHARS))
    return (side and clean_text(cut_at_word(side.text, MAX_BLOCK_CHARS)) for side in (was, now))


def _is_event(visit: Visit) -> bool:
    """Return whether a visit becomes an event. Visits to URL lists other than feeds do not; their pages have events."""
    kind = visit.list_result.kind if visit.list_result else visit.target.list_stats and visit.target.list_stats.kind
    if kind is not None and kind != ListKind.FEED:
        return False
    match visit.reported_change:
        case Change.ADDED | Change.CHANGED | Change.RESTORED:
            return True
        case Change.MOVED | Change.GONE:
            return visit.target.version is not None  # dead links are not reported
        case Change.UNCHANGED | Change.COSMETIC | Change.UNKNOWN:
            return _is_exclusion(visit)


def _is_exclusion(visit: Visit) -> bool:
    """Return whether this visit found that a page with a version may no longer be fetched."""
    is_new = visit.state is State.EXCLUDED and visit.target.state is not State.EXCLUDED
    return is_new and visit.target.version is not None
