"""What a user registers, what its lease holder keeps about it, and what others may leave for the holder."""

from datetime import date, datetime
from typing import Any
from uuid import UUID

from sqlalchemy import BigInteger, Boolean, CheckConstraint, Column, Date, Identity, Index, UniqueConstraint
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.types import Uuid
from sqlmodel import Field, SQLModel

from models.columns import big, count, domain_reference, instant, instants, octets, real, reals, small, text, texts

# Rows that every look rewrites need room on their own page for a HOT update.
SMALL_AND_HOT = {"info": {"storage": "fillfactor = 50"}}


class Domain(SQLModel, table=True):
    """Settings of one authority, written by its user. Null means: as everywhere."""

    __tablename__ = "domain"
    __table_args__ = (
        CheckConstraint("scheme IN ('http', 'https')", name="domain_scheme"),
        CheckConstraint("state IN ('active', 'paused')", name="domain_state_known"),
        CheckConstraint("weight > 0", name="domain_weight_positive"),
        CheckConstraint("budget_per_day >= 0", name="domain_budget"),
        CheckConstraint("delay_s >= 0", name="domain_delay"),
        CheckConstraint("latency_factor >= 0", name="domain_latency_factor"),
        CheckConstraint("parallelism BETWEEN 1 AND 256", name="domain_parallelism"),
        CheckConstraint("max_depth >= 0", name="domain_depth"),
        CheckConstraint("max_pages >= 1", name="domain_pages"),
        CheckConstraint("discovery_order IN ('opic', 'breadth', 'depth', 'mixed')", name="domain_order"),
        CheckConstraint("url_share BETWEEN 0 AND 1", name="domain_url_share"),
        CheckConstraint("favour_by > 0 AND discovery_weight >= 0 AND refresh_weight >= 0", name="domain_dial"),
        CheckConstraint("external_links >= 0", name="domain_external_links"),
        CheckConstraint("internal_links >= 0", name="domain_internal_links"),
        CheckConstraint("reserve_share BETWEEN 0 AND 1", name="domain_reserve_share"),
        CheckConstraint("window_passes > 0", name="domain_window"),
        CheckConstraint("bytes_per_day >= 0", name="domain_bytes"),
        CheckConstraint("value IN ('amount', 'changes')", name="domain_value"),
        CheckConstraint("render IN ('auto', 'always', 'never')", name="domain_render"),
        CheckConstraint("importance_mix BETWEEN 0 AND 1", name="domain_importance_mix"),
        CheckConstraint(
            "keep_versions >= 1 AND keep_daily_s > 0 AND keep_weekly_s > 0 AND keep_monthly_s > 0"
            " AND keep_visits_s > 0 AND keep_changes_s > 0 AND quota >= 0",
            name="domain_retention",
        ),
        CheckConstraint("target_freshness > 0 AND target_freshness < 1 AND target_age_s > 0", name="domain_target"),
    )
    id: int = Field(sa_column=Column(BigInteger, Identity(always=True), primary_key=True))
    authority: str = Field(sa_column=Column(text().type, nullable=False, unique=True))
    scheme: str = Field(sa_column=text())
    state: str = Field(sa_column=text(default="active"))
    registered_at: datetime = Field(sa_column=instant())
    seeds: list[str] = Field(sa_column=texts())
    weight: float = Field(sa_column=real(default="1"))
    budget_per_day: int | None = Field(sa_column=count(nullable=True, default=None))
    delay_s: float | None = Field(sa_column=real(nullable=True))
    parallelism: int | None = Field(sa_column=count(nullable=True, default=None))
    max_depth: int | None = Field(sa_column=count(nullable=True, default=None))
    max_pages: int | None = Field(sa_column=count(nullable=True, default=None))
    include: list[str] = Field(sa_column=texts())
    exclude: list[str] = Field(sa_column=texts())
    allow_private: bool = Field(sa_column=Column(Boolean, nullable=False, server_default="false"))
    # What it is shown, secrets by reference, and the way to it.
    headers: list[str] = Field(sa_column=texts())
    auth: str = Field(sa_column=text(default=""))
    login: str = Field(sa_column=text(default=""))
    cookies: bool = Field(sa_column=Column(Boolean, nullable=False, server_default="false"))
    proxy: str = Field(sa_column=text(default=""))
    ca_file: str = Field(sa_column=text(default=""))
    insecure_tls: bool = Field(sa_column=Column(Boolean, nullable=False, server_default="false"))
    latency_factor: float = Field(sa_column=real(default="2"))
    hours: str = Field(sa_column=text(default=""))
    # What comes first, and the dial of the reserve.
    discovery_order: str = Field(sa_column=text(default="opic"))
    url_share: float = Field(sa_column=real(default="0.3"))
    favour: list[str] = Field(sa_column=texts())
    favour_by: float = Field(sa_column=real(default="4"))
    discovery_weight: float = Field(sa_column=real(default="1"))
    refresh_weight: float = Field(sa_column=real(default="1"))
    external_links: float = Field(sa_column=real(default="0"))
    internal_links: float = Field(sa_column=real(default="1"))
    reserve_share: float = Field(sa_column=real(default="0.15"))
    window_passes: float = Field(sa_column=real(default="24"))
    # Budgets and targets.
    bytes_per_day: int | None = Field(sa_column=big(nullable=True))
    target_freshness: float | None = Field(sa_column=real(nullable=True))
    target_age_s: float | None = Field(sa_column=real(nullable=True))
    language: str = Field(sa_column=text(default=""))
    # What a change counts, and by which rule pages are looked at again.
    value: str = Field(sa_column=text(default="amount"))
    revisit: str = Field(sa_column=text(default="price"))
    importance_mix: float = Field(sa_column=real(default="0.5"))  # what a page weighs: its importance, an equal share
    render: str = Field(sa_column=text(default="auto"))  # its pages in a browser
    # What is kept of its past; null: for ever, and any number of bytes.
    keep_versions: int = Field(sa_column=count(default="50"))
    keep_daily_s: float = Field(sa_column=real(default="7776000"))
    keep_weekly_s: float = Field(sa_column=real(default="63072000"))
    keep_monthly_s: float | None = Field(sa_column=real(nullable=True))
    keep_visits_s: float | None = Field(sa_column=real(nullable=True, default="63072000"))
    keep_changes_s: float | None = Field(sa_column=real(nullable=True, default="63072000"))
    quota: int | None = Field(sa_column=big(nullable=True))


class Rule(SQLModel, table=True):
    """A user's rule for the pages of one pattern. pages: so many of them are admitted, where max_pages limits that."""

    __tablename__ = "rule"
    __table_args__ = (
        CheckConstraint("least_s > 0 AND most_s > 0 AND weight > 0 AND max_pages >= 0", name="rule_bounds"),
        CheckConstraint("render IN ('auto', 'always', 'never')", name="rule_render"),
    )
    domain_id: int = Field(sa_column=domain_reference())
    no: int = Field(sa_column=small(key=True))
    pattern: str = Field(sa_column=text())
    least_s: float | None = Field(sa_column=real(nullable=True))
    most_s: float | None = Field(sa_column=real(nullable=True))
    weight: float | None = Field(sa_column=real(nullable=True))
    once: bool = Field(sa_column=Column(Boolean, nullable=False, server_default="false"))
    max_pages: int | None = Field(sa_column=count(nullable=True, default=None))
    pages: int = Field(sa_column=big(default="0"))
    ignore: list[str] = Field(sa_column=texts())
    watch: list[str] = Field(sa_column=texts())
    ignore_text: list[str] = Field(sa_column=texts())
    render: str | None = Field(sa_column=text(nullable=True))


class Prior(SQLModel, table=True):
    """The prior of a group of pages for the change rate of each: Gamma(a, b), b in days. no 0: the whole domain."""

    __tablename__ = "prior"
    __table_args__ = (
        UniqueConstraint("domain_id", "template", name="prior_template"),
        CheckConstraint("a > 0 AND b > 0", name="prior_gamma"),
    )
    domain_id: int = Field(sa_column=domain_reference())
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
    is_moving: bool = Field(sa_column=Column(Boolean, nullable=False, server_default="false"))


class KindPrior(SQLModel, table=True):
    """What is expected of a page of a new domain, by the kind of its site (crawler/core/freshness/prior.py).

    kind: "*" for domains of any.  pages, domains: that were looked at again, and from which it was learnt.
    """

    __tablename__ = "kind_prior"
    __table_args__ = (CheckConstraint("a > 0 AND b > 0", name="kind_prior_gamma"),)
    kind: str = Field(sa_column=Column(text().type, primary_key=True))
    a: float = Field(sa_column=real())
    b: float = Field(sa_column=real())
    pages: int = Field(sa_column=big())
    domains: int = Field(sa_column=count(default=None))
    planned_at: datetime = Field(sa_column=instant())


class DomainNovelty(SQLModel, table=True):
    """What the new pages of a domain have said of late, as hashes; packed (crawler/store/record/novelty.py)."""

    __tablename__ = "domain_novelty"
    domain_id: int = Field(sa_column=domain_reference())
    memory: bytes = Field(sa_column=octets())


class DomainMask(SQLModel, table=True):
    """The noise mask of a domain, learnt from looks; packed (crawler/store/learned/mask.py)."""

    __tablename__ = "domain_mask"
    domain_id: int = Field(sa_column=domain_reference())
    mask: bytes = Field(sa_column=octets())


class DomainSoftErrors(SQLModel, table=True):
    """The soft errors that a domain is known for; packed (crawler/store/learned/soft_errors.py)."""

    __tablename__ = "domain_soft_errors"
    domain_id: int = Field(sa_column=domain_reference())
    memory: bytes = Field(sa_column=octets())


class DomainRenders(SQLModel, table=True):
    """What renders of a domain's pages have brought; packed (crawler/store/learned/renders.py)."""

    __tablename__ = "domain_renders"
    domain_id: int = Field(sa_column=domain_reference())
    memory: bytes = Field(sa_column=octets())


class DomainTrust(SQLModel, table=True):
    """How far the validators of one group of pages can be believed (crawler/core/validators/trust.py).

    prior_no: of the group.  revisits: handed out since the last lie.  stats: by validator, what looks found.
    """

    __tablename__ = "domain_trust"
    domain_id: int = Field(sa_column=domain_reference())
    prior_no: int = Field(sa_column=small(key=True))
    revisits: int = Field(sa_column=count())
    challenges: int = Field(sa_column=count())
    stats: dict[str, Any] = Field(sa_column=Column(JSONB, nullable=False, server_default="{}"))


class DomainSource(SQLModel, table=True):
    """A source of change signals about a domain's pages (crawler/core/freshness/source_record.py).

    no: from 0; pages count its signals by that.  signals: taken in so far.  recall, noise, silence: what its word is
    worth; weighed: the same when due times were last made by it.  record: what looks have found.
    """

    __tablename__ = "domain_source"
    __table_args__ = (
        UniqueConstraint("domain_id", "source", name="domain_source_name"),
        CheckConstraint(
            "no >= 0 AND signals >= 0 AND recall BETWEEN 0 AND 1 AND noise > 0 AND silence BETWEEN 0 AND 1",
            name="domain_source_bounds",
        ),
    )
    domain_id: int = Field(sa_column=domain_reference())
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
    record: dict[str, Any] = Field(sa_column=Column(JSONB, nullable=False, server_default="{}"))


class DomainPlan(SQLModel, table=True):
    """What the plan says about a domain, written by whoever plans."""

    __tablename__ = "domain_plan"
    __table_args__ = (CheckConstraint("price_request > 0 AND price_byte >= 0", name="domain_plan_price"),)
    domain_id: int = Field(sa_column=domain_reference())
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


class Calibration(SQLModel, table=True):
    """One day's looks: the chances of change that were given before them, and the changes that they found."""

    __tablename__ = "calibration"
    domain_id: int = Field(sa_column=domain_reference())
    day: date = Field(sa_column=Column(Date, primary_key=True))
    audit: bool = Field(sa_column=Column(Boolean, primary_key=True))
    looks: int = Field(sa_column=big())
    expected: float = Field(sa_column=real())
    found: int = Field(sa_column=big())
    variance: float = Field(sa_column=real())


class Ledger(SQLModel, table=True):
    """Requests and bytes of one UTC day that all domains together have spent. One row."""

    __tablename__ = "ledger"
    __table_args__ = (CheckConstraint("no = 1", name="ledger_one"),)
    no: int = Field(sa_column=small(key=True))
    day: date = Field(sa_column=Column(Date, nullable=False))
    spent_requests: int = Field(sa_column=big())
    spent_bytes: int = Field(sa_column=big())
    forgotten_places: int = Field(sa_column=big(default="0"))  # of the feed, of domains that were removed since


class DomainAlias(SQLModel, table=True):
    """Another name of a domain, seen when its root was fetched at registration."""

    __tablename__ = "domain_alias"
    authority: str = Field(sa_column=Column(text().type, primary_key=True))
    domain_id: int = Field(sa_column=domain_reference(key=False))


class DomainState(SQLModel, table=True):
    """The narrow hot row that a claim locks: lease, times, economy, ledger. The holder alone writes it."""

    __tablename__ = "domain_state"
    __table_args__ = (
        CheckConstraint("reserve >= 0 AND dormant >= 0", name="domain_state_reserve"),
        CheckConstraint("(lease_token IS NULL) = (leased_until IS NULL)", name="domain_state_lease_whole"),
        Index("domain_state_wake", "wake_at", "domain_id"),
        SMALL_AND_HOT,
    )
    domain_id: int = Field(sa_column=domain_reference())
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
    costs: dict[str, Any] = Field(sa_column=Column(JSONB, nullable=False, server_default="{}"))
    # The change feed.
    next_event: int = Field(sa_column=big(default="1"))
    stamped_event: int = Field(sa_column=big(default="0"))
    # What the feed has forgotten: events before the first one, and up to which position.
    first_event: int = Field(sa_column=big(default="1"))
    forgotten_until: int = Field(sa_column=big(default="0"))


class Pool(SQLModel, table=True):
    """Pages that the reserve pays alike: how many, and what each was paid since the beginning."""

    __tablename__ = "pool"
    __table_args__ = (
        CheckConstraint("pages >= 0", name="pool_pages"),
        CheckConstraint("pool BETWEEN 0 AND 3", name="pool_known"),
        SMALL_AND_HOT,
    )
    domain_id: int = Field(sa_column=domain_reference())
    pool: int = Field(sa_column=small(key=True))
    pages: int = Field(sa_column=big(default="0"))
    dividend: int = Field(sa_column=big(default="0"))


class Robots(SQLModel, table=True):
    """The domain's robots.txt: the last good copy, and how the last request for it ended."""

    __tablename__ = "robots"
    domain_id: int = Field(sa_column=domain_reference())
    body: bytes | None = Field(sa_column=octets(nullable=True))
    outcome: str = Field(sa_column=text())
    fetched_at: datetime = Field(sa_column=instant())
    good_at: datetime | None = Field(sa_column=instant(nullable=True))
    due_at: datetime = Field(sa_column=instant())


class AddressSlot(SQLModel, table=True):
    """A network address, held with a lease, so that of many names on one server one is crawled at a time."""

    __tablename__ = "address_slot"
    address: str = Field(sa_column=Column(text().type, primary_key=True))
    domain_id: int = Field(sa_column=domain_reference(key=False))
    lease_token: UUID = Field(sa_column=Column(Uuid, nullable=False))
    held_until: datetime = Field(sa_column=instant())


class Inbox(SQLModel, table=True):
    """Messages for the holder of a domain's lease; append-only, drained in chunks."""

    __tablename__ = "inbox"
    __table_args__ = (
        CheckConstraint(
            "kind IN ('seed', 'refresh', 'reorder', 'audit', 'reprice', 'share', 'window', 'signal')", name="inbox_kind"
        ),
        Index("inbox_domain", "domain_id", "id"),
    )
    id: int = Field(sa_column=Column(BigInteger, Identity(always=True), primary_key=True))
    domain_id: int = Field(sa_column=domain_reference(key=False))
    kind: str = Field(sa_column=text())
    payload: dict[str, Any] = Field(sa_column=Column(JSONB, nullable=False, server_default="{}"))
    arrived_at: datetime = Field(sa_column=instant())
