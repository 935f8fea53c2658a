"""The reliability of validators and of change signals, learned from visits.

Trust in validators is kept per group of pages, and revisits are counted when pages are dispatched. For the sources of
change signals, see core/freshness/source_record.py.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from msgspec import Struct
from msgspec.structs import asdict
from psycopg.types.json import Jsonb

from crawler.core.change.change import Change
from crawler.core.domain import Domain
from crawler.core.freshness.estimates import DAY
from crawler.core.freshness.signals import SourceQuality, has_quality_moved
from crawler.core.freshness.source_record import NEW_RECORD, SourceRecord, record_arrivals, update_record
from crawler.core.freshness.visit_terms import RequestReason
from crawler.core.validator_trust import (
    NO_TRUST,
    WHOLE_DOMAIN,
    Validator,
    ValidatorStats,
    ValidatorTrust,
    update_domain_trust,
    update_trust,
)
from crawler.core.visit.update import INFORMATIVE_CHANGES
from crawler.core.visit.visit import Visit
from crawler.store.database import Connection, Database
from crawler.store.rows import (
    build_placeholders,
    build_unnest,
    build_upsert_set,
    fetch_rows,
    fetch_values,
    split_into_columns,
)

GET_TRUSTS = "SELECT prior_no, revisits, validator_checks, stats FROM domain_trust WHERE domain_id = %s"
COUNT_REVISITS = f"""
    INSERT INTO domain_trust (domain_id, prior_no, revisits)
    SELECT %(domain_id)s, * FROM {build_unnest("prior_no smallint, revisits int")}
    ON CONFLICT (domain_id, prior_no) DO UPDATE SET revisits = domain_trust.revisits + excluded.revisits
"""  # noqa: S608  only our own columns are inserted
TRUST_COLUMNS = "prior_no smallint, revisits int, validator_checks int, stats jsonb"
PUT_TRUSTS = f"""
    INSERT INTO domain_trust (domain_id, prior_no, revisits, validator_checks, stats)
    SELECT %(domain_id)s, * FROM {build_unnest(TRUST_COLUMNS)}
    ON CONFLICT (domain_id, prior_no) DO UPDATE SET {build_upsert_set(("revisits", "validator_checks", "stats"))}
"""  # noqa: S608  likewise
RATINGS = """
    SELECT template, validator, rating, changes_seen, missed, unchanged, flapped, validator_checks FROM report_trust
     WHERE domain_id = %s ORDER BY template, validator
"""

Trusts = Mapping[int, ValidatorTrust]  # by number of the group; WHOLE_DOMAIN has the revisits of the domain

MAX_SOURCES = 16  # per domain; signals of further sources are not counted

GET_SOURCES = """
    SELECT no, source, measured_at, record, applied_recall, applied_noise, applied_effective_recall, tracked
      FROM domain_source JOIN domain_state USING (domain_id) WHERE domain_id = %s ORDER BY no
"""
SOURCE_COLUMNS = ("source", "measured_at", "recall", "noise", "effective_recall", "record")
APPLIED_COLUMNS = ("applied_recall", "applied_noise", "applied_effective_recall")
PUT_SOURCE = f"""
    INSERT INTO domain_source AS o (domain_id, no, signals, {", ".join(SOURCE_COLUMNS + APPLIED_COLUMNS)})
    VALUES (%(domain_id)s, %(no)s, %(signal_count)s, {build_placeholders(SOURCE_COLUMNS + APPLIED_COLUMNS)})
    ON CONFLICT (domain_id, no) DO UPDATE
       SET signals = o.signals + excluded.signals, {build_upsert_set(SOURCE_COLUMNS)},
           {
    ", ".join(f"{name} = CASE WHEN %(moved)s THEN excluded.{name} ELSE o.{name} END" for name in APPLIED_COLUMNS)
}
"""  # noqa: S608  only our own columns are inserted


class TrustRow(Struct, frozen=True):
    """A row of the view report_trust, which describes the columns."""

    template: str
    validator: Validator
    rating: str
    changes_seen: float
    missed: float
    unchanged: float
    flapped: float
    validator_checks: int


async def read_trusts(connection: Connection, domain_id: int) -> Trusts:
    """Return the stored trust in the validators of each group, by the group's number."""
    rows = await fetch_rows(connection, GET_TRUSTS, (domain_id,))
    return {
        no: ValidatorTrust(
            revisits, validator_checks, {Validator(kind): ValidatorStats(**each) for kind, each in stats.items()}
        )
        for no, revisits, validator_checks, stats in rows
    }


async def count_revisits(connection: Connection, domain_id: int, groups: Iterable[int]) -> None:
    """Count dispatched revisits that may avoid a download, by validators or HEAD. groups: the group of each page."""
    counts = Counter(groups)
    if counts:
        counts[WHOLE_DOMAIN] = counts.total()
        values = {"domain_id": domain_id, "prior_no": list(counts), "revisits": list(counts.values())}
        await connection.execute(COUNT_REVISITS, values)


async def learn_trust(connection: Connection, domain_id: int, visits: Sequence[Visit]) -> None:
    """Update the trust in the validators of groups of pages, and of the whole domain, from a batch of visits."""
    before = await read_trusts(connection, domain_id)
    after = dict(before)
    for visit in visits:
        trust = after.get(visit.target.group, NO_TRUST)
        after[visit.target.group] = update_trust(trust, visit)
        after[WHOLE_DOMAIN] = update_domain_trust(after.get(WHOLE_DOMAIN, NO_TRUST), visit, trust)
    changed_trusts = {no: trust for no, trust in after.items() if trust != before.get(no, NO_TRUST)}
    if changed_trusts:
        rows = [
            (no, each.revisits, each.validator_checks, Jsonb({kind.value: asdict(s) for kind, s in each.stats.items()}))
            for no, each in changed_trusts.items()
        ]
        await connection.execute(PUT_TRUSTS, split_into_columns(TRUST_COLUMNS, rows) | {"domain_id": domain_id})


async def list_trust_rows(db: Database, domain: Domain) -> list[TrustRow]:
    """Return the ratings of the validators of each group, for a report."""
    return await fetch_values(db, TrustRow, RATINGS, (domain.id,))


class SourceState(Struct, frozen=True):
    """A stored source of change signals.

    no: its number.  record: as of measured_at.  applied_quality: the quality with which due times were last computed.
    pages: the number of pages of the domain.
    """

    no: int
    source: str
    measured_at: datetime
    record: SourceRecord
    applied_quality: SourceQuality
    pages: int

    def compute_record_at(self, instant: datetime, *, signal_count: int = 0) -> SourceRecord:
        """Return the record of the source at an instant. signal_count: the signals received since measured_at."""
        days = (instant - self.measured_at) / DAY
        return record_arrivals(self.record, days=days, pages=self.pages, signals=signal_count)


async def read_sources(connection: Connection, domain_id: int) -> list[SourceState]:
    """Return the sources of a domain in the order of their numbers, which start at 0."""
    rows = await fetch_rows(connection, GET_SOURCES, (domain_id,))
    sources = []
    for no, source, at, record, recall, noise, effective_recall, pages in rows:
        quality = SourceQuality(recall=recall, noise=noise, liveliness=effective_recall / recall if recall else 0.0)
        sources.append(SourceState(no, source, at, SourceRecord(**record), quality, pages))
    return sources


async def find_source(connection: Connection, domain_id: int, source: str, *, at: datetime) -> SourceState | None:
    """Return a source by name; a new one if it does not exist, None if there are too many. Does not store it."""
    sources = await read_sources(connection, domain_id)
    match = next((each for each in sources if each.source == source), None)
    if match is None and len(sources) < MAX_SOURCES:
        return SourceState(len(sources), source, at, NEW_RECORD, applied_quality=NEW_RECORD.quality, pages=0)
    return match


async def count_signals(
    connection: Connection, domain_id: int, source: SourceState, signal_count: int, *, at: datetime
) -> None:
    """Count signals received from a source and store the source."""
    record = source.compute_record_at(at, signal_count=signal_count)
    await _write_source(connection, domain_id, source, record, signal_count=signal_count, at=at)


async def learn_sources(connection: Connection, domain_id: int, visits: Sequence[Visit]) -> bool:
    """Update the domain's sources from a batch of visits and return whether to compute the due times again.

    Visits that were requested because the canonical page changed are left out, as they would bias the sample.
    """
    if not any(visit.target.terms.sources for visit in visits):
        return False
    at = max(visit.at for visit in visits)
    has_moved = False
    for source in await read_sources(connection, domain_id):
        record = source.compute_record_at(at)
        for visit in visits:
            record = _update_record(record, visit, source)
        has_moved |= await _write_source(connection, domain_id, source, record, at=at)
    return has_moved


def _update_record(record: SourceRecord, visit: Visit, source: SourceState) -> SourceRecord:
    target, no = visit.target, source.no
    is_sample = visit.change in INFORMATIVE_CHANGES and target.requested is not RequestReason.BY_CANONICAL
    if not is_sample or not target.version or target.last_good_at is None or no >= len(target.terms.sources):
        return record
    return update_record(
        record,
        estimate_before=target.rate_estimate,
        gap_days=(visit.at - target.last_good_at) / DAY + target.activity_ahead,
        signals=target.signals[no] if no < len(target.signals) else 0,
        changed=visit.change is Change.CHANGED,
    )


async def _write_source(
    connection: Connection,
    domain_id: int,
    source: SourceState,
    record: SourceRecord,
    *,
    at: datetime,
    signal_count: int = 0,
) -> bool:
    quality = record.quality
    has_moved = has_quality_moved(source.applied_quality, quality)
    applied_quality = quality if has_moved else source.applied_quality
    values = {"domain_id": domain_id, "no": source.no, "source": source.source, "measured_at": at, "moved": has_moved}
    for name in ("recall", "noise", "effective_recall"):
        values |= {name: getattr(quality, name), f"applied_{name}": getattr(applied_quality, name)}
    values |= {"record": Jsonb(asdict(record)), "signal_count": signal_count}
    await connection.execute(PUT_SOURCE, values)
    return has_moved
