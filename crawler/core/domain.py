"""The Domain that a user registered, and the Lease by which one worker holds it."""

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from uuid import UUID

from msgspec import Struct

from crawler.core.budget.hours import ALWAYS, Hours, parse_hours
from crawler.core.domain_settings import BY_NAME, DomainSettings, get_value
from crawler.core.http.addresses import is_private
from crawler.core.http.urls import Authority, Scope, Url, get_host
from crawler.core.tags import LayeredSettings, Tag


@dataclass(frozen=True, slots=True)
class Domain:
    """One authority that a user registered. aliases: other authorities with the same pages.

    own: the names of the settings with a value of its own; the others come from its tags or are the defaults.
    addresses: the result of the last DNS lookup.
    """

    id: int
    authority: Authority
    scheme: str
    aliases: frozenset[Authority]
    paused: bool
    registered_at: datetime
    settings: DomainSettings
    addresses: tuple[str, ...] = field(default=(), compare=False)
    own: frozenset[str] = frozenset()
    tags: tuple[Tag, ...] = ()

    @property
    def layers(self) -> LayeredSettings:
        """Return the settings in layers: its own values, those of its tags, and the defaults."""
        own = {name: get_value(self.settings, BY_NAME[name]) for name in self.own}
        return LayeredSettings(own | {"rules": self.settings.rules}, self.tags)

    @property
    def is_own_server(self) -> bool:
        """Return whether the server belongs to the user (see the function is_own_server)."""
        return is_own_server(self.authority, self.addresses, allow_private=self.settings.allow_private)

    @property
    def hours(self) -> Hours:
        """Return when the domain may be crawled."""
        return parse_stored_hours(self.settings.hours)

    @property
    def root(self) -> Url:
        return Url(f"{self.scheme}://{self.authority}/")

    def build_scope(self, *, max_depth: int, accepts: Callable[[Url], bool] | None = None) -> Scope:
        """Return the scope of the domain. max_depth: the limit if the user set none.  accepts: see Scope."""
        names = self.authority, self.scheme, self.aliases
        return build_scope(*names, self.settings, max_depth=max_depth, accepts=accepts)


def build_scope(
    authority: Authority,
    scheme: str,
    aliases: Collection[Authority],
    settings: DomainSettings,
    *,
    max_depth: int | None = None,
    accepts: Callable[[Url], bool] | None = None,
) -> Scope:
    """Return the scope of a domain under these settings. max_depth: the limit if they have none.  accepts: see Scope.

    Raise ValueError, naming the pattern, if a pattern is invalid.
    """
    return Scope(
        authority,
        scheme,
        frozenset(aliases),
        include=settings.include,
        exclude=settings.exclude,
        max_depth=max_depth if settings.max_depth is None else settings.max_depth,
        accepts=accepts,
    )


def parse_stored_hours(text: str) -> Hours:
    """Parse the stored hours of a domain.

    Return ALWAYS for hours that this machine cannot parse, for example with an unknown time zone. That is safe because
    such a domain is not crawled at all (DomainSettings.problems).
    """
    try:
        return parse_hours(text)
    except ValueError:
        return ALWAYS


def is_own_server(authority: Authority, addresses: Collection[str], *, allow_private: bool) -> bool:
    """Return whether a server belongs to the user: private addresses are allowed, and all its addresses are private.

    addresses: what the name resolves to; if none are known, the name itself must be a private address.
    """
    return allow_private and all(map(is_private, addresses or [get_host(authority)]))


class RobotsCopy(Struct, frozen=True):
    """The stored robots.txt of a domain.

    body: the last good copy, or None.  outcome, fetched_at: how and when the last request for it ended.
    good_at: when the body was received.  due_at: when to fetch it again.
    """

    body: bytes | None
    outcome: str
    fetched_at: datetime
    good_at: datetime | None
    due_at: datetime


# Prefixes of a suspension's reason; the missing secret, the error or the file follows.
LOGIN_FAILED, NO_SECRET, NO_CERTIFICATES = "login_failed", "no_secret", "no_certificates"


class Suspension(Struct, frozen=True):
    """Until when a domain is suspended, in knowledge time (crawler/clock.py), and why.

    rejections: the number of back-offs since the last good visit, which determines the next one.
    """

    until: datetime
    reason: str
    rejections: int


class Lease(Struct, frozen=True):
    """A domain held by one worker. Only the holder of the token writes the domain's pages.

    wait: real time from the claim until the domain's delay allows the first request.
    rejections: as in Suspension, before this lease.  robots: None before the first request for it.
    slots: the IP addresses that are held together with the domain.
    since: the monotonic clock of the machine in seconds, read before the claim was sent. Unless it is renewed, the
    lease ends a term later.
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
    """Why a domain can or cannot be claimed now.

    leased_until and next_request_at are real time, other instants are knowledge time (crawler/clock.py).
    """

    paused: bool
    holder: str | None
    leased_until: datetime | None
    wake_at: datetime | None  # when the next page is due
    paced_until: datetime | None  # until then the paced budget is used up, according to the last release
    resume_at: datetime | None  # end of the last suspension
    resume_reason: str
    next_request_at: datetime | None  # when the crawl delay allows the next request
    last_visit_at: datetime | None
    addresses_busy: bool  # another domain holds an IP address of this one
    has_inbox: bool  # requests or change signals wait for the next lease
    requested: int  # pages that a user requested and that were not fetched since; at most MAX_REQUESTED
    budget: int | None  # requests per day, set by the user or the plan
    budget_left: int | None  # requests left today
    bytes_left: int | None  # negative if the last bodies exceeded the limit
