"""The tables of domains: settings, state, what was learned and counted, and the inbox of the lease holder."""

from datetime import date, datetime, timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import CheckConstraint, Column, ForeignKey, Index, Text, UniqueConstraint
from sqlmodel import Field, SQLModel

from crawler.core.domain_settings import SETTINGS, DomainSettings, get_value
from crawler.core.setting import Setting, SettingKind
from models import columns
from models.columns import DomainTable, Table

# Rows that are updated often need free space in their block of the table for HOT (heap-only tuple) updates.
HOT_UPDATE_STORAGE = {"info": {"storage": "fillfactor = 50"}}
# Settings with a default, but for which null is allowed and means: keep forever.
OPTIONAL_LIMITS = {"keep_visits_s", "keep_changes_s"}


class Domain(Table, table=True):
    """A registered domain with its settings. For the meaning of null, see DomainSettings.

    Each setting in SETTINGS (crawler/core/domain_settings.py) has a column here with the value in force, and a check of
    its bounds, if any.  own_settings: the names of the settings whose value is its own; the others come from its tags
    or are the defaults (crawler/core/tags.py).
    """

    __table_args__ = (
        CheckConstraint("scheme IN ('http', 'https')", name="domain_scheme"),
        CheckConstraint("state IN ('active', 'paused')", name="domain_state_known"),
        CheckConstraint("discovery_order IN ('opic', 'breadth', 'depth', 'mixed')", name="domain_order"),
        CheckConstraint("change_weight IN ('magnitude', 'equal')", name="domain_change_weight"),
        CheckConstraint("render IN ('auto', 'always', 'never')", name="domain_render"),
    )
    id: int = columns.identity()
    authority: str = columns.text(unique=True)
    scheme: str = columns.text()
    state: str = columns.text(default="active")
    registered_at: datetime = columns.timestamptz()
    own_settings: list[str] = columns.text_array()


def _build_setting_column(setting: Setting) -> Column[Any]:
    """Return the column of a setting with the default from DomainSettings. Time spans are stored in seconds."""
    default = get_value(DomainSettings(), setting)
    if isinstance(default, timedelta):
        default = default.total_seconds()
    nullable = default is None or setting.column in OPTIONAL_LIMITS
    number = f"{default:.15g}" if isinstance(default, int | float) else None
    match setting.kind:
        case SettingKind.TEXT:
            field = columns.text(default=str(default))
        case SettingKind.TEXTS:
            field = columns.text_array()
        case SettingKind.FLAG:
            field = columns.boolean()
        case SettingKind.COUNT:
            field = columns.integer(nullable=nullable, default=number)
        case SettingKind.BYTES:
            field = columns.bigint(nullable=nullable, default=number)
        case SettingKind.NUMBER | SettingKind.FACTOR | SettingKind.SHARE | SettingKind.DELAY | SettingKind.SPAN:
            field = columns.double(nullable=nullable, default=number)
    column: Column[Any] = field.sa_column
    column.name = column.key = setting.column
    return column


def _build_bounds_check(setting: Setting) -> CheckConstraint | None:
    """Return the check of a setting's bounds, or None if it has none."""
    column = setting.column
    match setting.kind:
        case SettingKind.COUNT | SettingKind.NUMBER:
            check = f"{column} BETWEEN {setting.min_value:.15g} AND {setting.max_value:.15g}"
        case SettingKind.FACTOR | SettingKind.SPAN:
            check = f"{column} > 0"
        case SettingKind.SHARE:
            check = f"{column} > 0 AND {column} < 1"
        case SettingKind.BYTES | SettingKind.DELAY:
            check = f"{column} >= 0"
        case SettingKind.TEXT | SettingKind.TEXTS | SettingKind.FLAG:
            return None
    return CheckConstraint(check, name=f"domain_{column}")


for _setting in SETTINGS:
    _table = SQLModel.metadata.tables["domain"]
    _table.append_column(_build_setting_column(_setting))
    if (_check := _build_bounds_check(_setting)) is not None:
        _table.append_constraint(_check)


class Tag(Table, table=True):
    """A tag of domains. settings: its settings, by column of table domain, in the form of that column."""

    name: str = columns.text(key=True)
    settings: dict[str, Any] = columns.jsonb(default="{}")


class DomainTag(DomainTable, table=True):
    """A tag of a domain."""

    tag: str = Field(sa_column=Column(Text, ForeignKey("tag.name", ondelete="CASCADE"), primary_key=True, index=True))


class Rule(DomainTable, table=True):
    """A user's rule for the pages that match a pattern. pages: how many count toward max_pages; 0 without max_pages."""

    __table_args__ = (
        CheckConstraint(
            "min_interval_s > 0 AND max_interval_s > 0 AND weight > 0 AND max_pages >= 0", name="rule_bounds"
        ),
        CheckConstraint("render IN ('auto', 'always', 'never')", name="rule_render"),
    )
    no: int = columns.smallint(key=True)
    pattern: str = columns.text()
    min_interval_s: float | None = columns.double(nullable=True)
    max_interval_s: float | None = columns.double(nullable=True)
    weight: float | None = columns.double(nullable=True)
    once: bool = columns.boolean()
    max_pages: int | None = columns.integer(nullable=True, default=None)
    pages: int = columns.bigint(default="0")
    ignore: list[str] = columns.text_array()
    watch: list[str] = columns.text_array()
    ignore_text: list[str] = columns.text_array()
    tracked_values: list[str] = columns.text_array()  # texts of ValueRules (crawler/core/page/selectors.py)
    render: str | None = columns.text(nullable=True)


class Prior(DomainTable, table=True):
    """The prior Gamma(a, b) of the change rates of a group's pages, b in days (crawler/core/freshness/prior.py).

    no: the number of the group. Number 0 has the prior of the whole domain and the pages without a group of their own.
    template: the URL template of its pages; * for number 0.  pages: their number, estimated by the plan.
    """

    __table_args__ = (
        UniqueConstraint("domain_id", "template", name="prior_template"),
        CheckConstraint("a > 0 AND b > 0", name="prior_gamma"),
    )
    no: int = columns.smallint(key=True)
    template: str = columns.text()
    a: float = columns.double()
    b: float = columns.double()
    pages: int = columns.bigint(default="0")
    magnitude: float = columns.double(default="0.1")  # expected magnitude of a change of such a page
    # First visits of pages in the group: their number, and the sum of their shares of new text. Older visits decay.
    first_visits: float = columns.double(default="0")
    novelty: float = columns.double(default="0")
    deferred_until: datetime | None = columns.timestamptz(nullable=True)  # latest due time of a deferred page
    is_moving: bool = columns.boolean()  # its unfetched pages are still being deferred or resumed


class KindPrior(Table, table=True):
    """The prior of pages of a new domain, by kind of site (crawler/core/freshness/prior.py).

    kind: "*" for all kinds.  pages, domains: the number of revisited pages and of domains from which it was learned.
    """

    __table_args__ = (CheckConstraint("a > 0 AND b > 0", name="kind_prior_gamma"),)
    kind: str = columns.text(key=True)
    a: float = columns.double()
    b: float = columns.double()
    pages: int = columns.bigint()
    domains: int = columns.integer(default=None)
    planned_at: datetime = columns.timestamptz()


class DomainMemory(DomainTable, table=True):
    """Something learned from the visits of a domain, one row per kind (crawler/store/learned/domain_memory.py)."""

    kind: str = columns.text(key=True)
    memory: bytes = columns.bytea()


class DomainTrust(DomainTable, table=True):
    """The reliability of the validators of one group of pages (crawler/core/validator_trust.py).

    prior_no: the number of the group, or WHOLE_DOMAIN.  revisits: those dispatched since a validator was last wrong.
    validator_checks: visits that sent none of the stored validators.  stats: findings of visits, by validator.
    """

    prior_no: int = columns.smallint(key=True)
    revisits: int = columns.integer()
    validator_checks: int = columns.integer()
    stats: dict[str, Any] = columns.jsonb(default="{}")


class DomainSource(DomainTable, table=True):
    """A source of change signals about a domain's pages (crawler/core/freshness/source_record.py).

    no: index of the source in page.signals, from 0.  signals: the number received.  recall, noise, effective_recall:
    its measured quality; noise is the number of false signals per page and day (SourceQuality).  applied_*: the values
    with which due times were last computed.  record: findings of visits (SourceRecord).
    """

    __table_args__ = (
        UniqueConstraint("domain_id", "source", name="domain_source_name"),
        CheckConstraint(
            "no >= 0 AND signals >= 0 AND recall BETWEEN 0 AND 1 AND noise > 0 AND effective_recall BETWEEN 0 AND 1",
            name="domain_source_bounds",
        ),
    )
    no: int = columns.smallint(key=True)
    source: str = columns.text()
    signals: int = columns.bigint(default="0")
    measured_at: datetime = columns.timestamptz()
    recall: float = columns.double()
    noise: float = columns.double()
    effective_recall: float = columns.double()
    applied_recall: float = columns.double()
    applied_noise: float = columns.double()
    applied_effective_recall: float = columns.double()
    record: dict[str, Any] = columns.jsonb(default="{}")


class DomainPlan(DomainTable, table=True):
    """The plan of a domain. finding: what it cannot achieve, or empty.

    importance: of the domain among all domains (mean 1), times the weight that the user gave it.
    """

    __table_args__ = (CheckConstraint("price_request > 0 AND price_byte >= 0", name="domain_plan_price"),)
    importance: float = columns.double(default=None)
    planned_at: datetime = columns.timestamptz()
    # Shadow prices of a request (null: the default) and of a byte, in importance x days.
    price_request: float | None = columns.double(nullable=True)
    price_byte: float = columns.double(default="0")
    longest_s: float | None = columns.double(nullable=True)  # the longest interval between visits
    # Requests per day that the target needs; null without a target.
    budget_per_day: int | None = columns.integer(nullable=True, default=None)
    price_correction: float = columns.double(default="1")  # factor on the shadow price
    mean_magnitude: float = columns.double(default="0.1")  # expected change magnitude over all pages
    finding: str = columns.text(default="")


class Calibration(DomainTable, table=True):
    """The changes that one UTC day's visits were predicted to find, and those that they found.

    audit: the visits of the audit's sample, or else all others.  expected: the sum of the predicted probabilities p.
    found: the number of changes.  variance: the sum of p (1 - p).
    """

    day: date = columns.date(key=True)
    audit: bool = columns.boolean(key=True, default=None)
    visits: int = columns.bigint()
    expected: float = columns.double()
    found: int = columns.bigint()
    variance: float = columns.double()


class Ledger(Table, table=True):
    """The requests and bytes that all domains together have spent on one UTC day. A single row."""

    __table_args__ = (CheckConstraint("no = 1", name="ledger_one"),)
    no: int = columns.smallint(key=True)
    day: date = columns.date()
    spent_requests: int = columns.bigint()
    spent_bytes: int = columns.bigint()
    # Number of changes that pruning had deleted from the feed for domains that were removed later.
    forgotten_places: int = columns.bigint(default="0")


class DomainAlias(Table, table=True):
    """Another name of a domain, found when its root was fetched at registration."""

    authority: str = columns.text(key=True)
    domain_id: int = columns.foreign_key("domain")


class DomainState(DomainTable, table=True):
    """The state of a domain: lease, times, economy, ledger. The lease holder locks this row to write a batch."""

    __table_args__ = (
        CheckConstraint("virtual_page_cash >= 0 AND dormant >= 0", name="domain_state_cash"),
        CheckConstraint("(lease_token IS NULL) = (leased_until IS NULL)", name="domain_state_lease_whole"),
        Index("domain_state_wake", "wake_at", "domain_id"),
        HOT_UPDATE_STORAGE,
    )
    # The lease, in real time.
    lease_token: UUID | None = columns.uuid(nullable=True)
    leased_until: datetime | None = columns.timestamptz(nullable=True)
    holder: str | None = columns.text(nullable=True)
    next_request_at: datetime | None = columns.timestamptz(nullable=True)
    # The crawl delay in force: after the last possible request of a holder that died, the next one waits this long.
    delay_s: float = columns.double(default="0")
    addresses: list[str] = columns.text_array()
    # When to crawl the domain again, in knowledge time (the time that --at sets).
    wake_at: datetime | None = columns.timestamptz(nullable=True)
    # Until then, the pace of the budget allows no crawl, even if pages are due.
    paced_until: datetime | None = columns.timestamptz(nullable=True)
    # A period outside its crawl hours, as found by a claim; null if unknown.
    closed_from: datetime | None = columns.timestamptz(nullable=True)
    opens_at: datetime | None = columns.timestamptz(nullable=True)
    # Until when and why the domain is suspended, and the number of consecutive responses such as 429 or 503.
    resume_at: datetime | None = columns.timestamptz(nullable=True)
    resume_reason: str = columns.text(default="")
    rejections: int = columns.integer()
    last_visit_at: datetime | None = columns.timestamptz(nullable=True)
    # The OPIC economy (crawler/core/opic/opic.py): all cash, the cash of the virtual page, the cash kept for pages that
    # are still to be discovered (dormant), and the cash that visits have collected so far (clock).
    total_cash: int = columns.bigint()
    virtual_page_cash: int = columns.bigint(default="0")
    dormant: int = columns.bigint()
    clock: float = columns.double(default="0")
    # For the mean importance of new pages at their first visit (Economy.new_importance).
    newcomers_cash: float = columns.double(default="0")
    newcomers_clock: float = columns.double(default="0")
    window_passes: float = columns.double(default="24")  # the importance window in use, in units of circulating cash
    # The number of the domain's pages in any state.
    tracked: int = columns.bigint(default="0")
    # The ledger of one UTC day.
    budget_day: date | None = columns.date(nullable=True)
    spent_requests: int = columns.integer()
    spent_bytes: int = columns.bigint(default="0")
    spent_floor: int = columns.integer()  # floor visits (crawler/store/frontier/selection.py)
    # The site activity (SiteActivity): the boundaries of its days, and its lead over the calendar at each, in days.
    activity_at: list[datetime] = columns.timestamptz_array()
    activity_ahead: list[float] = columns.double_array()
    # Mean requests and bytes of a visit, by kind.
    costs: dict[str, Any] = columns.jsonb(default="{}")
    # The number of the domain's next event, and that of its last event in the feed.
    next_event: int = columns.bigint(default="1")
    stamped_event: int = columns.bigint(default="0")
    # What was deleted from the feed: the events before first_event, up to position forgotten_until.
    first_event: int = columns.bigint(default="1")
    forgotten_until: int = columns.bigint(default="0")


class Pool(DomainTable, table=True):
    """A pool of pages. The virtual page pays the same amount to each page of a pool.

    pool: 0 for unfetched pages, 1 for fetched ones; 2 and 3 for the same if they are boosted.  pages: their number.
    dividend: the cash paid to each page since the pool was last empty.
    """

    __table_args__ = (
        CheckConstraint("pages >= 0", name="pool_pages"),
        CheckConstraint("pool BETWEEN 0 AND 3", name="pool_known"),
        HOT_UPDATE_STORAGE,
    )
    pool: int = columns.smallint(key=True)
    pages: int = columns.bigint(default="0")
    dividend: int = columns.bigint(default="0")


class Robots(DomainTable, table=True):
    """The robots.txt of a domain: the last good copy, and the outcome of the last request."""

    body: bytes | None = columns.bytea(nullable=True)
    outcome: str = columns.text()
    fetched_at: datetime = columns.timestamptz()
    good_at: datetime | None = columns.timestamptz(nullable=True)
    due_at: datetime = columns.timestamptz()


class AddressSlot(Table, table=True):
    """A network address that a lease holds: of several domains on one server, only one is crawled at a time."""

    address: str = columns.text(key=True)
    domain_id: int = columns.foreign_key("domain")
    lease_token: UUID = columns.uuid()
    held_until: datetime = columns.timestamptz()


class Inbox(Table, table=True):
    """Messages to the holder of a domain's lease, which applies and deletes them (crawler/store/record/inbox.py)."""

    __table_args__ = (
        CheckConstraint(
            "kind IN ('seed', 'refresh', 'reorder', 'audit', 'reprice', 'share', 'window', 'signal')", name="inbox_kind"
        ),
        Index("inbox_domain", "domain_id", "id"),
    )
    id: int = columns.identity()
    domain_id: int = columns.foreign_key("domain")
    kind: str = columns.text()
    payload: dict[str, Any] = columns.jsonb(default="{}")
    arrived_at: datetime = columns.timestamptz()


class DomainFigures(DomainTable, table=True):
    """The counts and the freshness of all pages of a domain, at counted_at (crawler/store/report/freshness.py).

    near_duplicates: groups of near duplicates; null if they were not computed.
    """

    counted_at: datetime = columns.timestamptz()
    unfetched: int = columns.bigint(default="0")
    deferred: int = columns.bigint(default="0")
    fetched: int = columns.bigint(default="0")
    gone: int = columns.bigint(default="0")
    dead_links: int = columns.bigint(default="0")
    moved: int = columns.bigint(default="0")
    excluded: int = columns.bigint(default="0")
    withheld: int = columns.bigint(default="0")
    freshness: float | None = columns.double(nullable=True)
    freshness_plain: float | None = columns.double(nullable=True)
    oldest_visit_at: datetime | None = columns.timestamptz(nullable=True)
    near_duplicates: list[Any] | None = columns.jsonb(nullable=True)


class FreshnessFigures(DomainTable, table=True):
    """Freshness, ages and intervals of the fetched pages of a domain, of a URL template or of a decile of importance.

    template: empty except in rows by template.  decile: 1 (the most important pages) to 10; else 0.
    """

    __table_args__ = (
        CheckConstraint("grouped_by IN ('domain', 'template', 'decile')", name="freshness_figures_group"),
    )
    grouped_by: str = columns.text(key=True)
    template: str = columns.text(key=True)
    decile: int = columns.smallint(key=True)
    pages: int = columns.bigint()
    freshness: float | None = columns.double(nullable=True)
    freshness_plain: float | None = columns.double(nullable=True)
    mean_age: timedelta | None = columns.interval(nullable=True)
    oldest_age: timedelta | None = columns.interval(nullable=True)
    shortest_interval: timedelta | None = columns.interval(nullable=True)
    mean_interval: timedelta | None = columns.interval(nullable=True)
    longest_interval: timedelta | None = columns.interval(nullable=True)


class TopPage(DomainTable, table=True):
    """The most important pages of a domain. ranking: which pages are ranked: a PageCategory, all, failing or rendered.

    place: 1 for the most important page.
    """

    ranking: str = columns.text(key=True)
    place: int = columns.smallint(key=True)
    key: bytes = columns.bytea()
