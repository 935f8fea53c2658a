"""How a domain gets in, and how what a user typed is found again.

Of a new domain robots.txt is asked and, where that allows it, its root, so that one name stands for it; redirects are
followed within the registrable domain.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from difflib import get_close_matches
from typing import TYPE_CHECKING

from crawler.app.root_probe import RedirectChain, RootProbe
from crawler.core.domain import Domain
from crawler.core.domain_settings import DomainSettings
from crawler.core.http.response import Answer, Fetched, Reason, Unreached
from crawler.core.http.urls import (
    Authority,
    Refusal,
    Scope,
    Url,
    authority_of,
    from_user,
    host_of,
    path_and_query,
    registrable,
    scheme_of,
)
from crawler.core.visit.visit import PERMANENT, TEMPORARY
from crawler.engine.requests.robots import good_copy
from crawler.errors import BadInput
from crawler.store import claim, domains
from crawler.store.database import Database
from crawler.store.domain_rows import put_robots
from crawler.times import format_instant, format_typed_instant

if TYPE_CHECKING:  # aiohttp has 8 MB, and whoever shows pages asks no web
    from crawler.fetch import Http

MOST_HOPS = 5  # apex to www and http to https are two; more is a loop or a joke
CLOSE = 0.8  # of difflib's ratio: one letter of five, or a subdomain that was left out


@dataclass(frozen=True, slots=True)
class FoundDomain:
    """A domain to be registered.

    aliases: the other names, through which the root's redirects led.  addresses: of the authority, none when offline.
    seeds: beside the root.  warning: what went wrong with the root, or an empty string; the crawl will record it.
    requests, received_bytes: what asking took, for the domain's ledger.  robots: its robots.txt, empty where there is
    none; None where it was not had.  crawl_delay: that this one wants.  answer: of the root, if that is a page.
    """

    authority: Authority
    scheme: str
    aliases: tuple[Authority, ...] = ()
    addresses: tuple[str, ...] = ()
    seeds: tuple[Url, ...] = ()
    warning: str = ""
    requests: int = field(default=0, compare=False)
    received_bytes: int = field(default=0, compare=False)
    robots: bytes | None = field(default=None, compare=False, repr=False)
    crawl_delay: timedelta = field(default=timedelta(0), compare=False)
    answer: Fetched | None = field(default=None, compare=False, repr=False)

    @property
    def root(self) -> Url:
        return Url(f"{self.scheme}://{self.authority}/")

    def without_answer(self) -> "FoundDomain":
        """FoundDomain less the request and bytes of the root's answer, which are on the account of its first look."""
        if self.answer is None:
            return self
        taken = self.received_bytes - self.answer.received_bytes
        return replace(self, requests=self.requests - 1, received_bytes=taken)


def url_of(text: str) -> Url:
    """What a person typed, as a URL. Raises BadInput."""
    try:
        return from_user(text)
    except ValueError as error:
        raise BadInput(str(error)) from error


def unasked(text: str) -> FoundDomain:
    """A domain to be registered without asking it: authority and scheme as they were typed. Raises BadInput."""
    url = url_of(text)
    found = FoundDomain(authority=authority_of(url), scheme=scheme_of(url))
    return replace(found, seeds=_extra_seed(url, found))


async def look_up(roots: RootProbe, text: str, *, most: int | None = None) -> FoundDomain:
    """Ask the root of what a person typed, a URL or a name, and follow it within the registrable domain.

    Each root's robots.txt is asked before, and the root only where that allows it; else the domain is registered as far
    as the redirects led.

    A URL with a path registers the domain with that path as one more seed.  most: requests that its budget allows; with
    none it is registered as it was typed, and where they end on the way, as the last redirect says.
    Raises BadInput for a name without an address, an address that may not be asked, and a root that leads to somebody
    else's domain. A server that refuses, is silent or fails is registered with a warning.
    """
    url = url_of(text)
    trail = RedirectChain(roots, _root(url), most)
    if not trail.may_ask():
        return replace(unasked(text), warning=f"{authority_of(url)} was not asked: no budget allows a request today")
    addresses = await _addresses(roots.web, authority_of(url))
    answer = await trail.ask(trail.at)
    has_scheme = "://" in text.partition("?")[0]
    if not has_scheme and _nobody_listens(answer) and trail.may_ask():
        # Without a scheme http was our guess.
        secure = Url(f"https://{authority_of(url)}/")
        on_https = await trail.ask(secure)
        if not _nobody_listens(on_https):
            trail.at, answer = secure, on_https
    for _ in range(MOST_HOPS):
        onward = _onward(answer, trail)
        if onward is None:
            break
        if authority_of(onward) != authority_of(trail.at):
            trail.names.append(authority_of(trail.at))
            addresses = await _addresses(roots.web, authority_of(onward))
        trail.at = onward
        if not trail.may_ask():
            break
        answer = await trail.ask(onward)
    _refuse_forbidden(answer, authority_of(trail.at))
    authority = authority_of(trail.at)
    found = FoundDomain(
        authority=authority,
        scheme=scheme_of(trail.at),
        aliases=tuple(name for name in dict.fromkeys(trail.names) if name != authority),
        addresses=addresses,
        warning=_warning(answer, trail),
        answer=answer if isinstance(answer, Fetched) and answer.status == 200 else None,
        robots=trail.robots_of(trail.at),
        crawl_delay=trail.rules_of(trail.at).crawl_delay(roots.agent) or timedelta(0),
        requests=trail.requests,
        received_bytes=trail.received_bytes,
    )
    return replace(found, seeds=_extra_seed(url, found))


async def register(
    db: Database, found: FoundDomain, domain_settings: DomainSettings, *, delay: timedelta, at: datetime
) -> Domain:
    """Register what was found, with the user's settings. Raises BadInput for a seed or a pattern that cannot be.

    delay: the first lease asks nobody before it has passed, or the longer one that robots.txt wants; nothing where
    nobody was asked just now. What asking took is on the account of the domain's day, and a robots.txt that was had is
    not asked for again.
    """
    seeds = tuple(dict.fromkeys([*found.seeds, *domain_settings.seeds]))
    domain_settings = replace(domain_settings, seeds=home_seeds(scope_of(found, domain_settings), seeds))
    domain = await domains.register(
        db,
        found.authority,
        scheme=found.scheme,
        aliases=found.aliases,
        addresses=found.addresses,
        domain_settings=domain_settings,
        delay=max(delay, found.crawl_delay) if found.requests else delay,
        at=at,
    )
    if found.robots is not None:
        await put_robots(db, domain, good_copy(found.robots, at=at), replaces=False)
    await charge(db, domain, found, at=at)
    return domain


async def charge(db: Database, domain: Domain, found: FoundDomain, *, at: datetime) -> None:
    """Put what asking a domain's root took on its account."""
    if found.requests:
        await claim.charge(db, domain, requests=found.requests, received_bytes=found.received_bytes, at=at)


def scope_of(place: FoundDomain | Domain, domain_settings: DomainSettings) -> Scope:
    """The URLs that would be pages under these settings. Raises BadInput for a pattern that is none."""
    try:
        return Scope(
            authority=place.authority,
            scheme=place.scheme,
            aliases=frozenset(place.aliases),
            include=domain_settings.include,
            exclude=domain_settings.exclude,
            max_depth=domain_settings.max_depth,
        )
    except ValueError as error:
        raise BadInput(str(error)) from error


def home_seeds(scope: Scope, seeds: Collection[Url]) -> tuple[Url, ...]:
    """The seeds as the domain spells them. Raises BadInput for one that is not a page of it."""
    for seed in seeds:
        refusal = scope.refusal(seed)
        if refusal is Refusal.OTHER_DOMAIN:
            raise BadInput(f"the seed {seed} is not a page of {scope.authority}")
        if refusal is not None:
            raise BadInput(f"the seed {seed} is out of scope ({refusal.value.replace('_', ' ')})")
    return tuple(dict.fromkeys(map(scope.home, seeds)))


async def _addresses(web: "Http", authority: Authority) -> tuple[str, ...]:
    answer = await web.addresses(authority)
    if not isinstance(answer, Unreached):
        return answer
    _refuse_forbidden(answer, authority)
    raise BadInput(
        f"{host_of(authority)} cannot be resolved: check the spelling, or register it with --offline ({answer.detail})"
    )


def _refuse_forbidden(answer: Answer | None, authority: Authority) -> None:
    """Raise BadInput if the address may not be asked; a private one could be allowed by the user."""
    if not isinstance(answer, Unreached) or answer.reason is not Reason.ADDRESS:
        return
    from crawler.fetch import refusal  # noqa: PLC0415  as above

    may_be_allowed = refusal(answer.detail.partition(" ")[0], allow_private=True) is None
    remedy = ": add --allow-private if that is your own server" if may_be_allowed else ""
    raise BadInput(f"{authority} is not asked, since {answer.detail}{remedy}")


def _onward(answer: Answer | None, trail: RedirectChain) -> Url | None:
    """The root to which a root's redirect leads, if it is another one of the same registrable domain."""
    if not isinstance(answer, Fetched) or answer.status not in PERMANENT | TEMPORARY or answer.location is None:
        return None
    here, there = authority_of(trail.at), authority_of(answer.location)
    if registrable(here) != registrable(there):
        raise BadInput(f"{here} leads to another domain, {there}: register that one instead")
    onward = _root(answer.location)
    return None if onward == trail.at else onward


def _warning(answer: Answer | None, trail: RedirectChain) -> str:
    authority = authority_of(trail.at)
    match answer:
        case None:
            return _why_unasked(trail)
        case Unreached(reason=reason, detail=detail):
            return f"{authority} does not answer ({reason.value}: {detail}); the crawl will try again"
        case Fetched(status=status) if status >= 500:
            return f"{authority} answers its root with status {status}; the crawl will try again"
        case _ if _onward(answer, trail) is not None:
            return f"{authority} redirects its root in a circle"
        case _:
            return ""


def _why_unasked(trail: RedirectChain) -> str:
    """Why the root was not asked; nothing where only the budget's requests were at their end."""
    authority, said = authority_of(trail.at), trail.robots.get(trail.at)
    match said:
        case Unreached(reason=reason, detail=detail):
            return (
                f"{authority} has a robots.txt that cannot be had ({reason.value}: {detail}); the crawl will try again"
            )
        case Fetched(status=status) if trail.robots_of(trail.at) is None:
            return f"{authority} answers its robots.txt with status {status}; the crawl will try again"
        case Fetched() if not trail.allows(trail.at):
            return f"{authority} has a robots.txt that does not let its root be asked"
        case _:
            return ""


def _nobody_listens(answer: Answer | None) -> bool:
    return isinstance(answer, Unreached) and answer.reason in {Reason.REFUSED, Reason.DEADLINE}


def _root(url: Url) -> Url:
    return Url(f"{scheme_of(url)}://{authority_of(url)}/")


def _extra_seed(url: Url, found: FoundDomain) -> tuple[Url, ...]:
    """The page that was typed, under the authority that was found; empty if that is the root."""
    asked = path_and_query(url)
    return () if asked == "/" else (Url(found.root + asked[1:]),)


def authority_in(text: str) -> Authority:
    """The authority of a name or a URL. Raises BadInput."""
    return authority_of(url_of(text))


async def domain_named(db: Database, text: str) -> Domain:
    """The registered domain of that name, alias or URL. Raises BadInput."""
    authority = authority_in(text)
    domain = await domains.find(db, authority)
    if domain is None:
        raise BadInput(await not_registered(db, authority))
    return domain


async def find_domains(db: Database, name: str | None = None, *, at: datetime | None = None) -> list[Domain]:
    """Return the domain of that name, or all. Raises BadInput, also where `at` is before a last visit; None is now."""
    if name is not None:
        found = [await domain_named(db, name)]
    else:
        found = [listed.domain for listed in await domains.every(db)]
    if at is not None:
        await require_not_before_last_visit(db, found, at)
    return found


async def not_registered(db: Database, authority: Authority) -> str:
    """The sentence about a name that is not registered, with the one that may have been meant."""
    names = await domains.names(db)
    # Of another port of the host if there is one, else one spelt much like it.
    same_host = [name for name in names if host_of(name) == host_of(authority)]
    meant = get_close_matches(authority, same_host or names, n=1, cutoff=0 if same_host else CLOSE)
    return f"{authority} is not registered: recrawl domains add {authority}" + (
        f", or did you mean {meant[0]}?" if meant else ""
    )


async def require_not_before_last_visit(db: Database, wanted: Iterable[Domain], at: datetime | None) -> None:
    """Raise BadInput for an instant before a domain's last visit: knowledge does not run backwards. None is now."""
    instant = at or datetime.now(UTC)
    for domain in wanted:
        last = (await domains.status_of(db, domain, at=instant)).last_visit_at
        if last is not None and last > instant:
            asked = "that instant is" if at is not None else "now is"
            raise BadInput(
                f"{domain.authority} was last visited at {format_instant(last)}, and {asked} before that: "
                f"if that time was wrong: recrawl domains reset-clock {domain.authority}; "
                f"or name a later instant, such as --at {format_typed_instant(last)}"
            )


def url_prefix(domain: Domain, prefix: str) -> Url:
    """The URL prefix that a user typed as a path or a URL; empty for all pages of the domain. Raises BadInput."""
    if not prefix:
        return domain.root
    url = url_of(f"{domain.root}{prefix[1:]}" if prefix.startswith("/") else prefix)
    scope = scope_of(domain, domain.settings)
    if scope.refusal(url) is Refusal.OTHER_DOMAIN:
        raise BadInput(f"{url} is not a URL of {domain.authority}")
    return scope.home(url)
