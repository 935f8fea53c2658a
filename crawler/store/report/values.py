"""The series of the values that rules read from pages."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from crawler.core.domain import Domain
from crawler.core.http.urls import Url, compute_page_key
from crawler.store.database import Database
from crawler.store.rows import fetch_rows, fetch_values

MAX_NUMBERS = 10_000  # of a series, with which a condition is evaluated

ROWS = """
    SELECT v.name, v.at, v.number, v.unit, v.text, v.finding, v.version FROM page_value v
     WHERE v.domain_id = %(domain_id)s AND v.key = %(key)s AND (%(name)s = '' OR v.name = %(name)s)
       AND (%(at)s::timestamptz IS NULL OR (v.at, v.name) < (%(at)s, %(last)s))
     ORDER BY v.at DESC, v.name DESC LIMIT %(most)s
"""
# The numbers since an instant, and the last one before it.
NUMBERS = """
    SELECT v.number FROM page_value v
     WHERE v.domain_id = %(domain_id)s
       AND v.key = %(key)s AND v.name = %(name)s AND v.number IS NOT NULL AND v.at <= %(at)s
       AND v.at >= coalesce((SELECT max(o.at) FROM page_value o
                              WHERE o.domain_id = %(domain_id)s AND o.key = %(key)s AND o.name = %(name)s
                                AND o.number IS NOT NULL AND o.at < %(since)s), '-infinity')
     ORDER BY v.at DESC LIMIT %(most)s
"""


@dataclass(frozen=True, slots=True)
class ValueReading:
    """A value of a page from `at` on. The fields are those of view report_value."""

    name: str
    at: datetime
    number: float | None
    unit: str
    text: str
    finding: str
    version: int


async def read_values(
    db: Database,
    domain: Domain,
    url: Url,
    *,
    name: str = "",
    before: tuple[datetime, str] | None = None,
    max_count: int,
) -> list[ValueReading]:
    """Return what was read from a page, the newest first.

    name: of one value; "" for all.  before: continue after the reading with this time and name.
    """
    at, last = before or (None, "")
    values = {"domain_id": domain.id, "key": compute_page_key(url), "name": name, "at": at, "last": last}
    return await fetch_values(db, ValueReading, ROWS, values | {"most": max_count})


async def list_numbers(
    db: Database, domain: Domain, url: Url, name: str, *, since: datetime, at: datetime
) -> Sequence[float]:
    """Return the numbers of a value of a page from the one that was current at `since` to that at another instant."""
    values = {"domain_id": domain.id, "key": compute_page_key(url), "name": name, "at": at, "since": since}
    rows = await fetch_rows(db, NUMBERS, values | {"most": MAX_NUMBERS})
    return [number for (number,) in reversed(rows)]
