"""How far the word of others about a domain can be believed, learned from visits: that of validators by group of pages,
read and counted at a hand-out, and that of the sources of change signals (core/freshness/source_record).
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime

from psycopg.types.json import Jsonb

from crawler.core.change.change import Change
from crawler.core.domain import Domain
from crawler.core.freshness.estimates import DAY
from crawler.core.freshness.signals import SourceWorth, worth_has_moved
from crawler.core.freshness.source_record import NEVER_HEARD, SourceRecord, arrived, record_after
from crawler.core.freshness.terms import Wanted
from crawler.core.validators import (
    NO_TRUST,
    WHOLE_DOMAIN,
    Trust,
    Validator,
    ValidatorStats,
    domain_trust_after,
    trust_after,
)
from crawler.core.visit.update import TEACHES
from crawler.core.visit.visit import Visit
from crawler.store.database import Connection, Database
from crawler.store.rows import excluded, fetch_rows, fetch_values, placeholders, to_columns, unnest

GET_TRUSTS = "SELECT prior_no, revisits, challenges, stats FROM domain_trust WHERE domain_id = %s"
COUNT_REVISITS = f"""
    INSERT INTO domain_trust (domain_id, prior_no, revisits)
    SELECT %(domain_id)s, * FROM {unnest("prior_no smallint, revisits int")}
    ON CONFLICT (domain_id, prior_no) DO UPDATE SET revisits = domain_trust.revisits + excluded.revisits
"""  # noqa: S608  only our own columns are put in
TRUST_COLUMNS = "prior_no smallint, revisits int, challenges int, stats jsonb"
PUT_TRUSTS = f"""
    INSERT INTO domain_trust (domain_id, prior_no, revisits, challenges, stats)
    SELECT %(domain_id)s, * FROM {unnest(TRUST_COLUMNS)}
    ON CONFLICT (domain_id, prior_no) DO UPDATE SET {excluded(("revisits", "challenges", "stats"))}
"""  # noqa: S608  likewise
RATINGS = """
    SELECT template, validator, rating, changes_seen, missed, unchanged, flapped, challenges FROM report_trust
     WHERE domain_id = %s ORDER BY template, validator
"""

Trusts = Mapping[int, Trust]  # by the number of the group; WHOLE has the domain's revisits

MOST_SOURCES = 16  # of one domain; signals of further ones are not counted

GET_SOURCES = """
    SELECT o.no, o.source, o.measured_at, o.record, o.weighed_recall, o.weighed_noise, o.weighed_silence, s.tracked
      FROM domain_source o JOIN domain_state s ON s.domain_id = o.domain_id
     WHERE o.domain_id = %s ORDER BY o.no
"""
WRITTEN = ("source", "measured_at", "recall", "noise", "silence", "record")
WEIGHED = ("weighed_recall", "weighed_noise", "weighed_silence")
PUT_SOURCE = f"""
    INSERT INTO domain_source AS o (domain_id, no, signals, {", ".join(WRITTEN + WEIGHED)})
    VALUES (%(domain_id)s, %(no)s, %(heard)s, {placeholders(WRITTEN + WEIGHED)})
    ON CONFLICT (domain_id, no) DO UPDATE
       SET signals = o.signals + excluded.signals, {excluded(WRITTEN)},
           {", ".join(f"{name} = CASE WHEN %(moved)s THEN excluded.{name} ELSE o.{name} END" for name in WEIGHED)}
"""  # noqa: S608  only our own columns are put in


@dataclass(frozen=True, slots=True)
class TrustRow:
    """A row of report_trust, which says what its columns mean."""

    template: str
    validator: Validator
    rating: str
    changes_seen: float
    missed: float
    unchanged: float
    flapped: float
    challenges: int


async def trusts_of(connection: Connection, domain_id: int) -> Trusts:
    """The trust of each group in which something was learnt, by the group's number."""
    found = await fetch_rows(connection, GET_TRUSTS, (domain_id,))
    return {
        no: Trust(revisits, challenges, {Validator(kind): ValidatorStats(**each) for kind, each in stats.items()})
        for no, revisits, challenges, stats in found
    }


async def count_revisits(connection: Connection, domain_id: int, groups: Iterable[int]) -> None:
    """Count pages with validators that are handed out. groups: of each of them, once for each page."""
    counts = Counter(groups)
    if counts:
        counts[WHOLE_DOMAIN] = counts.total()
        values = {"domain_id": domain_id, "prior_no": list(counts), "revisits": list(counts.values())}
        await connection.execute(COUNT_REVISITS, values)


async def learn_of(connection: Connection, domain_id: int, visits: Sequence[Visit]) -> None:
    """Take in what a batch of visits says of the groups' validators."""
    before = await trusts_of(connection, domain_id)
    after = dict(before)
    for visit in visits:
        trust = after.get(visit.target.group, NO_TRUST)
        after[visit.target.group] = trust_after(trust, visit)
        after[WHOLE_DOMAIN] = domain_trust_after(after.get(WHOLE_DOMAIN, NO_TRUST), visit, trust)
    news = {no: trust for no, trust in after.items() if trust != before.get(no, NO_TRUST)}
    if news:
        stats = ({kind.value: asdict(each) for kind, each in trust.stats.items()} for trust in news.values())
        rows = [
            (no, trust.revisits, trust.challenges, Jsonb(each))
            for (no, trust), each in zip(news.items(), stats, strict=True)
        ]
        await connection.execute(PUT_TRUSTS, to_columns(TRUST_COLUMNS, rows) | {"domain_id": domain_id})


async def trust_rows(db: Database, domain: Domain) -> list[TrustRow]:
    """The rating of each group's validators, for a report."""
    return await fetch_values(db, TrustRow, RATINGS, (domain.id,))


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
    rows = await fetch_rows(connection, GET_SOURCES, (domain_id,))
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
    """Return the domain's source of that name, a new one where there is room for it; `count_heard` stores it."""
    known = await sources_of(connection, domain_id)
    found = next((each for each in known if each.source == source), None)
    if found is None and len(known) < MOST_SOURCES:
        return KnownSource(len(known), source, at, NEVER_HEARD, weighed=NEVER_HEARD.worth, pages=0)
    return found


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
    weighed = worth if moved else source.weighed
    values = {
        "domain_id": domain_id,
        "no": source.no,
        "source": source.source,
        "measured_at": at,
        "recall": worth.recall,
        "noise": worth.noise,
        "silence": worth.silence,
        "record": Jsonb(asdict(record)),
        "weighed_recall": weighed.recall,
        "weighed_noise": weighed.noise,
        "weighed_silence": weighed.silence,
        "heard": heard,
        "moved": moved,
    }
    await connection.execute(PUT_SOURCE, values)
    return moved
