"""The tables of pages: their state, cash, links, versions and fingerprints, and URL lists."""

from datetime import datetime
from typing import Any

from sqlalchemy import CheckConstraint, Index, desc
from sqlalchemy import text as sql
from sqlmodel import Field

from models import columns
from models.columns import DomainTable, PageTable, Table

PARTITIONED = {"postgresql_partition_by": "HASH (domain_id)"}


def build_hot_storage(fill: int) -> dict[str, Any]:
    """Return the options of a partitioned table whose rows visits update. fill: the fill factor, in percent.

    The free space of a block allows HOT (heap-only tuple) updates.
    """
    storage = f"fillfactor = {fill}, autovacuum_vacuum_scale_factor = 0.05"
    return PARTITIONED | {"info": {"storage": storage}}


def build_index(name: str, *names: Any, where: str) -> Index:
    """Return a partial index on domain_id and these columns. where: the condition on its rows."""
    return Index(name, "domain_id", *names, postgresql_where=sql(where))


class Page(PageTable, table=True):
    """A page. Its state and due time are in table frontier, so most visits change no indexed column of this table."""

    __table_args__ = (
        CheckConstraint("octet_length(key) = 16", name="page_key"),
        CheckConstraint("octet_length(url) <= 8192", name="page_url"),
        CheckConstraint("rate_a >= 0 AND rate_b >= 0", name="page_rate"),
        CheckConstraint("magnitude_total >= 0 AND magnitude_changes >= 0", name="page_magnitudes"),
        build_index("page_canonical", "canonical", where="canonical IS NOT NULL"),
        build_index("page_withheld", where="withheld_since IS NOT NULL"),
        build_hot_storage(85),
    )
    url: str = columns.text()
    first_seen_at: datetime = columns.timestamptz()
    # Validators and size of the last body that was fetched successfully.
    etag: str | None = columns.text(nullable=True)
    last_modified: str | None = columns.text(nullable=True)
    received_bytes: int = columns.integer()
    # What visits add to the prior (a, b) of the page's group, whose number is prior_no. The sums are the change-rate
    # estimate (a, b), b in days.
    rate_a: float = columns.double(default="0")
    rate_b: float = columns.double(default="0")
    prior_no: int = columns.smallint(default="0")
    # The sum of the magnitudes of its changes, and their number.
    magnitude_total: float = columns.double(default="0")
    magnitude_changes: float = columns.double(default="0")
    # Mean number of new pages that a change of the page announces, each weighted by its expected share of new text.
    announces: float = columns.double(default="0")
    # What the visits found.
    status: int | None = columns.smallint(nullable=True)
    reason: str = columns.text(default="")
    visits: int = columns.integer()
    changes: int = columns.integer()
    failures: int = columns.smallint(default="0")
    # Consecutive visits with the soft error that `reason` names.
    soft_errors: int = columns.smallint(default="0")
    # Since when new content is withheld because it may be a soft error.
    withheld_since: datetime | None = columns.timestamptz(nullable=True)
    last_visit_at: datetime | None = columns.timestamptz(nullable=True)
    last_good_at: datetime | None = columns.timestamptz(nullable=True)
    last_change_at: datetime | None = columns.timestamptz(nullable=True)
    missing_since: datetime | None = columns.timestamptz(nullable=True)  # time of a first 404 that is not confirmed yet
    moved_to: bytes | None = columns.bytea(nullable=True)  # the page of the domain that it has permanently moved to
    redirects: int = columns.smallint(default="0")  # number of redirects in a row by which it was discovered
    led_to: bytes | None = columns.bytea(nullable=True)  # target of its last redirect, permanent or temporary
    # The newest version in short, to compare visits with; version is 0 if there is none.
    version: int = columns.integer()
    body_digest: bytes | None = columns.bytea(nullable=True)
    text_digest: bytes | None = columns.bytea(nullable=True)
    main_digest: bytes | None = columns.bytea(nullable=True)
    shape_digest: bytes | None = columns.bytea(nullable=True)
    fingerprint: int | None = columns.bigint(nullable=True)
    is_rendered: bool = columns.boolean()  # in a browser
    # Change signals since the last successful visit: their count for each source, one byte each, in the order of the
    # source numbers; and in the same order, the time of the last signal of each source.
    signals: bytes = columns.bytea(default="")
    signaled_at: list[datetime | None] = columns.timestamptz_array()
    # For a duplicate, the canonical page whose schedule it shares while their main texts are equal. The due time of a
    # duplicate is when to check that they still are.
    canonical: bytes | None = columns.bytea(nullable=True)
    # The URL or the canonical link also shows that this is a copy: a change of the canonical page requests no visit.
    is_copy: bool = columns.boolean()


class Frontier(PageTable, table=True):
    """The crawl order of pages: state, due time, and the rank of unfetched pages (crawler/core/opic/order.py).

    due_at: for an unfetched page, until when it is deferred; null if it waits in discovery order.
    section: the number of the page's group (page.prior_no), by which the pages to defer or resume are found.
    """

    __table_args__ = (
        CheckConstraint("state IN ('unfetched', 'fetched', 'gone', 'moved', 'excluded')", name="frontier_state"),
        CheckConstraint("due_at IS NOT NULL OR state = 'unfetched'", name="frontier_due"),
        CheckConstraint("request_reason BETWEEN 0 AND 8", name="frontier_request_reason"),
        build_index(
            "frontier_discovery", "boosted", desc("rank"), "key", where="state = 'unfetched' AND due_at IS NULL"
        ),
        build_index("frontier_deferred", "due_at", "key", where="state = 'unfetched' AND due_at IS NOT NULL"),
        build_index("frontier_requested", desc("request_reason"), "key", where="request_reason IN (1, 4, 5)"),
        build_index("frontier_due_order", "due_at", "key", where="state <> 'unfetched'"),
        build_hot_storage(70),
    )
    state: str = columns.text()
    rank: int = columns.integer()
    depth: int = columns.smallint(default="0")
    due_at: datetime | None = columns.timestamptz(nullable=True)
    boosted: bool = columns.boolean()
    url_score: float = columns.double(default="1")
    # Why the next visit is requested whatever its value (0: it is not). 1: by a user; 2: by an audit, for its sample;
    # 3: its canonical page has changed; 4: by a user who named its URL, before all others; 5: to confirm a first 404,
    # before all others once it is due; 6: it is stored without what its scripts add and should be rendered; 7 is never
    # stored; 8: a URL list names it and it never was a page.
    request_reason: int = columns.smallint(default="0")
    section: int = columns.smallint(default="0")


class Cash(PageTable, table=True):
    """A page's account in the OPIC economy (crawler/core/opic/opic.py). Pages without a row take no part.

    Its cash is net plus the dividend of its pool (see Pool).  history: the cash that it received within the importance
    window, without its endowment.  clock: the domain's clock (domain_state.clock) when `history` was last computed.
    """

    __table_args__ = (CheckConstraint("pool BETWEEN 0 AND 3", name="cash_pool"), build_hot_storage(70))
    pool: int = columns.smallint()
    net: int = columns.bigint()
    history: float = columns.double(default="0")
    clock: float = columns.double(default="0")


class PageLinks(PageTable, table=True):
    """The distinct in-domain links of the last parsed version, over which visits distribute the page's cash.

    targets: keys of 16 bytes each.  external_domains: linked domains.  external_link_counts: links to each of them.
    """

    __table_args__ = (
        CheckConstraint("octet_length(targets) % 16 = 0", name="page_links_whole"),
        CheckConstraint(
            "cardinality(external_domains) = cardinality(external_link_counts)", name="page_links_external"
        ),
        PARTITIONED,
    )
    targets: bytes = columns.bytea()
    external_domains: list[str] = columns.text_array()
    external_link_counts: list[int] = columns.integer_array()


class Snapshot(PageTable, table=True):
    """One version of a page, written only if the page was added, changed, or restored with another text.

    distance_bits: the SimHash distance from the version before.  is_stored: texts, headers and body are stored;
    retention deletes those of old versions, and this row only with its event.
    """

    __table_args__ = (
        CheckConstraint("number >= 1", name="snapshot_number"),
        CheckConstraint("cardinality(content_ranges) % 2 = 0", name="snapshot_content_ranges"),
        build_index("snapshot_body", "body_digest", where="is_stored"),
        PARTITIONED,
    )
    number: int = Field(primary_key=True)
    at: datetime = columns.timestamptz()
    title: str = columns.text()
    language: str = columns.text()
    content_type: str = columns.text()
    headers: str = columns.text(default="")  # of the response, one per line
    text: str = columns.text()
    # What a reader would call the page: the function version_content returns it. NULL if it is the text, or parts of
    # the text, which content_ranges has: the first byte of each part, counted from 0, and the first byte after it.
    content: str | None = columns.text(nullable=True)
    content_ranges: list[int] = columns.integer_array()
    confidence: float = columns.double(default="1")  # of the choice of the content
    line_ranges: list[int] = columns.integer_array()  # the lines of the scanned body that are the content
    meta: dict[str, Any] = columns.jsonb(default="{}")  # what the page says about itself
    body_digest: bytes = columns.bytea()
    text_digest: bytes = columns.bytea()
    main_digest: bytes = columns.bytea()
    fingerprint: int | None = columns.bigint(nullable=True)
    distance_bits: int | None = columns.smallint(nullable=True)
    is_rendered: bool = columns.boolean()
    is_stored: bool = columns.boolean(default="true")


class Content(Table, table=True):
    """A body, compressed unless it is short, stored once per domain and digest."""

    __table_args__ = (CheckConstraint("encoding IN ('identity', 'zstd')", name="content_encoding"), PARTITIONED)
    domain_id: int = columns.bigint(key=True)
    digest: bytes = columns.bytea(key=True)
    encoding: str = columns.text()
    body_bytes: int = columns.integer()
    data: bytes = columns.bytea()


class PageFingerprint(PageTable, table=True):
    """The fingerprint of a page's newest version, as of the event in FingerprintCursor.

    Pages with little text have none, nor have gone and moved pages.
    """

    __table_args__ = (Index("page_fingerprint_pages", "domain_id", "fingerprint", "key"), PARTITIONED)
    fingerprint: int = columns.bigint()


class FingerprintBand(Table, table=True):
    """A quarter of a fingerprint. Fingerprints that differ in at most three bits share one, by which they are found.

    band: 65536 times the number of the quarter, 0 to 3, plus its 16 bits. Each distinct fingerprint has four rows.
    """

    __table_args__ = (CheckConstraint("band BETWEEN 0 AND 262143", name="fingerprint_band_quarters"), PARTITIONED)
    domain_id: int = columns.bigint(key=True)
    band: int = columns.integer(key=True, default=None)
    fingerprint: int = columns.bigint(key=True)


class FingerprintCursor(DomainTable, table=True):
    """The last event of a domain that PageFingerprint includes. event: its number."""

    event: int = columns.bigint(default="0")


class PageValue(PageTable, table=True):
    """One number in the series of a value that a rule reads from a page, written if it differs from the one before.

    text: what was read, shortened.  number: null if there is none, and `finding` says why (ValueFinding in
    crawler/core/page/values.py).  version: of the page, 0 before its first.
    """

    __table_args__ = (PARTITIONED,)
    name: str = columns.text(key=True)
    at: datetime = columns.timestamptz(key=True)
    number: float | None = columns.double(nullable=True)
    unit: str = columns.text(default="")
    text: str = columns.text(default="")
    finding: str = columns.text(default="")
    version: int = columns.integer()


class UrlList(DomainTable, table=True):
    """A page that is, or may be, a URL list: a sitemap, an index, a feed or a text file (crawler/core/visit/lists.py).

    kind: "" if it was never read.  found_by: how it was discovered (see view report_list).  value: the value of an
    informative visit, in pages of mean importance.  entries, others, excluded, unusable, finding: results of the last
    read: the number of URLs, of those on other hosts, of excluded ones, and of entries without a usable URL; and why
    the list was not read to its end, or empty.  reads, informative_reads, new_pages, hints: totals.  A hint is a date
    that signals a change of a page.  hints_checked: hints that a visit to the page has checked since.
    hints_true: checked hints that were true.  hints_expected: the number of changes that these visits were expected to
    find in any case.
    """

    __table_args__ = (
        CheckConstraint("kind IN ('', 'sitemap', 'index', 'feed', 'text')", name="url_list_kind"),
        CheckConstraint("found_by IN ('robots', 'usual', 'page', 'list', 'body')", name="url_list_found_by"),
        CheckConstraint("value >= 0 AND hints_true <= hints_checked", name="url_list_value"),
    )
    key: bytes = columns.bytea(key=True)
    kind: str = columns.text(default="")
    found_by: str = columns.text()
    found_at: datetime = columns.timestamptz()
    value: float = columns.double(default="1")
    entries: int = columns.integer()
    others: int = columns.integer()
    excluded: int = columns.integer()
    unusable: int = columns.integer()
    finding: str = columns.text(default="")
    reads: int = columns.integer()
    informative_reads: int = columns.integer()
    new_pages: int = columns.bigint(default="0")
    hints: int = columns.bigint(default="0")
    hints_checked: int = columns.bigint(default="0")
    hints_true: int = columns.bigint(default="0")
    hints_expected: float = columns.double(default="0")


class Announced(PageTable, table=True):
    """The latest date that the URL lists of one source give for a page.

    list_key: the list with this date.  is_open: the date signals a change that no visit has checked yet.
    """

    __table_args__ = (CheckConstraint("source IN ('sitemap', 'feed')", name="announced_source"), PARTITIONED)
    source: str = columns.text(key=True)
    at: datetime = columns.timestamptz()
    list_key: bytes = columns.bytea()
    is_open: bool = columns.boolean()
