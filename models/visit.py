"""The tables of visits, append-only: recent visits are rows, partitioned by time; older ones are packed.

The functions visits_of, old_visits_of and visits_between and the view every_visit read both (models/sql/visits.sql). A
pack has an array for each column of a visit.
"""

from datetime import datetime
from uuid import UUID

from sqlalchemy import CheckConstraint, Column, Index
from sqlalchemy import text as sql
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.types import Uuid
from sqlmodel import Field, SQLModel

from models.columns import PageTable, Table, bigint, boolean, bytea, double, integer, smallint, text, timestamptz
from models.page import HASH_BY_DOMAIN


class Visit(PageTable, table=True):
    """A finished fetch of a page: the response, the verdict, the cost and the next due time."""

    __table_args__ = (
        CheckConstraint("outcome IN ('fetched', 'not_modified', 'unreached')", name="visit_outcome"),
        CheckConstraint(
            "change IN ('added', 'unchanged', 'cosmetic', 'changed', 'moved', 'gone', 'restored', 'unknown')",
            name="visit_change",
        ),
        CheckConstraint("cash >= 0", name="visit_cash"),
        {"postgresql_partition_by": "RANGE (at)"},
    )
    at: datetime = Field(sa_column=timestamptz(key=True))
    outcome: str = Field(sa_column=text())
    status: int | None = Field(sa_column=smallint(nullable=True))
    reason: str = Field(sa_column=text(default=""))
    change: str = Field(sa_column=text())
    evidence: str = Field(sa_column=text())
    distance_bits: int | None = Field(sa_column=smallint(nullable=True))
    conditional: bool = Field(default=False)
    requests: int = Field(sa_column=smallint())
    received_bytes: int = Field(sa_column=integer())
    saved_bytes: int = Field(sa_column=integer())
    elapsed_ms: int = Field(sa_column=integer())
    cash: int = Field(sa_column=bigint(default="0"))
    expected: float | None = Field(sa_column=double(nullable=True))
    due_at: datetime | None = Field(sa_column=timestamptz(nullable=True))
    shadow_price: float | None = Field(sa_column=double(nullable=True))
    audit: bool = Field(sa_column=boolean())
    parts: str = Field(sa_column=text(default=""))
    magnitude: float | None = Field(sa_column=double(nullable=True))  # share of the page that changed, 0 to 1
    rendering: str = Field(sa_column=text(default=""))  # why it was or was not rendered, or the result
    added_words: int | None = Field(sa_column=integer(nullable=True, default=None))  # added by its scripts
    added_links: int | None = Field(sa_column=integer(nullable=True, default=None))


class VisitPack(Table, table=True):
    """Old visits of pages whose keys share a prefix: each column as an array, ordered by key and time.

    bits, bucket: length in bits and value of the shared prefix.  keys: concatenated keys of 16 bytes each.
    """

    __table_args__ = (
        CheckConstraint(
            "visits >= 1 AND octet_length(keys) = 16 * visits AND cardinality(at) = visits", name="visit_pack_whole"
        ),
        CheckConstraint("bits BETWEEN 0 AND 16 AND bucket >= 0 AND bucket < 1 << bits", name="visit_pack_bucket"),
        Index("visit_pack_until", "domain_id", "until"),
        {"postgresql_partition_by": HASH_BY_DOMAIN},
    )
    domain_id: int = Field(sa_column=bigint(key=True))
    bits: int = Field(sa_column=smallint(key=True))
    bucket: int = Field(sa_column=integer(key=True, default=None))
    id: UUID = Field(sa_column=Column(Uuid, primary_key=True, server_default=sql("gen_random_uuid()")))
    since: datetime = Field(sa_column=timestamptz())
    until: datetime = Field(sa_column=timestamptz())
    visits: int = Field(sa_column=integer())
    keys: bytes = Field(sa_column=bytea())


_visit, _pack = (SQLModel.metadata.tables[name] for name in ("visit", "visit_pack"))
for _column in _visit.columns:
    if _column.name not in {"domain_id", "key"}:
        _pack.append_column(Column(_column.name, ARRAY(_column.type), nullable=False))
