"""Failures in a row of pages and of whole domains, and the events `failing` and `recovered` that report them once.

A run is stored while it lasts, under the lease, in the transaction that records its visits and its events. Most pages
have none, so visits that succeed write nothing here.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from crawler.core.domain import Domain, Suspension
from crawler.core.domain_settings import DomainSettings
from crawler.core.http.urls import PageKey, Url, compute_page_key
from crawler.core.visit.visit import State, Visit
from crawler.store.database import Connection
from crawler.store.rows import build_unnest, clean_text, execute, fetch_rows, split_into_columns

WHOLE_DOMAIN = b""  # the key of a domain's own run
FAILING, RECOVERED = "failing", "recovered"

READ_RUNS = "SELECT key, since, is_reported FROM failure_run WHERE domain_id = %(domain_id)s AND key = ANY(%(keys)s)"
RUN_COLUMNS = "key bytea, since timestamptz, is_reported bool"
WRITE_RUNS = f"""
    INSERT INTO failure_run (domain_id, key, since, is_reported)
    SELECT %(domain_id)s, x.* FROM {build_unnest(RUN_COLUMNS)}
    ON CONFLICT (domain_id, key) DO UPDATE SET is_reported = excluded.is_reported
"""  # noqa: S608  our own columns
DELETE_RUNS = "DELETE FROM failure_run WHERE domain_id = %(domain_id)s AND key = ANY(%(keys)s)"
# Take the number of the domain's next event and write the event.
ADD_EVENT = """
    WITH allocated AS (
        UPDATE domain_state SET next_event = next_event + 1
         WHERE domain_id = %(domain_id)s RETURNING next_event - 1 AS no)
    INSERT INTO event (domain_id, number, at, key, url, change, version, reason)
    SELECT %(domain_id)s, allocated.no, %(at)s, %(key)s, %(url)s, %(change)s, %(version)s, %(reason)s FROM allocated
"""


@dataclass(frozen=True, slots=True)
class FailureEvent:
    """The start or the end of a reported run. version: of the page; 0 if the whole domain is meant.

    reason: why the last visit failed; empty at the end.
    """

    at: datetime
    key: PageKey
    url: Url
    change: str
    version: int
    reason: str = ""


@dataclass(frozen=True, slots=True)
class _Run:
    since: datetime
    is_reported: bool = False

    def is_due(self, settings: DomainSettings, *, failures: int, at: datetime) -> bool:
        """Return whether it is so long that it must be reported now."""
        is_long = failures >= settings.failing_visits or at - self.since >= settings.failing_time
        return is_long and not self.is_reported


async def record_page_failures(connection: Connection, domain: Domain, visits: Sequence[Visit]) -> list[FailureEvent]:
    """Record failures of fetched pages, and the ends of their runs; return the events to write.

    A run of a page ends without an event if the page is gone or has moved, because that is an event of its own.
    """
    counted = [
        visit
        for visit in visits
        if visit.failures != visit.target.failures
        and visit.target.version is not None
        and not (visit.overloaded and visit.failures)  # a failure of the domain
    ]
    runs = await _read_runs(connection, domain.id, [visit.target.key for visit in counted])
    events, written, ended = list[FailureEvent](), dict[bytes, _Run](), list[bytes]()
    for visit in counted:
        target, run = visit.target, runs.get(visit.target.key)
        assert target.version is not None
        facts = visit.at, target.key, target.url
        if visit.failures and visit.state is State.FETCHED and target.list_stats is None:
            current = run or _Run(visit.at)
            if current.is_due(domain.settings, failures=visit.failures, at=visit.at):
                current = _Run(current.since, is_reported=True)
                events.append(FailureEvent(*facts, FAILING, target.version.number, visit.reason))
            if current != run:
                written[target.key] = current
        elif run is not None and not visit.failures:
            ended.append(target.key)
            if run.is_reported and visit.state is State.FETCHED:
                version = visit.snapshot.version if visit.snapshot is not None else target.version
                events.append(FailureEvent(*facts, RECOVERED, version.number))
    await _write_runs(connection, domain.id, written)
    await _delete_runs(connection, domain.id, ended)
    return events


async def record_suspension(
    connection: Connection, domain: Domain, suspension: Suspension, *, at: datetime
) -> list[FailureEvent]:
    """Record that a domain is suspended; return the event to write, if any."""
    runs = await _read_runs(connection, domain.id, [WHOLE_DOMAIN])
    run = runs.get(WHOLE_DOMAIN, _Run(at))
    is_due = run.is_due(domain.settings, failures=suspension.rejections, at=at)
    if is_due or not runs:
        await _write_runs(connection, domain.id, {WHOLE_DOMAIN: _Run(run.since, run.is_reported or is_due)})
    return [_build_domain_event(domain, FAILING, at=at, reason=suspension.reason)] if is_due else []


async def end_suspensions(connection: Connection, domain: Domain, *, at: datetime) -> list[FailureEvent]:
    """Record that a domain answers; return the event to write, if any."""
    runs = await _read_runs(connection, domain.id, [WHOLE_DOMAIN])
    await _delete_runs(connection, domain.id, list(runs))
    return [_build_domain_event(domain, RECOVERED, at=at) for run in runs.values() if run.is_reported]


async def add_event(connection: Connection, domain: Domain, event: FailureEvent) -> None:
    """Write an event outside of a batch of visits."""
    values = {name: getattr(event, name) for name in FailureEvent.__slots__}
    await execute(connection, ADD_EVENT, values | {"domain_id": domain.id, "reason": clean_text(event.reason)})


def _build_domain_event(domain: Domain, change: str, *, at: datetime, reason: str = "") -> FailureEvent:
    root = Url(domain.root)
    return FailureEvent(at, compute_page_key(root), root, change, version=0, reason=reason)


async def _read_runs(connection: Connection, domain_id: int, keys: Collection[bytes]) -> dict[bytes, _Run]:
    if not keys:
        return {}
    rows = await fetch_rows(connection, READ_RUNS, {"domain_id": domain_id, "keys": list(keys)})
    return {key: _Run(since, is_reported) for key, since, is_reported in rows}


async def _write_runs(connection: Connection, domain_id: int, runs: dict[bytes, _Run]) -> None:
    if runs:
        rows: list[tuple[Any, ...]] = [(key, run.since, run.is_reported) for key, run in runs.items()]
        await execute(connection, WRITE_RUNS, split_into_columns(RUN_COLUMNS, rows) | {"domain_id": domain_id})


async def _delete_runs(connection: Connection, domain_id: int, keys: Collection[bytes]) -> None:
    if keys:
        await execute(connection, DELETE_RUNS, {"domain_id": domain_id, "keys": list(keys)})
