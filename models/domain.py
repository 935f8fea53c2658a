"""The tables of domains: settings, state kept by the lease holder, and the inbox of requests to the holder."""

from datetime import date, datetime, timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import Boolean, CheckConstraint, Column, Date, Index, Interval, UniqueConstraint
from sqlalchemy.types import Uuid
from sqlmodel import Field, SQLModel

from crawler.core.domain_settings import SETTINGS, DomainSettings, get_value
from crawler.core.setting import Setting, SettingKind
from models.columns import (
    DomainTable,
    Table,
    bigint,
    boolean,
    bytea,
    double,
    double_array,
    foreign_key,
    identity,
    integer,
    jsonb,
    smallint,
    text,
    text_array,
    timestamptz,
    timestamptz_array,
)

# Rows that every visit updates need free space on their heap page for HOT updates.
HOT_UPDATE_STORAGE = {"info": {"storage": "fillfactor = 50"}}
# Settings with a default that may also be null, which means: keep forever.
OPTIONAL_LIMITS = {"keep_visits_s", "keep_changes_s"}


class Domain(Table, table=True):
    """A registered domain with its settings. A null setting takes the global default.

    Each setting in crawler/core/domain_settings.py has a column here, with a check of its bounds.
    """

    __table_args__ = (
        CheckConstraint("scheme IN ('http', 'https')", name="domain_scheme"),
        CheckConstraint("state IN ('active', 'paused')", name="domain_state_known"),
        CheckConstraint("discovery_order IN ('opic', 'breadth', 'depth', 'mixed')", name="domain_order"),
        CheckConstraint("change_weight IN ('magnitude', 'equal')", name="domain_change_weight"),
        CheckConstraint("render IN ('auto', 'always', 'never')", name="domain_render"),
    )
    id: int = Field(sa_column=identity())
    authority: str = Field(sa_column=Column(text().type, nullable=False, unique=True))
    scheme: str = Field(sa_column=text())
    state: str = Field(sa_column=text(default="active"))
    registered_at: datetime = Field(sa_column=timestamptz())


def _build_setting_column(setting: Setting) -> Column[Any]:
    """Return the column of a setting, with the same default. Time spans are stored in seconds."""
    default = get_value(DomainSettings(), setting)
    if isinstance(default, timedelta):
        default = default.total_seconds()
    nullable = default is None or setting.column in OPTIONAL_LIMITS
    number = f"{default:.15g}" if isinstance(default, int | float) else None
    column: Column[Any]
    match setting.kind:
        case SettingKind.TEXT:
            column = text(default=str(default))
        case SettingKind.TEXTS:
            column = text_array()
        case SettingKind.FLAG:
            column = boolean()
        case SettingKind.COUNT:
            column = integer(nullable=nullable, default=number)
        case SettingKind.BYTES:
            column = bigint(nullable=nullable, default=number)
        case SettingKind.NUMBER | SettingKind.FACTOR | SettingKind.SHARE | SettingKind.DELAY | SettingKind.SPAN:
            column = double(nullable=nullable, default=number)
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


class Rule(DomainTable, table=True):
    """A user's rule for the pages that match a pattern. pages: how many were admitted; counted if max_pages is set."""

    __table_args__ = (
        CheckConstraint(
            "min_interval_s > 0 AND max_interval_s > 0 AND weight > 0 AND max_pages >= 0", name="rule_bounds"
        ),
        CheckConstraint("render IN ('auto', 'always', 'never')", name="rule_render"),
    )
    no: int = Field(sa_column=smallint(key=True))
    pattern: str = Field(sa_column=text())
    min_interval_s: float | None = Field(sa_column=double(nullable=True))
    max_interval_s: float | None = Field(sa_column=double(nullable=True))
    weight: float | None = Field(sa_column=double(nullable=True))
    once: bool = Field(sa_column=boolean())
    max_pages: int | None = Field(sa_column=integer(nullable=True, default=None))
    pages: int = Field(sa_column=bigint(default="0"))
    ignore: list[str] = Field(sa_column=text_array())
    watch: list[str] = Field(sa_column=text_array())
    ignore_text: list[str] = Field(sa_column=text_array())
    render: str | None = Field(sa_column=text(nullable=True))


class Prior(DomainTable, table=True):
    """The prior Gamma(a, b) of the change rates of a group's pages, b in days. no 0: the whole domain (template *)."""

    __table_args__ = (
        UniqueConstraint("domain_id", "template", name="prior_template"),
        CheckConstraint("a > 0 AND b > 0", name="prior_gamma"),
    )
    no: int = Field(sa_column=smallint(key=True))
    template: str = Field(sa_column=text())
    a: float = Field(sa_column=double())
    b: float = Field(sa_column=double())
    pages: int = Field(sa_column=bigint(default="0"))
    magnitude: float = Field(sa_column=double(default="0.1"))  # expected magnitude of a change of such a page
    # First visits of pages in the group: their number, and the sum of their shares of new content; both fade.
    first_visits: float = Field(sa_column=double(default="0"))
    novelty: float = Field(sa_column=double(default="0"))
    deferred_until: datetime | None = Field(sa_column=timestamptz(nullable=True))  # latest due time of a deferred page
    is_moving: bool = Field(sa_column=boolean())


class KindPrior(Table, table=True):
    """The prior of pages of a new domain, by kind of site (crawler/core/freshness/prior.py).

    kind: "*" for all kinds.  pages, domains: the number of revisited pages and of domains from which it was learned.
    """

    __table_args__ = (CheckConstraint("a > 0 AND b > 0", name="kind_prior_gamma"),)
    kind: str = Field(sa_column=text(key=True))
    a: float = Field(sa_column=double())
    b: float = Field(sa_column=double())
    pages: int = Field(sa_column=bigint())
    domains: int = Field(sa_column=integer(default=None))
    planned_at: datetime = Field(sa_column=timestamptz())


class DomainMemory(DomainTable, table=True):
    """Something learned from the visits of a domain, packed; one row per kind (crawler/store/learned/memories.py)."""

    kind: str = Field(sa_column=text(key=True))
    memory: bytes = Field(sa_column=bytea())


class DomainTrust(DomainTable, table=True):
    """The reliability of the validators of one group of pages (crawler/core/validators.py).

    prior_no: the group.  revisits: revisits dispatched since the last lie.  stats: findings of visits, by validator.
    """

    prior_no: int = Field(sa_column=smallint(key=True))
    revisits: int = Field(sa_column=integer())
    validator_checks: int = Field(sa_column=integer())
    stats: dict[str, Any] = Field(sa_column=jsonb(default="{}"))


class DomainSource(DomainTable, table=True):
    """A source of change signals about a domain's pages (crawler/core/freshness/source_record.py).

    no: index of the source in page.signals, from 0.  signals: the number received.  recall, noise, effective_recall:
    its measured reliability.  applied_*: the values with which due times were last computed.  record: findings of
    visits.
    """

    __table_args__ = (
        UniqueConstraint("domain_id", "source", name="domain_source_name"),
        CheckConstraint(
            "no >= 0 AND signals >= 0 AND recall BETWEEN 0 AND 1 AND noise > 0 AND effective_recall BETWEEN 0 AND 1",
            name="domain_source_bounds",
        ),
    )
    no: int = Field(sa_column=smallint(key=True))
    source: str = Field(sa_column=text())
    signals: int = Field(sa_column=bigint(default="0"))
    measured_at: datetime = Field(sa_column=timestamptz())
    recall: float = Field(sa_column=double())
    noise: float = Field(sa_column=double())
    effective_recall: float = Field(sa_column=double())
    applied_recall: float = Field(sa_column=double())
    applied_noise: float = Field(sa_column=double())
    applied_effective_recall: float = Field(sa_column=double())
    record: dict[str, Any] = Field(sa_column=jsonb(default="{}"))


class DomainPlan(DomainTable, table=True):
    """The plan of a domain, written by the planner. finding: what the plan cannot achieve, or empty."""

    __table_args__ = (CheckConstraint("price_request > 0 AND price_byte >= 0", name="domain_plan_price"),)
    importance: float = Field(sa_column=double(default=None))
    planned_at: datetime = Field(sa_column=timestamptz())
    # Shadow prices of a request and of a byte, in importance x days; null: the global default.
    price_request: float | None = Field(sa_column=double(nullable=True))
    price_byte: float = Field(sa_column=double(default="0"))
    longest_s: float | None = Field(sa_column=double(nullable=True))
    budget_per_day: int | None = Field(
        sa_column=integer(nullable=True, default=None)
    )  # the budget that a freshness target needs
    price_correction: float = Field(sa_column=double(default="1"))
    mean_magnitude: float = Field(sa_column=double(default="0.1"))  # expected change magnitude over all pages
    finding: str = Field(sa_column=text(default=""))


class Calibration(DomainTable, table=True):
    """The predicted chances of change of one day's visits, and the changes that the visits found."""

    day: date = Field(sa_column=Column(Date, primary_key=True))
    audit: bool = Field(sa_column=Column(Boolean, primary_key=True))
    visits: int = Field(sa_column=bigint())
    expected: float = Field(sa_column=double())
    found: int = Field(sa_column=bigint())
    variance: float = Field(sa_column=double())


class Ledger(Table, table=True):
    """The requests and bytes that all domains together have spent on one UTC day. A single row."""

    __table_args__ = (CheckConstraint("no = 1", name="ledger_one"),)
    no: int = Field(sa_column=smallint(key=True))
    day: date = Field(sa_column=Column(Date, nullable=False))
    spent_requests: int = Field(sa_column=bigint())
    spent_bytes: int = Field(sa_column=bigint())
    forgotten_places: int = Field(sa_column=bigint(default="0"))  # positions in the feed of deleted domains


class DomainAlias(Table, table=True):
    """Another name of a domain, found when its root was fetched at registration."""

    authority: str = Field(sa_column=text(key=True))
    domain_id: int = Field(sa_column=foreign_key("domain"))


class DomainState(DomainTable, table=True):
    """The narrow hot row that a claim locks: lease, times, economy, ledger. Only the lease holder writes it."""

    __table_args__ = (
        CheckConstraint("virtual_page_cash >= 0 AND dormant >= 0", name="domain_state_cash"),
        CheckConstraint("(lease_token IS NULL) = (leased_until IS NULL)", name="domain_state_lease_whole"),
        Index("domain_state_wake", "wake_at", "domain_id"),
        HOT_UPDATE_STORAGE,
    )
    # The lease, in real time.
    lease_token: UUID | None = Field(sa_column=Column(Uuid, nullable=True))
    leased_until: datetime | None = Field(sa_column=timestamptz(nullable=True))
    holder: str | None = Field(sa_column=text(nullable=True))
    next_request_at: datetime | None = Field(sa_column=timestamptz(nullable=True))
    # The crawl delay in force: after a holder dies, the next one waits this long after its last possible request.
    delay_s: float = Field(sa_column=double(default="0"))
    addresses: list[str] = Field(sa_column=text_array())
    # When to crawl the domain again, in knowledge time.
    wake_at: datetime | None = Field(sa_column=timestamptz(nullable=True))
    # Until then, the pace of the budget keeps the domain from being crawled, though pages may be due.
    paced_until: datetime | None = Field(sa_column=timestamptz(nullable=True))
    closed_from: datetime | None = Field(sa_column=timestamptz(nullable=True))  # its crawl hours are closed from then
    opens_at: datetime | None = Field(sa_column=timestamptz(nullable=True))  # its crawl hours are closed until then
    resume_at: datetime | None = Field(sa_column=timestamptz(nullable=True))
    resume_reason: str = Field(sa_column=text(default=""))
    rejections: int = Field(sa_column=integer())
    last_visit_at: datetime | None = Field(sa_column=timestamptz(nullable=True))
    # The OPIC economy: all cash, the cash of the virtual page, the cash kept for pages still to be discovered
    # (dormant), and the cash settled so far (clock).
    total_cash: int = Field(sa_column=bigint())
    virtual_page_cash: int = Field(sa_column=bigint(default="0"))
    dormant: int = Field(sa_column=bigint())
    clock: float = Field(sa_column=double(default="0"))
    newcomers_cash: float = Field(sa_column=double(default="0"))
    newcomers_clock: float = Field(sa_column=double(default="0"))
    window_passes: float = Field(sa_column=double(default="24"))  # the importance window in use
    # Number of pages in any state.
    tracked: int = Field(sa_column=bigint(default="0"))
    # The ledger of one UTC day.
    budget_day: date | None = Field(sa_column=Column(Date, nullable=True))
    spent_requests: int = Field(sa_column=integer())
    spent_bytes: int = Field(sa_column=bigint(default="0"))
    spent_floor: int = Field(sa_column=integer())
    # The site activity: the bounds of its days, and the days by which it is ahead of the calendar at each bound.
    activity_at: list[datetime] = Field(sa_column=timestamptz_array())
    activity_ahead: list[float] = Field(sa_column=double_array())
    # Mean requests and bytes of a visit, by kind.
    costs: dict[str, Any] = Field(sa_column=jsonb(default="{}"))
    # The change feed.
    next_event: int = Field(sa_column=bigint(default="1"))
    stamped_event: int = Field(sa_column=bigint(default="0"))
    # What was deleted from the feed: the events before first_event, up to position forgotten_until.
    first_event: int = Field(sa_column=bigint(default="1"))
    forgotten_until: int = Field(sa_column=bigint(default="0"))


class Pool(DomainTable, table=True):
    """A pool of pages, each of which the virtual page pays the same. dividend: paid to each page since the start."""

    __table_args__ = (
        CheckConstraint("pages >= 0", name="pool_pages"),
        CheckConstraint("pool BETWEEN 0 AND 3", name="pool_known"),
        HOT_UPDATE_STORAGE,
    )
    pool: int = Field(sa_column=smallint(key=True))
    pages: int = Field(sa_column=bigint(default="0"))
    dividend: int = Field(sa_column=bigint(default="0"))


class Robots(DomainTable, table=True):
    """The robots.txt of a domain: the last good copy, and the outcome of the last request."""

    body: bytes | None = Field(sa_column=bytea(nullable=True))
    outcome: str = Field(sa_column=text())
    fetched_at: datetime = Field(sa_column=timestamptz())
    good_at: datetime | None = Field(sa_column=timestamptz(nullable=True))
    due_at: datetime = Field(sa_column=timestamptz())


class AddressSlot(Table, table=True):
    """A network address that a lease holds: of several domains on one server, only one is crawled at a time."""

    address: str = Field(sa_column=text(key=True))
    domain_id: int = Field(sa_column=foreign_key("domain"))
    lease_token: UUID = Field(sa_column=Column(Uuid, nullable=False))
    held_until: datetime = Field(sa_column=timestamptz())


class Inbox(Table, table=True):
    """Messages to the holder of a domain's lease. Append-only, drained in chunks."""

    __table_args__ = (
        CheckConstraint(
            "kind IN ('seed', 'refresh', 'reorder', 'audit', 'reprice', 'share', 'window', 'signal')", name="inbox_kind"
        ),
        Index("inbox_domain", "domain_id", "id"),
    )
    id: int = Field(sa_column=identity())
    domain_id: int = Field(sa_column=foreign_key("domain"))
    kind: str = Field(sa_column=text())
    payload: dict[str, Any] = Field(sa_column=jsonb(default="{}"))
    arrived_at: datetime = Field(sa_column=timestamptz())


def interval() -> Any:
    """Return a nullable column of a time span."""
    return Column(Interval, nullable=True)


class DomainFigures(DomainTable, table=True):
    """The counts and the freshness of all pages of a domain.

    near_duplicates: groups of near duplicates; null if they were not computed.
    """

    counted_at: datetime = Field(sa_column=timestamptz())
    unfetched: int = Field(sa_column=bigint(default="0"))
    deferred: int = Field(sa_column=bigint(default="0"))
    fetched: int = Field(sa_column=bigint(default="0"))
    gone: int = Field(sa_column=bigint(default="0"))
    dead_links: int = Field(sa_column=bigint(default="0"))
    moved: int = Field(sa_column=bigint(default="0"))
    excluded: int = Field(sa_column=bigint(default="0"))
    withheld: int = Field(sa_column=bigint(default="0"))
    freshness: float | None = Field(sa_column=double(nullable=True))
    freshness_plain: float | None = Field(sa_column=double(nullable=True))
    oldest_visit_at: datetime | None = Field(sa_column=timestamptz(nullable=True))
    near_duplicates: list[Any] | None = Field(sa_column=jsonb(nullable=True))


class FreshnessFigures(DomainTable, table=True):
    """Freshness, ages and intervals of all pages of a domain, of a URL template or of a decile of importance.

    template: empty except in rows by template.  decile: 1 to 10; 0 except in rows by decile.
    """

    __table_args__ = (
        CheckConstraint("grouped_by IN ('domain', 'template', 'decile')", name="freshness_figures_group"),
    )
    grouped_by: str = Field(sa_column=text(key=True))
    template: str = Field(sa_column=text(key=True))
    decile: int = Field(sa_column=smallint(key=True))
    pages: int = Field(sa_column=bigint())
    freshness: float | None = Field(sa_column=double(nullable=True))
    freshness_plain: float | None = Field(sa_column=double(nullable=True))
    mean_age: timedelta | None = Field(sa_column=interval())
    oldest_age: timedelta | None = Field(sa_column=interval())
    shortest_interval: timedelta | None = Field(sa_column=interval())
    mean_interval: timedelta | None = Field(sa_column=interval())
    longest_interval: timedelta | None = Field(sa_column=interval())


class TopPage(DomainTable, table=True):
    """The most important pages of a domain, by ranking. ranking: a state, or all, failing, rendered."""

    ranking: str = Field(sa_column=text(key=True))
    place: int = Field(sa_column=smallint(key=True))
    key: bytes = Field(sa_column=bytea())
