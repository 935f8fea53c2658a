"""What a user registers, what its lease holder keeps about it, and what others may leave for the holder."""

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

# Rows that every look rewrites need room on their own page for a HOT update.
HOT_UPDATE_STORAGE = {"info": {"storage": "fillfactor = 50"}}
# Settings that have a default, and may be null: what they bound is kept for ever.
OPTIONAL_LIMITS = {"keep_visits_s", "keep_changes_s"}


class Domain(Table, table=True):
    """Settings of one authority, written by its user. Null means: as everywhere.

    There is a column for each setting of the table in crawler/core/domain_settings.py, within its bounds.
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
    """Return the column of a setting, with the same default; spans are kept in seconds."""
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
    """Return the check of a setting's bounds; None for one without any."""
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
    """A user's rule for the pages of one pattern. pages: so many of them are admitted, where max_pages limits that."""

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
    """The prior of a group of pages for the change rate of each: Gamma(a, b), b in days. no 0: the whole domain."""

    __table_args__ = (
        UniqueConstraint("domain_id", "template", name="prior_template"),
        CheckConstraint("a > 0 AND b > 0", name="prior_gamma"),
    )
    no: int = Field(sa_column=smallint(key=True))
    template: str = Field(sa_column=text())
    a: float = Field(sa_column=double())
    b: float = Field(sa_column=double())
    pages: int = Field(sa_column=bigint(default="0"))
    magnitude: float = Field(sa_column=double(default="0.1"))  # of a change of such a page: the part of it that changes
    # Of first looks at pages of the group: how many of late, and how much of what they said was new, in looks.
    first_visits: float = Field(sa_column=double(default="0"))
    novelty: float = Field(sa_column=double(default="0"))
    deferred_until: datetime | None = Field(
        sa_column=timestamptz(nullable=True)
    )  # the last time given to a page held back
    is_moving: bool = Field(sa_column=boolean())


class KindPrior(Table, table=True):
    """What is expected of a page of a new domain, by the kind of its site (crawler/core/freshness/prior.py).

    kind: "*" for domains of any.  pages, domains: that were looked at again, and from which it was learnt.
    """

    __table_args__ = (CheckConstraint("a > 0 AND b > 0", name="kind_prior_gamma"),)
    kind: str = Field(sa_column=text(key=True))
    a: float = Field(sa_column=double())
    b: float = Field(sa_column=double())
    pages: int = Field(sa_column=bigint())
    domains: int = Field(sa_column=integer(default=None))
    planned_at: datetime = Field(sa_column=timestamptz())


class DomainMemory(DomainTable, table=True):
    """What visits have taught of a domain, packed; a row for each kind (crawler/store/learned/memories.py)."""

    kind: str = Field(sa_column=text(key=True))
    memory: bytes = Field(sa_column=bytea())


class DomainTrust(DomainTable, table=True):
    """How far the validators of one group of pages can be believed (crawler/core/validators.py).

    prior_no: of the group.  revisits: handed out since the last lie.  stats: by validator, what looks found.
    """

    prior_no: int = Field(sa_column=smallint(key=True))
    revisits: int = Field(sa_column=integer())
    validator_checks: int = Field(sa_column=integer())
    stats: dict[str, Any] = Field(sa_column=jsonb(default="{}"))


class DomainSource(DomainTable, table=True):
    """A source of change signals about a domain's pages (crawler/core/freshness/source_record.py).

    no: from 0; pages count its signals by that.  signals: taken in so far.  recall, noise, effective_recall: what its word is
    worth; weighed: the same when due times were last made by it.  record: what looks have found.
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
    """What the plan says about a domain, written by whoever plans."""

    __table_args__ = (CheckConstraint("price_request > 0 AND price_byte >= 0", name="domain_plan_price"),)
    importance: float = Field(sa_column=double(default=None))
    planned_at: datetime = Field(sa_column=timestamptz())
    # What a request and a byte must be worth, in importance x days; null: as everywhere.
    price_request: float | None = Field(sa_column=double(nullable=True))
    price_byte: float = Field(sa_column=double(default="0"))
    longest_s: float | None = Field(sa_column=double(nullable=True))
    budget_per_day: int | None = Field(sa_column=integer(nullable=True, default=None))  # what a target asks for
    price_correction: float = Field(sa_column=double(default="1"))
    mean_magnitude: float = Field(sa_column=double(default="0.1"))  # to expect of a change, over the domain's pages
    finding: str = Field(sa_column=text(default=""))


class Calibration(DomainTable, table=True):
    """One day's looks: the chances of change that were given before them, and the changes that they found."""

    day: date = Field(sa_column=Column(Date, primary_key=True))
    audit: bool = Field(sa_column=Column(Boolean, primary_key=True))
    visits: int = Field(sa_column=bigint())
    expected: float = Field(sa_column=double())
    found: int = Field(sa_column=bigint())
    variance: float = Field(sa_column=double())


class Ledger(Table, table=True):
    """Requests and bytes of one UTC day that all domains together have spent. One row."""

    __table_args__ = (CheckConstraint("no = 1", name="ledger_one"),)
    no: int = Field(sa_column=smallint(key=True))
    day: date = Field(sa_column=Column(Date, nullable=False))
    spent_requests: int = Field(sa_column=bigint())
    spent_bytes: int = Field(sa_column=bigint())
    forgotten_places: int = Field(sa_column=bigint(default="0"))  # of the feed, of domains that were removed since


class DomainAlias(Table, table=True):
    """Another name of a domain, seen when its root was fetched at registration."""

    authority: str = Field(sa_column=text(key=True))
    domain_id: int = Field(sa_column=foreign_key("domain"))


class DomainState(DomainTable, table=True):
    """The narrow hot row that a claim locks: lease, times, economy, ledger. The holder alone writes it."""

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
    # The delay in force: after the last possible request of a holder that died, nobody sends sooner.
    delay_s: float = Field(sa_column=double(default="0"))
    addresses: list[str] = Field(sa_column=text_array())
    # When to come again, in knowledge time.
    wake_at: datetime | None = Field(sa_column=timestamptz(nullable=True))
    # Before this the last release had nothing to wake for, though pages may be due: by the pace of its budget.
    paced_until: datetime | None = Field(sa_column=timestamptz(nullable=True))
    closed_from: datetime | None = Field(sa_column=timestamptz(nullable=True))  # its hours are closed from then
    opens_at: datetime | None = Field(sa_column=timestamptz(nullable=True))  # until then, as last found
    resume_at: datetime | None = Field(sa_column=timestamptz(nullable=True))
    resume_reason: str = Field(sa_column=text(default=""))
    rejections: int = Field(sa_column=integer())
    last_visit_at: datetime | None = Field(sa_column=timestamptz(nullable=True))
    # The economy: coins in all, in the reserve, and kept for pages not yet known; clock: coins settled so far.
    total_cash: int = Field(sa_column=bigint())
    virtual_page_cash: int = Field(sa_column=bigint(default="0"))
    dormant: int = Field(sa_column=bigint())
    clock: float = Field(sa_column=double(default="0"))
    newcomers_cash: float = Field(sa_column=double(default="0"))
    newcomers_clock: float = Field(sa_column=double(default="0"))
    window_passes: float = Field(sa_column=double(default="24"))  # for which histories are kept today
    # Pages that are known at all, whatever became of them.
    tracked: int = Field(sa_column=bigint(default="0"))
    # The ledger of one UTC day.
    budget_day: date | None = Field(sa_column=Column(Date, nullable=True))
    spent_requests: int = Field(sa_column=integer())
    spent_bytes: int = Field(sa_column=bigint(default="0"))
    spent_floor: int = Field(sa_column=integer())
    # The site's activity: limits of its days, and days by which it is ahead of the calendar at each.
    activity_at: list[datetime] = Field(sa_column=timestamptz_array())
    activity_ahead: list[float] = Field(sa_column=double_array())
    # Mean requests and bytes of a look, by kind.
    costs: dict[str, Any] = Field(sa_column=jsonb(default="{}"))
    # The change feed.
    next_event: int = Field(sa_column=bigint(default="1"))
    stamped_event: int = Field(sa_column=bigint(default="0"))
    # What the feed has forgotten: events before the first one, and up to which position.
    first_event: int = Field(sa_column=bigint(default="1"))
    forgotten_until: int = Field(sa_column=bigint(default="0"))


class Pool(DomainTable, table=True):
    """Pages that the reserve pays alike: how many, and what each was paid since the beginning."""

    __table_args__ = (
        CheckConstraint("pages >= 0", name="pool_pages"),
        CheckConstraint("pool BETWEEN 0 AND 3", name="pool_known"),
        HOT_UPDATE_STORAGE,
    )
    pool: int = Field(sa_column=smallint(key=True))
    pages: int = Field(sa_column=bigint(default="0"))
    dividend: int = Field(sa_column=bigint(default="0"))


class Robots(DomainTable, table=True):
    """The domain's robots.txt: the last good copy, and how the last request for it ended."""

    body: bytes | None = Field(sa_column=bytea(nullable=True))
    outcome: str = Field(sa_column=text())
    fetched_at: datetime = Field(sa_column=timestamptz())
    good_at: datetime | None = Field(sa_column=timestamptz(nullable=True))
    due_at: datetime = Field(sa_column=timestamptz())


class AddressSlot(Table, table=True):
    """A network address, held with a lease, so that of many names on one server one is crawled at a time."""

    address: str = Field(sa_column=text(key=True))
    domain_id: int = Field(sa_column=foreign_key("domain"))
    lease_token: UUID = Field(sa_column=Column(Uuid, nullable=False))
    held_until: datetime = Field(sa_column=timestamptz())


class Inbox(Table, table=True):
    """Messages for the holder of a domain's lease; append-only, drained in chunks."""

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
    """A length of time, where there is one."""
    return Column(Interval, nullable=True)


class DomainFigures(DomainTable, table=True):
    """Counts and freshness of all pages of a domain.

    near_duplicates: groups of near-duplicates; null where not looked for.
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
    """Freshness, ages and intervals of a part of a domain's pages: all, those of a template or of a decile.

    template: empty but for a template's row.  decile: of importance, 1 to 10; 0 but for a decile's row.
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
    """The most important pages of a domain, by what they are asked for. ranking: a state, or all, failing, rendered."""

    ranking: str = Field(sa_column=text(key=True))
    place: int = Field(sa_column=smallint(key=True))
    key: bytes = Field(sa_column=bytea())
