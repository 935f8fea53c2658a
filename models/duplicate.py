"""Which pages say nearly the same: fingerprints by page and by band, apart from the page, filled off the hot path."""

from sqlalchemy import CheckConstraint, Column, Index, Integer
from sqlmodel import Field, SQLModel

from models.columns import big, domain_key, domain_reference, octets
from models.page import HASHED


class PageFingerprint(SQLModel, table=True):
    """The fingerprint of a page's last version, as far as the events were read; pages with little text have none."""

    __tablename__ = "page_fingerprint"
    __table_args__ = (
        Index("page_fingerprint_pages", "domain_id", "fingerprint", "key"),
        {"postgresql_partition_by": HASHED},
    )
    domain_id: int = Field(sa_column=domain_key())
    key: bytes = Field(sa_column=octets(key=True))
    fingerprint: int = Field(sa_column=big())


class FingerprintBand(SQLModel, table=True):
    """A quarter of a fingerprint, with which to find those that differ in three bits at most: one quarter is equal.

    band: 65536 times the number of the quarter, 0 to 3, plus its 16 bits. Four rows for a fingerprint, however many
    pages have it.
    """

    __tablename__ = "fingerprint_band"
    __table_args__ = (
        CheckConstraint("band BETWEEN 0 AND 262143", name="fingerprint_band_quarters"),
        {"postgresql_partition_by": HASHED},
    )
    domain_id: int = Field(sa_column=domain_key())
    band: int = Field(sa_column=Column(Integer, primary_key=True, autoincrement=False))
    fingerprint: int = Field(sa_column=big(key=True))


class FingerprintCursor(SQLModel, table=True):
    """Up to which of its events a domain's fingerprints are filled in."""

    __tablename__ = "fingerprint_cursor"
    domain_id: int = Field(sa_column=domain_reference())
    event: int = Field(sa_column=big(default="0"))
