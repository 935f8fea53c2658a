"""The sources of change signals of a domain: what they are worth, learnt from looks by core/freshness/source_record."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from psycopg.types.json import Jsonb

from crawler.core.change.change import Change
from crawler.core.freshness.belief import DAY
from crawler.core.freshness.signals import SourceWorth, worth_has_moved
from crawler.core.freshness.source_record import NEVER_HEARD, SourceRecord, arrived, record_after
from crawler.core.freshness.terms import Wanted
from crawler.core.visit.update import TEACHES
from crawler.core.visit.visit import Visit
from crawler.store.database import Connection
from crawler.store.rows import fetch_rows

MOST_SOURCES = 16  # of one domain; signals of further ones are not counted

GET = """
    SELECT o.no, o.source, o.measured_at, o.record, o.weighed_recall, o.weighed_noise, o.weighed_silence, s.tracked
      FROM domain_source o JOIN domain_state s ON s.domain_id = o.domain_id
     WHERE o.domain_id = %s ORDER BY o.no
"""
ADD = """
    INSERT INTO domain_source (domain_id, no, source, measured_at, recall, noise, silence, weighed_recall,
                               weighed_noise, weighed_silence, record)
    VALUES (%(domain_id)s, %(no)s, %(source)s, %(at)s, %(recall)s, %(noise)s, %(silence)s, %(recall)s, %(noise)s,
            %(silence)s, %(record)s)
"""
PUT = """
    UPDATE domain_source
       SET measured_at = %(at)s, recall = %(recall)s, noise = %(noise)s, silence = %(silence)s, record = %(record)s,
           signals = signals + %(heard)s,
           weighed_recall = CASE WHEN %(moved)s THEN %(recall)s ELSE weighed_recall END,
           weighed_noise = CASE WHEN %(moved)s THEN %(noise)s ELSE weighed_noise END,
           weighed_silence = CASE WHEN %(moved)s THEN %(silence)s ELSE weighed_silence END
     WHERE domain_id = %(domain_id)s AND no = %(no)s
"""


@dataclass(frozen=True, slots=True)
class KnownSource:
    """A source of a domain as the store has it. weighed: the worth by which due times were last made."""

    no: int
    source: str
    measured_at: datetime
    record: SourceRecord
    weighed: SourceWorth
    pages: int

    def at(self, instant: datetime, *, heard: int = 0) -> SourceRecord:
        """Its record at an instant: the time since it was measured brought so many signals."""
        return arrived(self.record, days=(instant - self.measured_at) / DAY, pages=self.pages, signals=heard)


async def sources_of(connection: Connection, domain_id: int) -> list[KnownSource]:
    """The domain's sources, by their numbers, which begin at 0."""
    rows = await fetch_rows(connection, GET, (domain_id,))
    return [
        KnownSource(
            no=no,
            source=source,
            measured_at=at,
            record=SourceRecord(**record),
            weighed=SourceWorth(recall=recall, noise=noise, liveliness=silence / recall if recall else 0.0),
            pages=pages,
        )
        for no, source, at, record, recall, noise, silence, pages in rows
    ]


async def source_named(connection: Connection, domain_id: int, source: str, *, at: datetime) -> KnownSource | None:
    """The domain's source of that name, a new one where there is room for it."""
    known = await sources_of(connection, domain_id)
    found = next((each for each in known if each.source == source), None)
    if found is not None or len(known) >= MOST_SOURCES:
        return found
    values = _values(domain_id, len(known), NEVER_HEARD, NEVER_HEARD.worth, at=at)
    await connection.execute(ADD, values | {"source": source})
    return next(each for each in await sources_of(connection, domain_id) if each.source == source)


async def count_heard(connection: Connection, domain_id: int, source: KnownSource, heard: int, *, at: datetime) -> None:
    """Count signals that came from a source by now."""
    await _put(connection, domain_id, source, source.at(at, heard=heard), heard=heard, at=at)


async def learn_of_sources(connection: Connection, domain_id: int, visits: Sequence[Visit]) -> bool:
    """Take in what a batch of looks says of the domain's sources; whether due times should be made anew by that.

    Looks that were called for since another page changed are no sample of what signals tell.
    """
    if not any(visit.target.terms.sources for visit in visits):
        return False
    at = max(visit.at for visit in visits)
    moved = False
    for source in await sources_of(connection, domain_id):
        record = source.at(at)
        for visit in visits:
            record = _after(record, visit, source)
        moved |= await _put(connection, domain_id, source, record, at=at)
    return moved


def _after(record: SourceRecord, visit: Visit, source: KnownSource) -> SourceRecord:
    target, no = visit.target, source.no
    is_sample = visit.change in TEACHES and target.version is not None and target.wanted is not Wanted.BY_LEADER
    if not is_sample or target.last_good_at is None or no >= len(target.terms.sources):
        return record
    return record_after(
        record,
        believed=target.belief,
        gap_days=(visit.at - target.last_good_at) / DAY + target.activity_ahead,
        signals=target.signals[no] if no < len(target.signals) else 0,
        changed=visit.change is Change.CHANGED,
    )


async def _put(
    connection: Connection, domain_id: int, source: KnownSource, record: SourceRecord, *, at: datetime, heard: int = 0
) -> bool:
    worth = record.worth
    moved = worth_has_moved(source.weighed, worth)
    values = _values(domain_id, source.no, record, worth, at=at) | {"heard": heard, "moved": moved}
    await connection.execute(PUT, values)
    return moved


def _values(domain_id: int, no: int, record: SourceRecord, worth: SourceWorth, *, at: datetime) -> dict[str, Any]:
    return {
        "domain_id": domain_id,
        "no": no,
        "at": at,
        "recall": worth.recall,
        "noise": worth.noise,
        "silence": worth.silence,
        "record": Jsonb(asdict(record)),
    }
