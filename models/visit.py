"""The tables of visits: recent visits are rows, partitioned by time; older ones are packed.

The functions visits_of and visits_between and the view every_visit read both (models/sql/visits.sql). A pack has an
array for each column of a visit.
"""

from datetime import datetime
from uuid import UUID

from sqlalchemy import CheckConstraint, Column, Index
from sqlalchemy import text as sql
from sqlalchemy.dialects.postgresql import ARRAY
from sqlmodel import Field, SQLModel

from models import columns
from models.columns import PageTable, Table
from models.page import PARTITIONED


class Visit(PageTable, table=True):
    """A finished fetch of a page: the response, the verdict, the cost and the next due time.

    status: of the last response; null if there was none.  reason: why the visit failed, or a detail of its result, such
    as moved_away; else empty.  change: the verdict.  evidence: the test that decided the verdict,
    such as etag, bytes or blocks.  distance_bits: the SimHash distance between the stored version and this response.
    parts: the kinds of blocks that changed, separated by spaces.
    magnitude: the share of the page that changed, 0 to 1.  conditional: validators were sent.  requests: all requests
    of the visit.  saved_bytes: bytes that a 304 or a HEAD saved.  cash: the page's cash that the visit distributed.
    expected: the probability of a change that was predicted before the visit; null without a prediction.
    audit: the page was drawn at random to check the reported freshness.  shadow_price: the minimum value of this visit,
    in importance x days.  due_at: when the next visit is due.  rendering: why the page was or was not rendered, or the
    result.  added_words, added_links: added by the page's scripts.
    """

    __table_args__ = (
        CheckConstraint("outcome IN ('fetched', 'not_modified', 'unreached')", name="visit_outcome"),
        CheckConstraint(
            "change IN ('added', 'unchanged', 'cosmetic', 'changed', 'moved', 'gone', 'restored', 'unknown')",
            name="visit_change",
        ),
        CheckConstraint("cash >= 0", name="visit_cash"),
        {"postgresql_partition_by": "RANGE (at)"},
    )
    at: datetime = columns.timestamptz(key=True)
    outcome: str = columns.text()
    status: int | None = columns.smallint(nullable=True)
    reason: str = columns.text(default="")
    change: str = columns.text()
    evidence: str = columns.text()
    distance_bits: int | None = columns.smallint(nullable=True)
    conditional: bool = Field(default=False)
    requests: int = columns.smallint()
    received_bytes: int = columns.integer()
    saved_bytes: int = columns.integer()
    elapsed_ms: int = columns.integer()
    cash: int = columns.bigint(default="0")
    expected: float | None = columns.double(nullable=True)
    due_at: datetime | None = columns.timestamptz(nullable=True)
    shadow_price: float | None = columns.double(nullable=True)
    audit: bool = columns.boolean()
    parts: str = columns.text(default="")
    magnitude: float | None = columns.double(nullable=True)
    rendering: str = columns.text(default="")
    added_words: int | None = columns.integer(nullable=True, default=None)
    added_links: int | None = columns.integer(nullable=True, default=None)


class VisitPack(Table, table=True):
    """Old visits of pages whose keys share a prefix: each column as an array, ordered by key and time.

    bits, bucket: length in bits and value of the shared prefix.  since, until: times of the first and the last visit.
    visits: their number.  keys: the key of each visit's page, 16 bytes each, concatenated.
    """

    __table_args__ = (
        CheckConstraint(
            "visits >= 1 AND octet_length(keys) = 16 * visits AND cardinality(at) = visits", name="visit_pack_whole"
        ),
        CheckConstraint("bits BETWEEN 0 AND 16 AND bucket >= 0 AND bucket < 1 << bits", name="visit_pack_bucket"),
        Index("visit_pack_until", "domain_id", "until"),
        PARTITIONED,
    )
    domain_id: int = columns.bigint(key=True)
    bits: int = columns.smallint(key=True)
    bucket: int = columns.integer(key=True, default=None)
    id: UUID = columns.uuid(key=True, default=sql("gen_random_uuid()"))
    since: datetime = columns.timestamptz()
    until: datetime = columns.timestamptz()
    visits: int = columns.integer()
    keys: bytes = columns.bytea()


_visit, _pack = (SQLModel.metadata.tables[name] for name in ("visit", "visit_pack"))
for _column in _visit.columns:
    if _column.name not in {"domain_id", "key"}:
        _pack.append_column(Column(_column.name, ARRAY(_column.type), nullable=False))
