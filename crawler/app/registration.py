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
from crawler.core.http.response import FailureReason, Fetched, Response, Unreached
from crawler.core.http.urls import (
    Authority,
    ExclusionReason,
    Scope,
    Url,
    get_authority,
    get_host,
    get_path_and_query,
    get_registrable_domain,
    get_scheme,
    parse_user_url,
)
from crawler.core.visit.visit import PERMANENT_REDIRECTS, TEMPORARY_REDIRECTS
from crawler.engine.requests.robots import build_good_copy
from crawler.errors import BadInput
from crawler.store import claim, domains
from crawler.store.database import Database
from crawler.store.domain_rows import put_robots
from crawler.times import format_instant, format_typed_instant

if TYPE_CHECKING:  # aiohttp has 8 MB, and whoever shows pages asks no web
    from crawler.fetch import Http

MAX_REDIRECTS = 5  # apex to www and http to https are two; more is a loop or a joke
MIN_SIMILARITY = 0.8  # of difflib's ratio: one letter of five, or a subdomain that was left out


@dataclass(frozen=True, slots=True)
class DomainCandidate:
    """A domain to be registered.

    aliases: the other names, through which the root's redirects led.  addresses: of the authority, none when offline.
    seeds: beside the root.  warning: what went wrong with the root, or an empty string; the crawl will record it.
    requests, received_bytes: what asking took, for the domain's ledger.  robots: its robots.txt, empty where there is
    none; None where it was not had.  crawl_delay: that this one wants.  root_response: of the root, if that is a page.
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
    root_response: Fetched | None = field(default=None, compare=False, repr=False)

    @property
    def root(self) -> Url:
        return Url(f"{self.scheme}://{self.authority}/")

    def exclude_root_response(self) -> "DomainCandidate":
        """FoundDomain less the request and bytes of the root's answer, which are on the account of its first look."""
        if self.root_response is None:
            return self
        received_bytes = self.received_bytes - self.root_response.received_bytes
        return replace(self, requests=self.requests - 1, received_bytes=received_bytes)


def parse_typed_url(text: str) -> Url:
    """What a person typed, as a URL. Raises BadInput."""
    try:
        return parse_user_url(text)
    except ValueError as error:
        raise BadInput(str(error)) from error


def parse_candidate(text: str) -> DomainCandidate:
    """A domain to be registered without asking it: authority and scheme as they were typed. Raises BadInput."""
    url = parse_typed_url(text)
    candidate = DomainCandidate(authority=get_authority(url), scheme=get_scheme(url))
    return replace(candidate, seeds=_make_extra_seed(url, candidate))


async def probe_domain(probe: RootProbe, text: str, *, max_requests: int | None = None) -> DomainCandidate:
    """Ask the root of what a person typed, a URL or a name, and follow it within the registrable domain.

    Each root's robots.txt is asked before, and the root only where that allows it; else the domain is registered as far
    as the redirects led.

    A URL with a path registers the domain with that path as one more seed.  max_requests: requests that its budget
    allows; with none it is registered as it was typed, and where they end on the way, as the last redirect says. Raises
    BadInput for a name without an address, an address that may not be asked, and a root that leads to somebody else's
    domain. A server that refuses, is silent or fails is registered with a warning.
    """
    url = parse_typed_url(text)
    chain = RedirectChain(probe, _make_root(url), max_requests)
    if not chain.may_request():
        return replace(
            parse_candidate(text), warning=f"{get_authority(url)} was not asked: no budget allows a request today"
        )
    addresses = await _resolve_addresses(probe.http_client, get_authority(url))
    response = await chain.fetch_root(chain.current_root)
    has_scheme = "://" in text.partition("?")[0]
    if not has_scheme and _is_unreachable(response) and chain.may_request():
        # Without a scheme http was our guess.
        secure = Url(f"https://{get_authority(url)}/")
        https_response = await chain.fetch_root(secure)
        if not _is_unreachable(https_response):
            chain.current_root, response = secure, https_response
    for _ in range(MAX_REDIRECTS):
        next_root = _find_next_root(response, chain)
        if next_root is None:
            break
        if get_authority(next_root) != get_authority(chain.current_root):
            chain.names.append(get_authority(chain.current_root))
            addresses = await _resolve_addresses(probe.http_client, get_authority(next_root))
        chain.current_root = next_root
        if not chain.may_request():
            break
        response = await chain.fetch_root(next_root)
    _require_allowed_address(response, get_authority(chain.current_root))
    authority = get_authority(chain.current_root)
    candidate = DomainCandidate(
        authority=authority,
        scheme=get_scheme(chain.current_root),
        aliases=tuple(name for name in dict.fromkeys(chain.names) if name != authority),
        addresses=addresses,
        warning=_format_warning(response, chain),
        root_response=response if isinstance(response, Fetched) and response.status == 200 else None,
        robots=chain.get_robots(chain.current_root),
        crawl_delay=chain.get_robots_rules(chain.current_root).get_crawl_delay(probe.agent) or timedelta(0),
        requests=chain.requests,
        received_bytes=chain.received_bytes,
    )
    return replace(candidate, seeds=_make_extra_seed(url, candidate))


async def register_candidate(
    db: Database, candidate: DomainCandidate, domain_settings: DomainSettings, *, delay: timedelta, at: datetime
) -> Domain:
    """Register what was found, with the user's settings. Raises BadInput for a seed or a pattern that cannot be.

    delay: the first lease asks nobody before it has passed, or the longer one that robots.txt wants; nothing where
    nobody was asked just now. What asking took is on the account of the domain's day, and a robots.txt that was had is
    not asked for again.
    """
    seeds = tuple(dict.fromkeys([*candidate.seeds, *domain_settings.seeds]))
    domain_settings = replace(domain_settings, seeds=normalize_seeds(make_scope(candidate, domain_settings), seeds))
    domain = await domains.register(
        db,
        candidate.authority,
        scheme=candidate.scheme,
        aliases=candidate.aliases,
        addresses=candidate.addresses,
        domain_settings=domain_settings,
        delay=max(delay, candidate.crawl_delay) if candidate.requests else delay,
        at=at,
    )
    if candidate.robots is not None:
        await put_robots(db, domain, build_good_copy(candidate.robots, at=at), replaces=False)
    await charge_probe(db, domain, candidate, at=at)
    return domain


async def charge_probe(db: Database, domain: Domain, candidate: DomainCandidate, *, at: datetime) -> None:
    """Put what asking a domain's root took on its account."""
    if candidate.requests:
        await claim.charge(db, domain, requests=candidate.requests, received_bytes=candidate.received_bytes, at=at)


def make_scope(domain: DomainCandidate | Domain, domain_settings: DomainSettings) -> Scope:
    """The URLs that would be pages under these settings. Raises BadInput for a pattern that is none."""
    try:
        return Scope(
            authority=domain.authority,
            scheme=domain.scheme,
            aliases=frozenset(domain.aliases),
            include=domain_settings.include,
            exclude=domain_settings.exclude,
            max_depth=domain_settings.max_depth,
        )
    except ValueError as error:
        raise BadInput(str(error)) from error


def normalize_seeds(scope: Scope, seeds: Collection[Url]) -> tuple[Url, ...]:
    """The seeds as the domain spells them. Raises BadInput for one that is not a page of it."""
    for seed in seeds:
        refusal = scope.find_exclusion(seed)
        if refusal is ExclusionReason.OTHER_DOMAIN:
            raise BadInput(f"the seed {seed} is not a page of {scope.authority}")
        if refusal is not None:
            raise BadInput(f"the seed {seed} is out of scope ({refusal.value.replace('_', ' ')})")
    return tuple(dict.fromkeys(map(scope.to_domain_url, seeds)))


async def _resolve_addresses(http_client: "Http", authority: Authority) -> tuple[str, ...]:
    addresses = await http_client.resolve_addresses(authority)
    if not isinstance(addresses, Unreached):
        return addresses
    _require_allowed_address(addresses, authority)
    raise BadInput(
        f"{get_host(authority)} cannot be resolved: "
        f"check the spelling, or register it with --offline ({addresses.detail})"
    )


def _require_allowed_address(response: Response | None, authority: Authority) -> None:
    """Raise BadInput if the address may not be asked; a private one could be allowed by the user."""
    if not isinstance(response, Unreached) or response.reason is not FailureReason.ADDRESS:
        return
    from crawler.fetch import find_refusal  # noqa: PLC0415  as above

    may_be_allowed = find_refusal(response.detail.partition(" ")[0], allow_private=True) is None
    remedy = ": add --allow-private if that is your own server" if may_be_allowed else ""
    raise BadInput(f"{authority} is not asked, since {response.detail}{remedy}")


def _find_next_root(response: Response | None, chain: RedirectChain) -> Url | None:
    """The root to which a root's redirect leads, if it is another one of the same registrable domain."""
    if (
        not isinstance(response, Fetched)
        or response.status not in PERMANENT_REDIRECTS | TEMPORARY_REDIRECTS
        or response.location is None
    ):
        return None
    here, there = get_authority(chain.current_root), get_authority(response.location)
    if get_registrable_domain(here) != get_registrable_domain(there):
        raise BadInput(f"{here} leads to another domain, {there}: register that one instead")
    next_root = _make_root(response.location)
    return None if next_root == chain.current_root else next_root


def _format_warning(response: Response | None, chain: RedirectChain) -> str:
    authority = get_authority(chain.current_root)
    match response:
        case None:
            return _explain_unfetched_root(chain)
        case Unreached(reason=reason, detail=detail):
            return f"{authority} does not answer ({reason.value}: {detail}); the crawl will try again"
        case Fetched(status=status) if status >= 500:
            return f"{authority} answers its root with status {status}; the crawl will try again"
        case _ if _find_next_root(response, chain) is not None:
            return f"{authority} redirects its root in a circle"
        case _:
            return ""


def _explain_unfetched_root(chain: RedirectChain) -> str:
    """Why the root was not asked; nothing where only the budget's requests were at their end."""
    authority, robots_response = get_authority(chain.current_root), chain.robots_responses.get(chain.current_root)
    match robots_response:
        case Unreached(reason=reason, detail=detail):
            return (
                f"{authority} has a robots.txt that cannot be had ({reason.value}: {detail}); the crawl will try again"
            )
        case Fetched(status=status) if chain.get_robots(chain.current_root) is None:
            return f"{authority} answers its robots.txt with status {status}; the crawl will try again"
        case Fetched() if not chain.allows(chain.current_root):
            return f"{authority} has a robots.txt that does not let its root be asked"
        case _:
            return ""


def _is_unreachable(response: Response | None) -> bool:
    return isinstance(response, Unreached) and response.reason in {FailureReason.REFUSED, FailureReason.DEADLINE}


def _make_root(url: Url) -> Url:
    return Url(f"{get_scheme(url)}://{get_authority(url)}/")


def _make_extra_seed(url: Url, candidate: DomainCandidate) -> tuple[Url, ...]:
    """The page that was typed, under the authority that was found; empty if that is the root."""
    path = get_path_and_query(url)
    return () if path == "/" else (Url(candidate.root + path[1:]),)


def parse_authority(text: str) -> Authority:
    """The authority of a name or a URL. Raises BadInput."""
    return get_authority(parse_typed_url(text))


async def get_domain(db: Database, text: str) -> Domain:
    """The registered domain of that name, alias or URL. Raises BadInput."""
    authority = parse_authority(text)
    domain = await domains.find_domain(db, authority)
    if domain is None:
        raise BadInput(await format_not_registered(db, authority))
    return domain


async def find_domains(db: Database, name: str | None = None, *, at: datetime | None = None) -> list[Domain]:
    """Return the domain of that name, or all. Raises BadInput, also where `at` is before a last visit; None is now."""
    if name is not None:
        selected = [await get_domain(db, name)]
    else:
        selected = [listed.domain for listed in await domains.list_domains(db)]
    if at is not None:
        await require_not_before_last_visit(db, selected, at)
    return selected


async def format_not_registered(db: Database, authority: Authority) -> str:
    """The sentence about a name that is not registered, with the one that may have been meant."""
    names = await domains.list_names(db)
    # Of another port of the host if there is one, else one spelt much like it.
    same_host = [name for name in names if get_host(name) == get_host(authority)]
    suggestions = get_close_matches(authority, same_host or names, n=1, cutoff=0 if same_host else MIN_SIMILARITY)
    return f"{authority} is not registered: recrawl domains add {authority}" + (
        f", or did you mean {suggestions[0]}?" if suggestions else ""
    )


async def require_not_before_last_visit(db: Database, selected: Iterable[Domain], at: datetime | None) -> None:
    """Raise BadInput for an instant before a domain's last visit: knowledge does not run backwards. None is now."""
    instant = at or datetime.now(UTC)
    for domain in selected:
        last = (await domains.read_status(db, domain, at=instant)).last_visit_at
        if last is not None and last > instant:
            subject = "that instant is" if at is not None else "now is"
            raise BadInput(
                f"{domain.authority} was last visited at {format_instant(last)}, and {subject} before that: "
                f"if that time was wrong: recrawl domains reset-clock {domain.authority}; "
                f"or name a later instant, such as --at {format_typed_instant(last)}"
            )


def parse_url_prefix(domain: Domain, prefix: str) -> Url:
    """The URL prefix that a user typed as a path or a URL; empty for all pages of the domain. Raises BadInput."""
    if not prefix:
        return domain.root
    url = parse_typed_url(f"{domain.root}{prefix[1:]}" if prefix.startswith("/") else prefix)
    scope = make_scope(domain, domain.settings)
    if scope.find_exclusion(url) is ExclusionReason.OTHER_DOMAIN:
        raise BadInput(f"{url} is not a URL of {domain.authority}")
    return scope.to_domain_url(url)
