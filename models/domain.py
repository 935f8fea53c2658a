"""What a user registers, what its lease holder keeps about it, and what others may leave for the holder."""

from datetime import date, datetime, timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import Boolean, CheckConstraint, Column, Date, Index, Interval, UniqueConstraint
from sqlalchemy.types import Uuid
from sqlmodel import Field, SQLModel

from crawler.core.domain_settings import SETTINGS, DomainSettings, value_of
from crawler.core.setting import Kind, Setting
from models.columns import (
    DomainTable,
    Table,
    big,
    count,
    document,
    flag,
    identity,
    instant,
    instants,
    octets,
    real,
    reals,
    reference,
    small,
    text,
    texts,
)

# Rows that every look rewrites need room on their own page for a HOT update.
SMALL_AND_HOT = {"info": {"storage": "fillfactor = 50"}}
# Settings that have a default, and may be null: what they bound is kept for ever.
FOR_EVER = {"keep_visits_s", "keep_changes_s"}


class Domain(Table, table=True):
    """Settings of one authority, written by its user. Null means: as everywhere.

    There is a column for each setting of the table in crawler/core/domain_settings.py, within its bounds.
    """

    __table_args__ = (
        CheckConstraint("scheme IN ('http', 'https')", name="domain_scheme"),
        CheckConstraint("state IN ('active', 'paused')", name="domain_state_known"),
        CheckConstraint("discovery_order IN ('opic', 'breadth', 'depth', 'mixed')", name="domain_order"),
        CheckConstraint("value IN ('amount', 'changes')", name="domain_value"),
        CheckConstraint("render IN ('auto', 'always', 'never')", name="domain_render"),
    )
    id: int = Field(sa_column=identity())
    authority: str = Field(sa_column=Column(text().type, nullable=False, unique=True))
    scheme: str = Field(sa_column=text())
    state: str = Field(sa_column=text(default="active"))
    registered_at: datetime = Field(sa_column=instant())


def _column_of(setting: Setting) -> Column[Any]:
    """Return the column of a setting, with the same default; spans are kept in seconds."""
    default = value_of(DomainSettings(), setting)
    if isinstance(default, timedelta):
        default = default.total_seconds()
    nullable = default is None or setting.column in FOR_EVER
    number = f"{default:.15g}" if isinstance(default, int | float) else None
    column: Column[Any]
    match setting.kind:
        case Kind.TEXT:
            column = text(default=str(default))
        case Kind.TEXTS:
            column = texts()
        case Kind.FLAG:
            column = flag()
        case Kind.COUNT:
            column = count(nullable=nullable, default=number)
        case Kind.BYTES:
            column = big(nullable=nullable, default=number)
        case Kind.NUMBER | Kind.FACTOR | Kind.SHARE | Kind.DELAY | Kind.SPAN:
            column = real(nullable=nullable, default=number)
    column.name = column.key = setting.column
    return column


def _bounds_of(setting: Setting) -> CheckConstraint | None:
    """Return the check of a setting's bounds; None for one without any."""
    column = setting.column
    match setting.kind:
        case Kind.COUNT | Kind.NUMBER:
            check = f"{column} BETWEEN {setting.least:.15g} AND {setting.most:.15g}"
        case Kind.FACTOR | Kind.SPAN:
            check = f"{column} > 0"
        case Kind.SHARE:
            check = f"{column} > 0 AND {column} < 1"
        case Kind.BYTES | Kind.DELAY:
            check = f"{column} >= 0"
        case Kind.TEXT | Kind.TEXTS | Kind.FLAG:
            return None
    return CheckConstraint(check, name=f"domain_{column}")


for _setting in SETTINGS:
    _table = SQLModel.metadata.tables["domain"]
    _table.append_column(_column_of(_setting))
    if (_check := _bounds_of(_setting)) is not None:
        _table.append_constraint(_check)


class Rule(DomainTable, table=True):
    """A user's rule for the pages of one pattern. pages: so many of them are admitted, where max_pages limits that."""

    __table_args__ = (
        CheckConstraint("least_s > 0 AND most_s > 0 AND weight > 0 AND max_pages >= 0", name="rule_bounds"),
        CheckConstraint("render IN ('auto', 'always', 'never')", name="rule_render"),
    )
    no: int = Field(sa_column=small(key=True))
    pattern: str = Field(sa_column=text())
    least_s: float | None = Field(sa_column=real(nullable=True))
    most_s: float | None = Field(sa_column=real(nullable=True))
    weight: float | None = Field(sa_column=real(nullable=True))
    once: bool = Field(sa_column=flag())
    max_pages: int | None = Field(sa_column=count(nullable=True, default=None))
    pages: int = Field(sa_column=big(default="0"))
    ignore: list[str] = Field(sa_column=texts())
    watch: list[str] = Field(sa_column=texts())
    ignore_text: list[str] = Field(sa_column=texts())
    render: str | None = Field(sa_column=text(nullable=True))


class Prior(DomainTable, table=True):
    """The prior of a group of pages for the change rate of each: Gamma(a, b), b in days. no 0: the whole domain."""

    __table_args__ = (
        UniqueConstraint("domain_id", "template", name="prior_template"),
        CheckConstraint("a > 0 AND b > 0", name="prior_gamma"),
    )
    no: int = Field(sa_column=small(key=True))
    template: str = Field(sa_column=text())
    a: float = Field(sa_column=real())
    b: float = Field(sa_column=real())
    pages: int = Field(sa_column=big(default="0"))
    amount: float = Field(sa_column=real(default="0.1"))  # of a change of such a page: the part of it that changes
    # Of first looks at pages of the group: how many of late, and how much of what they said was new, in looks.
    first_looks: float = Field(sa_column=real(default="0"))
    novelty: float = Field(sa_column=real(default="0"))
    held_until: datetime | None = Field(sa_column=instant(nullable=True))  # the last time given to a page held back
    is_moving: bool = Field(sa_column=flag())


class KindPrior(Table, table=True):
    """What is expected of a page of a new domain, by the kind of its site (crawler/core/freshness/prior.py).

    kind: "*" for domains of any.  pages, domains: that were looked at again, and from which it was learnt.
    """

    __table_args__ = (CheckConstraint("a > 0 AND b > 0", name="kind_prior_gamma"),)
    kind: str = Field(sa_column=text(key=True))
    a: float = Field(sa_column=real())
    b: float = Field(sa_column=real())
    pages: int = Field(sa_column=big())
    domains: int = Field(sa_column=count(default=None))
    planned_at: datetime = Field(sa_column=instant())


class DomainMemory(DomainTable, table=True):
    """What visits have taught of a domain, packed; a row for each kind (crawler/store/learned/memories.py)."""

    kind: str = Field(sa_column=text(key=True))
    memory: bytes = Field(sa_column=octets())


class DomainTrust(DomainTable, table=True):
    """How far the validators of one group of pages can be believed (crawler/core/validators.py).

    prior_no: of the group.  revisits: handed out since the last lie.  stats: by validator, what looks found.
    """

    prior_no: int = Field(sa_column=small(key=True))
    revisits: int = Field(sa_column=count())
    challenges: int = Field(sa_column=count())
    stats: dict[str, Any] = Field(sa_column=document(default="{}"))


class DomainSource(DomainTable, table=True):
    """A source of change signals about a domain's pages (crawler/core/freshness/source_record.py).

    no: from 0; pages count its signals by that.  signals: taken in so far.  recall, noise, silence: what its word is
    worth; weighed: the same when due times were last made by it.  record: what looks have found.
    """

    __table_args__ = (
        UniqueConstraint("domain_id", "source", name="domain_source_name"),
        CheckConstraint(
            "no >= 0 AND signals >= 0 AND recall BETWEEN 0 AND 1 AND noise > 0 AND silence BETWEEN 0 AND 1",
            name="domain_source_bounds",
        ),
    )
    no: int = Field(sa_column=small(key=True))
    source: str = Field(sa_column=text())
    signals: int = Field(sa_column=big(default="0"))
    measured_at: datetime = Field(sa_column=instant())
    recall: float = Field(sa_column=real())
    noise: float = Field(sa_column=real())
    silence: float = Field(sa_column=real())
    weighed_recall: float = Field(sa_column=real())
    weighed_noise: float = Field(sa_column=real())
    weighed_silence: float = Field(sa_column=real())
    record: dict[str, Any] = Field(sa_column=document(default="{}"))


class DomainPlan(DomainTable, table=True):
    """What the plan says about a domain, written by whoever plans."""

    __table_args__ = (CheckConstraint("price_request > 0 AND price_byte >= 0", name="domain_plan_price"),)
    importance: float = Field(sa_column=real(default=None))
    planned_at: datetime = Field(sa_column=instant())
    # What a request and a byte must be worth, in importance x days; null: as everywhere.
    price_request: float | None = Field(sa_column=real(nullable=True))
    price_byte: float = Field(sa_column=real(default="0"))
    longest_s: float | None = Field(sa_column=real(nullable=True))
    budget_per_day: int | None = Field(sa_column=count(nullable=True, default=None))  # what a target asks for
    price_correction: float = Field(sa_column=real(default="1"))
    mean_amount: float = Field(sa_column=real(default="0.1"))  # to expect of a change, over the domain's pages
    finding: str = Field(sa_column=text(default=""))


class Calibration(DomainTable, table=True):
    """One day's looks: the chances of change that were given before them, and the changes that they found."""

    day: date = Field(sa_column=Column(Date, primary_key=True))
    audit: bool = Field(sa_column=Column(Boolean, primary_key=True))
    looks: int = Field(sa_column=big())
    expected: float = Field(sa_column=real())
    found: int = Field(sa_column=big())
    variance: float = Field(sa_column=real())


class Ledger(Table, table=True):
    """Requests and bytes of one UTC day that all domains together have spent. One row."""

    __table_args__ = (CheckConstraint("no = 1", name="ledger_one"),)
    no: int = Field(sa_column=small(key=True))
    day: date = Field(sa_column=Column(Date, nullable=False))
    spent_requests: int = Field(sa_column=big())
    spent_bytes: int = Field(sa_column=big())
    forgotten_places: int = Field(sa_column=big(default="0"))  # of the feed, of domains that were removed since


class DomainAlias(Table, table=True):
    """Another name of a domain, seen when its root was fetched at registration."""

    authority: str = Field(sa_column=text(key=True))
    domain_id: int = Field(sa_column=reference("domain"))


class DomainState(DomainTable, table=True):
    """The narrow hot row that a claim locks: lease, times, economy, ledger. The holder alone writes it."""

    __table_args__ = (
        CheckConstraint("reserve >= 0 AND dormant >= 0", name="domain_state_reserve"),
        CheckConstraint("(lease_token IS NULL) = (leased_until IS NULL)", name="domain_state_lease_whole"),
        Index("domain_state_wake", "wake_at", "domain_id"),
        SMALL_AND_HOT,
    )
    # The lease, in real time.
    lease_token: UUID | None = Field(sa_column=Column(Uuid, nullable=True))
    leased_until: datetime | None = Field(sa_column=instant(nullable=True))
    holder: str | None = Field(sa_column=text(nullable=True))
    next_request_at: datetime | None = Field(sa_column=instant(nullable=True))
    # The delay in force: after the last possible request of a holder that died, nobody sends sooner.
    delay_s: float = Field(sa_column=real(default="0"))
    addresses: list[str] = Field(sa_column=texts())
    # When to come again, in knowledge time.
    wake_at: datetime | None = Field(sa_column=instant(nullable=True))
    # Before this the last release had nothing to wake for, though pages may be due: by the pace of its budget.
    paced_until: datetime | None = Field(sa_column=instant(nullable=True))
    closed_from: datetime | None = Field(sa_column=instant(nullable=True))  # its hours are closed from then
    opens_at: datetime | None = Field(sa_column=instant(nullable=True))  # until then, as last found
    resume_at: datetime | None = Field(sa_column=instant(nullable=True))
    resume_reason: str = Field(sa_column=text(default=""))
    refusals: int = Field(sa_column=count())
    last_visit_at: datetime | None = Field(sa_column=instant(nullable=True))
    # The economy: coins in all, in the reserve, and kept for pages not yet known; clock: coins settled so far.
    coins: int = Field(sa_column=big())
    reserve: int = Field(sa_column=big(default="0"))
    dormant: int = Field(sa_column=big())
    clock: float = Field(sa_column=real(default="0"))
    newcomers_cash: float = Field(sa_column=real(default="0"))
    newcomers_clock: float = Field(sa_column=real(default="0"))
    window_passes: float = Field(sa_column=real(default="24"))  # for which histories are kept today
    # Pages that are known at all, whatever became of them.
    tracked: int = Field(sa_column=big(default="0"))
    # The ledger of one UTC day.
    budget_day: date | None = Field(sa_column=Column(Date, nullable=True))
    spent_requests: int = Field(sa_column=count())
    spent_bytes: int = Field(sa_column=big(default="0"))
    spent_floor: int = Field(sa_column=count())
    # The site's activity: limits of its days, and days by which it is ahead of the calendar at each.
    activity_at: list[datetime] = Field(sa_column=instants())
    activity_ahead: list[float] = Field(sa_column=reals())
    # Mean requests and bytes of a look, by kind.
    costs: dict[str, Any] = Field(sa_column=document(default="{}"))
    # The change feed.
    next_event: int = Field(sa_column=big(default="1"))
    stamped_event: int = Field(sa_column=big(default="0"))
    # What the feed has forgotten: events before the first one, and up to which position.
    first_event: int = Field(sa_column=big(default="1"))
    forgotten_until: int = Field(sa_column=big(default="0"))


class Pool(DomainTable, table=True):
    """Pages that the reserve pays alike: how many, and what each was paid since the beginning."""

    __table_args__ = (
        CheckConstraint("pages >= 0", name="pool_pages"),
        CheckConstraint("pool BETWEEN 0 AND 3", name="pool_known"),
        SMALL_AND_HOT,
    )
    pool: int = Field(sa_column=small(key=True))
    pages: int = Field(sa_column=big(default="0"))
    dividend: int = Field(sa_column=big(default="0"))


class Robots(DomainTable, table=True):
    """The domain's robots.txt: the last good copy, and how the last request for it ended."""

    body: bytes | None = Field(sa_column=octets(nullable=True))
    outcome: str = Field(sa_column=text())
    fetched_at: datetime = Field(sa_column=instant())
    good_at: datetime | None = Field(sa_column=instant(nullable=True))
    due_at: datetime = Field(sa_column=instant())


class AddressSlot(Table, table=True):
    """A network address, held with a lease, so that of many names on one server one is crawled at a time."""

    address: str = Field(sa_column=text(key=True))
    domain_id: int = Field(sa_column=reference("domain"))
    lease_token: UUID = Field(sa_column=Column(Uuid, nullable=False))
    held_until: datetime = Field(sa_column=instant())


class Inbox(Table, table=True):
    """Messages for the holder of a domain's lease; append-only, drained in chunks."""

    __table_args__ = (
        CheckConstraint(
            "kind IN ('seed', 'refresh', 'reorder', 'audit', 'reprice', 'share', 'window', 'signal')", name="inbox_kind"
        ),
        Index("inbox_domain", "domain_id", "id"),
    )
    id: int = Field(sa_column=identity())
    domain_id: int = Field(sa_column=reference("domain"))
    kind: str = Field(sa_column=text())
    payload: dict[str, Any] = Field(sa_column=document(default="{}"))
    arrived_at: datetime = Field(sa_column=instant())


def span() -> Any:
    """A length of time, where there is one."""
    return Column(Interval, nullable=True)


class DomainFigures(DomainTable, table=True):
    """Counts and freshness of all pages of a domain. alike: groups of near-duplicates; null where not looked for."""

    counted_at: datetime = Field(sa_column=instant())
    new: int = Field(sa_column=big(default="0"))
    held_back: int = Field(sa_column=big(default="0"))
    known: int = Field(sa_column=big(default="0"))
    gone: int = Field(sa_column=big(default="0"))
    dead_links: int = Field(sa_column=big(default="0"))
    moved: int = Field(sa_column=big(default="0"))
    refused: int = Field(sa_column=big(default="0"))
    withheld: int = Field(sa_column=big(default="0"))
    freshness: float | None = Field(sa_column=real(nullable=True))
    freshness_plain: float | None = Field(sa_column=real(nullable=True))
    oldest_look_at: datetime | None = Field(sa_column=instant(nullable=True))
    alike: list[Any] | None = Field(sa_column=document(nullable=True))


class FreshnessFigures(DomainTable, table=True):
    """Freshness, ages and intervals of a part of a domain's pages: all, those of a template or of a decile.

    template: empty but for a template's row.  decile: of importance, 1 to 10; 0 but for a decile's row.
    """

    __table_args__ = (
        CheckConstraint("grouped_by IN ('domain', 'template', 'decile')", name="freshness_figures_group"),
    )
    grouped_by: str = Field(sa_column=text(key=True))
    template: str = Field(sa_column=text(key=True))
    decile: int = Field(sa_column=small(key=True))
    pages: int = Field(sa_column=big())
    freshness: float | None = Field(sa_column=real(nullable=True))
    freshness_plain: float | None = Field(sa_column=real(nullable=True))
    mean_age: timedelta | None = Field(sa_column=span())
    oldest_age: timedelta | None = Field(sa_column=span())
    shortest_interval: timedelta | None = Field(sa_column=span())
    mean_interval: timedelta | None = Field(sa_column=span())
    longest_interval: timedelta | None = Field(sa_column=span())


class TopPage(DomainTable, table=True):
    """The most important pages of a domain, by what they are asked for. ranking: a state, or all, failing, rendered."""

    ranking: str = Field(sa_column=text(key=True))
    place: int = Field(sa_column=small(key=True))
    key: bytes = Field(sa_column=octets())
