"""The events of a domain: what becomes a line of the change feed, numbered without gaps as it is recorded."""

from collections.abc import Sequence
from typing import Any

from psycopg.types.json import Jsonb

from crawler.core.change import Change
from crawler.core.outline import Part
from crawler.core.visit import Visit
from crawler.store.copying import clean, copy
from crawler.store.database import Connection

EVENTS = """
    COPY event (domain_id, number, at, key, url, change, version, distance_bits,
                parts, pieces) FROM STDIN (FORMAT BINARY)
"""
MOST_PIECES = 50  # of one change, kept with its event
MOST_PIECE_CHARS = 500


async def write(connection: Connection, domain_id: int, visits: Sequence[Visit], *, first: int) -> int:
    """Number the changes on from `first`, without gaps; gives how many there were."""
    events = [visit for visit in visits if _is_event(visit)]
    await copy(
        connection,
        EVENTS,
        ["int8", "int8", "timestamptz", "bytea", "text", "text", "int4", "int2", "text", "jsonb"],
        (
            (
                domain_id,
                first + n,
                visit.at,
                visit.target.key,
                visit.target.url,
                visit.change.value,
                _version_number(visit),
                visit.verdict.distance_bits,
                parts_of(visit),
                _pieces(visit),
            )
            for n, visit in enumerate(events)
        ),
    )
    return len(events)


def parts_of(visit: Visit) -> str:
    """What changed, by name: text, link, image, title, meta."""
    return " ".join(sorted(visit.verdict.left.parts))


def _pieces(visit: Visit) -> Jsonb | None:
    """The first pieces that changed, so that nobody has to work out the difference again."""
    left = visit.verdict.left
    if not left:
        return None
    pieces: list[tuple[Part, str | None, str | None]]
    pieces = [(before.part, before.text, after.text) for before, after in left.replaced]
    pieces += [(place.part, place.text, None) for place in left.removed]
    pieces += [(place.part, None, place.text) for place in left.added]
    return Jsonb([[part.value, _cut(before), _cut(after)] for part, before, after in pieces[:MOST_PIECES]])


def _cut(piece: str | None) -> Any:
    return clean(piece and piece[:MOST_PIECE_CHARS])


def _is_event(visit: Visit) -> bool:
    match visit.change:
        case Change.FIRST | Change.CHANGED | Change.BACK:
            return True
        case Change.MOVED | Change.GONE:
            return visit.target.version is not None  # nobody misses what was never there
        case Change.SAME | Change.COSMETIC | Change.UNKNOWN:
            return False


def _version_number(visit: Visit) -> int:
    if visit.snapshot is not None:
        return visit.snapshot.version.number
    return visit.target.version.number if visit.target.version else 0
