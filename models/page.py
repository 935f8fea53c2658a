"""Everything about one page. Hot columns live apart from wide ones, so that a look is a HOT update of each."""

from datetime import datetime

from sqlalchemy import CheckConstraint, Index, desc
from sqlalchemy import text as sql
from sqlmodel import Field

from models.columns import (
    DomainTable,
    PageTable,
    Table,
    bigint,
    boolean,
    bytea,
    double,
    integer,
    integer_array,
    smallint,
    text,
    text_array,
    timestamptz,
    timestamptz_array,
)

HASH_BY_DOMAIN = "HASH (domain_id)"


def build_hot_storage(fill: int) -> dict[str, str]:
    """Storage of partitions whose rows every look rewrites: they need room on their own page for a HOT update."""
    return {"storage": f"fillfactor = {fill}, autovacuum_vacuum_scale_factor = 0.05"}


class Page(PageTable, table=True):
    """A URL that we keep looking at. Wide, and without an index on anything that a look changes."""

    __table_args__ = (
        CheckConstraint("octet_length(key) = 16", name="page_key"),
        CheckConstraint("octet_length(url) <= 8192", name="page_url"),
        CheckConstraint("rate_a >= 0 AND rate_b >= 0", name="page_rate"),
        CheckConstraint("magnitude_total >= 0 AND magnitude_changes >= 0", name="page_magnitudes"),
        Index("page_canonical", "domain_id", "canonical", postgresql_where=sql("canonical IS NOT NULL")),
        Index("page_withheld", "domain_id", postgresql_where=sql("withheld_since IS NOT NULL")),
        {"postgresql_partition_by": HASH_BY_DOMAIN, "info": build_hot_storage(85)},
    )
    url: str = Field(sa_column=text())
    first_seen_at: datetime = Field(sa_column=timestamptz())
    # Validators and size of the last good answer.
    etag: str | None = Field(sa_column=text(nullable=True))
    last_modified: str | None = Field(sa_column=text(nullable=True))
    received_bytes: int = Field(sa_column=integer())
    # What its own looks have added to the prior of its group; together, Gamma(a, b) over its change rate, b in days.
    rate_a: float = Field(sa_column=double(default="0"))
    rate_b: float = Field(sa_column=double(default="0"))
    prior_no: int = Field(sa_column=smallint(default="0"))
    # How much the changes found have changed: the sum of their amounts, and how many there were.
    magnitude_total: float = Field(sa_column=double(default="0"))
    magnitude_changes: float = Field(sa_column=double(default="0"))
    # New pages that a change of it announces on average, by what first looks at such pages turned out to be worth.
    announces: float = Field(sa_column=double(default="0"))
    # What the looks found.
    status: int | None = Field(sa_column=smallint(nullable=True))
    reason: str = Field(sa_column=text(default=""))
    visits: int = Field(sa_column=integer())
    changes: int = Field(sa_column=integer())
    failures: int = Field(sa_column=smallint(default="0"))
    # looks in a row that met the soft error that `reason` names
    soft_errors: int = Field(sa_column=smallint(default="0"))
    # Since when other content than the last Snapshot's is withheld, as it may be a soft error's.
    withheld_since: datetime | None = Field(sa_column=timestamptz(nullable=True))
    last_visit_at: datetime | None = Field(sa_column=timestamptz(nullable=True))
    last_good_at: datetime | None = Field(sa_column=timestamptz(nullable=True))
    last_change_at: datetime | None = Field(sa_column=timestamptz(nullable=True))
    missing_since: datetime | None = Field(sa_column=timestamptz(nullable=True))  # its first 404, until a look decides
    moved_to: bytes | None = Field(sa_column=bytea(nullable=True))
    redirects: int = Field(sa_column=smallint(default="0"))  # that led to it one after another from a page's link
    led_to: bytes | None = Field(sa_column=bytea(nullable=True))  # by its last redirect, for good or for now
    # The last Snapshot, in short: what a judgement compares with.
    version: int = Field(sa_column=integer())
    body_digest: bytes | None = Field(sa_column=bytea(nullable=True))
    text_digest: bytes | None = Field(sa_column=bytea(nullable=True))
    main_digest: bytes | None = Field(sa_column=bytea(nullable=True))
    shape_digest: bytes | None = Field(sa_column=bytea(nullable=True))
    fingerprint: int | None = Field(sa_column=bigint(nullable=True))
    is_rendered: bool = Field(sa_column=boolean())  # in a browser
    # Signals of change since its last good look: a byte for each source of the domain, by its number; and by that, too,
    # when each source last said that it had changed.
    signals: bytes = Field(sa_column=bytea(default=""))
    signaled_at: list[datetime | None] = Field(sa_column=timestamptz_array())
    # Whose schedule it shares, as long as their main texts are the same; it is due by a clock of its own.
    canonical: bytes | None = Field(sa_column=bytea(nullable=True))
    # Its URL, or its canonical link, too, says that it is that page: then it is not visited whenever that one changes.
    is_copy: bool = Field(sa_column=boolean())


class Frontier(PageTable, table=True):
    """Which page next: state, due time, and a rank for pages never fetched (crawler/core/opic/order.py).

    due_at: of a new page, when it may be asked for, since pages like it have brought nothing new; null: in its turn.
    section: the page's group, by which such pages are found (page.prior_no).
    """

    __table_args__ = (
        CheckConstraint("state IN ('unfetched', 'fetched', 'gone', 'moved', 'excluded')", name="frontier_state"),
        CheckConstraint("due_at IS NOT NULL OR state = 'unfetched'", name="frontier_due"),
        CheckConstraint("request_reason BETWEEN 0 AND 8", name="frontier_request_reason"),
        Index(
            "frontier_discovery",
            "domain_id",
            "boosted",
            desc("rank"),
            "key",
            postgresql_where=sql("state = 'unfetched' AND due_at IS NULL"),
        ),
        Index(
            "frontier_deferred",
            "domain_id",
            "due_at",
            "key",
            postgresql_where=sql("state = 'unfetched' AND due_at IS NOT NULL"),
        ),
        Index(
            "frontier_requested",
            "domain_id",
            desc("request_reason"),
            "key",
            postgresql_where=sql("request_reason IN (1, 4, 5)"),
        ),
        Index("frontier_due_order", "domain_id", "due_at", "key", postgresql_where=sql("state <> 'unfetched'")),
        {"postgresql_partition_by": HASH_BY_DOMAIN, "info": build_hot_storage(70)},
    )
    state: str = Field(sa_column=text())
    rank: int = Field(sa_column=integer())
    depth: int = Field(sa_column=smallint(default="0"))
    due_at: datetime | None = Field(sa_column=timestamptz(nullable=True))
    boosted: bool = Field(sa_column=boolean())
    url_score: float = Field(sa_column=double(default="1"))
    # Whether the next look at it is request_reason whatever it is worth: 1 by a user, 2 as one of an audit's random
    # sample, 3 since the page has changed whose schedule it shares, 4 by a user who named its URL: before all others, 5
    # to confirm a first 404: before all others once it is due, 6 since it is stored without what its scripts write, and
    # a browser should read it, 8 since a list names it, and it never was a page before.
    request_reason: int = Field(sa_column=smallint(default="0"))
    section: int = Field(sa_column=smallint(default="0"))


class Cash(PageTable, table=True):
    """A page's part in the economy; no row, no part. Its cash is net + the dividend of its pool."""

    __table_args__ = (
        CheckConstraint("pool BETWEEN 0 AND 3", name="cash_pool"),
        {"postgresql_partition_by": HASH_BY_DOMAIN, "info": build_hot_storage(70)},
    )
    pool: int = Field(sa_column=smallint())
    net: int = Field(sa_column=bigint())
    history: float = Field(sa_column=double(default="0"))
    clock: float = Field(sa_column=double(default="0"))


class PageLinks(PageTable, table=True):
    """The distinct in-domain links of the last reading, 16 bytes each, along which an unchanged page settles.

    external_domains: other domains it links to.  external_link_counts: by how many links each.
    """

    __table_args__ = (
        CheckConstraint("octet_length(targets) % 16 = 0", name="page_links_whole"),
        CheckConstraint(
            "cardinality(external_domains) = cardinality(external_link_counts)", name="page_links_external"
        ),
        {"postgresql_partition_by": HASH_BY_DOMAIN},
    )
    targets: bytes = Field(sa_column=bytea())
    external_domains: list[str] = Field(sa_column=text_array())
    external_link_counts: list[int] = Field(sa_column=integer_array())


class Snapshot(PageTable, table=True):
    """One version of a page, written only when something changed.

    is_stored: its text, its headers and its body are there; of one that was thinned out only this row is.
    """

    __table_args__ = (
        CheckConstraint("number >= 1", name="snapshot_number"),
        Index("snapshot_body", "domain_id", "body_digest", postgresql_where=sql("is_stored")),
        {"postgresql_partition_by": HASH_BY_DOMAIN},
    )
    number: int = Field(primary_key=True)
    at: datetime = Field(sa_column=timestamptz())
    title: str = Field(sa_column=text())
    language: str = Field(sa_column=text())
    content_type: str = Field(sa_column=text())
    headers: str = Field(sa_column=text(default=""))  # of the answer, a line each
    text: str = Field(sa_column=text())
    body_digest: bytes = Field(sa_column=bytea())
    text_digest: bytes = Field(sa_column=bytea())
    main_digest: bytes = Field(sa_column=bytea())
    fingerprint: int | None = Field(sa_column=bigint(nullable=True))
    distance_bits: int | None = Field(sa_column=smallint(nullable=True))
    is_rendered: bool = Field(sa_column=boolean())
    is_stored: bool = Field(sa_column=boolean(default="true"))


class Content(Table, table=True):
    """A body, once per domain and digest, compressed."""

    __table_args__ = (
        CheckConstraint("encoding IN ('identity', 'zstd')", name="content_encoding"),
        {"postgresql_partition_by": HASH_BY_DOMAIN},
    )
    domain_id: int = Field(sa_column=bigint(key=True))
    digest: bytes = Field(sa_column=bytea(key=True))
    encoding: str = Field(sa_column=text())
    body_bytes: int = Field(sa_column=integer())
    data: bytes = Field(sa_column=bytea())


class PageFingerprint(PageTable, table=True):
    """The fingerprint of a page's last version, as far as the events were read; pages with little text have none."""

    __table_args__ = (
        Index("page_fingerprint_pages", "domain_id", "fingerprint", "key"),
        {"postgresql_partition_by": HASH_BY_DOMAIN},
    )
    fingerprint: int = Field(sa_column=bigint())


class FingerprintBand(Table, table=True):
    """A quarter of a fingerprint, with which to find those that differ in three bits at most: one quarter is equal.

    band: 65536 times the number of the quarter, 0 to 3, plus its 16 bits. Four rows for a fingerprint, however many
    pages have it.
    """

    __table_args__ = (
        CheckConstraint("band BETWEEN 0 AND 262143", name="fingerprint_band_quarters"),
        {"postgresql_partition_by": HASH_BY_DOMAIN},
    )
    domain_id: int = Field(sa_column=bigint(key=True))
    band: int = Field(sa_column=integer(key=True, default=None))
    fingerprint: int = Field(sa_column=bigint(key=True))


class FingerprintCursor(DomainTable, table=True):
    """Up to which of its events a domain's fingerprints are filled in."""

    event: int = Field(sa_column=bigint(default="0"))


class UrlList(DomainTable, table=True):
    """A page that is a URL list: a sitemap, an index, a feed or a text file (crawler/core/visit/lists.py).

    kind: "" for one that was never read.  found_by: how it became known.  value: of a look that tells anything, in
    pages of mean importance.  entries, others, excluded, unusable, finding: of the last look.  reads,
    informative_reads, new_pages, hints: of all looks.  hints_checked: of the hints, those that a look has tested since;
    hints_true: that were so;  hints_expected: changes that were to be expected at these looks without them.
    """

    __table_args__ = (
        CheckConstraint("kind IN ('', 'sitemap', 'index', 'feed', 'text')", name="url_list_kind"),
        CheckConstraint("found_by IN ('robots', 'usual', 'page', 'list', 'body')", name="url_list_found_by"),
        CheckConstraint("value >= 0 AND hints_true <= hints_checked", name="url_list_value"),
    )
    key: bytes = Field(sa_column=bytea(key=True))
    kind: str = Field(sa_column=text(default=""))
    found_by: str = Field(sa_column=text())
    found_at: datetime = Field(sa_column=timestamptz())
    value: float = Field(sa_column=double(default="1"))
    entries: int = Field(sa_column=integer())
    others: int = Field(sa_column=integer())
    excluded: int = Field(sa_column=integer())
    unusable: int = Field(sa_column=integer())
    finding: str = Field(sa_column=text(default=""))
    reads: int = Field(sa_column=integer())
    informative_reads: int = Field(sa_column=integer())
    new_pages: int = Field(sa_column=bigint(default="0"))
    hints: int = Field(sa_column=bigint(default="0"))
    hints_checked: int = Field(sa_column=bigint(default="0"))
    hints_true: int = Field(sa_column=bigint(default="0"))
    hints_expected: float = Field(sa_column=double(default="0"))


class Announced(PageTable, table=True):
    """The last date that the lists of one source gave a page.

    list_key: of the list that gave it.  is_open: it tells of a change that no look has tested yet.
    """

    __table_args__ = (
        CheckConstraint("source IN ('sitemap', 'feed')", name="announced_source"),
        {"postgresql_partition_by": HASH_BY_DOMAIN},
    )
    source: str = Field(sa_column=text(key=True))
    at: datetime = Field(sa_column=timestamptz())
    list_key: bytes = Field(sa_column=bytea())
    is_open: bool = Field(sa_column=boolean())
