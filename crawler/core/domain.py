"""A Domain as its user registered it, and the Lease by which one worker holds it."""

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from uuid import UUID

from crawler.core.budget.hours import ALWAYS, Hours, parse_hours
from crawler.core.domain_settings import DomainSettings
from crawler.core.http.addresses import is_private
from crawler.core.http.urls import Authority, Scope, Url, get_host


@dataclass(frozen=True, slots=True)
class Domain:
    """One authority that a user registered. addresses: that its name led to when it was last looked up."""

    id: int
    authority: Authority
    scheme: str
    aliases: frozenset[Authority]
    paused: bool
    registered_at: datetime
    settings: DomainSettings
    addresses: tuple[str, ...] = field(default=(), compare=False)

    @property
    def is_own_server(self) -> bool:
        """Whether its server is its user's own."""
        return is_own_server(self.authority, self.addresses, allow_private=self.settings.allow_private)

    @property
    def hours(self) -> Hours:
        """When it may be asked."""
        return parse_stored_hours(self.settings.hours)

    @property
    def root(self) -> Url:
        return Url(f"{self.scheme}://{self.authority}/")

    def build_scope(self, *, max_depth: int, accepts: Callable[[Url], bool] | None = None) -> Scope:
        """Which URLs are pages of this domain. max_depth: where the user set none.  accepts: see Scope."""
        domain_settings = self.settings
        return Scope(
            authority=self.authority,
            scheme=self.scheme,
            aliases=self.aliases,
            include=domain_settings.include,
            exclude=domain_settings.exclude,
            max_depth=max_depth if domain_settings.max_depth is None else domain_settings.max_depth,
            accepts=accepts,
        )


def parse_stored_hours(text: str) -> Hours:
    """The hours of a domain's settings.

    Stored ones that this machine cannot read, as of a zone that it does not know, are all hours here: a domain with
    such is not crawled at all (DomainSettings.problems).
    """
    try:
        return parse_hours(text)
    except ValueError:
        return ALWAYS


def is_own_server(authority: Authority, addresses: Collection[str], *, allow_private: bool) -> bool:
    """Whether a server is its user's own: it may be private, and it is. A public one is asked politely all the same.

    addresses: that the name leads to; where none is known, the name has to be a private address itself.
    """
    return allow_private and all(map(is_private, addresses or [get_host(authority)]))


@dataclass(frozen=True, slots=True)
class RobotsCopy:
    """The stored robots.txt of a domain.

    body: the last good copy, None if there never was one.  outcome: how the last request for it ended.
    good_at: when the body was received.  due_at: when to ask again.
    """

    body: bytes | None
    outcome: str
    fetched_at: datetime
    good_at: datetime | None
    due_at: datetime


@dataclass(frozen=True, slots=True)
class Suspension:
    """A domain that is left alone until an instant (knowledge time), and why.

    rejections: how many times in a row, which the next back-off is counted from.
    """

    until: datetime
    reason: str
    rejections: int


@dataclass(frozen=True, slots=True)
class Lease:
    """A domain held by one worker. Only the holder of the token writes the domain's pages.

    wait: real time from the claim until the domain's delay allows the first request.
    rejections: 429s and 503s in a row before this lease.  slots: addresses that are held with it.
    since: monotonic seconds of the machine, read before the claim was sent; the lease lasts a term from then on.
    """

    domain: Domain
    token: UUID
    holder: str
    term: timedelta
    wait: timedelta
    rejections: int
    robots: RobotsCopy | None
    slots: tuple[str, ...] = ()
    since: float = 0.0


@dataclass(frozen=True, slots=True)
class DomainStatus:
    """Why a domain can or cannot be claimed now. Instants of the lease are real time, the others knowledge time."""

    paused: bool
    holder: str | None
    leased_until: datetime | None
    wake_at: datetime | None
    paced_until: datetime | None  # before this the budget had nothing, as the last release found
    resume_at: datetime | None
    resume_reason: str
    next_request_at: datetime | None
    last_visit_at: datetime | None
    addresses_busy: bool
    has_inbox: bool  # something waits there to be applied by the next lease
    requested: int  # pages that a user has requested and that were not fetched since, MAX_REQUESTED at most
    budget: int | None  # requests a day, by its user or by the plan
    budget_left: int | None  # requests of the day
    bytes_left: int | None  # below 0 by what the last bodies were over
