"""Registration of domains, and lookup of the domain or page that a user typed.

Before a domain is registered, its robots.txt and, if allowed, its root page are usually fetched. Redirects are followed
within the registrable domain, so that each site is registered under one name.
"""

from collections.abc import Collection, Iterable
from datetime import UTC, datetime, timedelta
from difflib import get_close_matches
from typing import TYPE_CHECKING

from msgspec import Struct, field
from msgspec.structs import replace

from crawler.core.domain import Domain, build_scope
from crawler.core.domain_settings import DomainSettings
from crawler.core.http import urls
from crawler.core.http.response import FailureReason, Fetched, Response, Unreached
from crawler.core.http.urls import Authority, ExclusionReason, Scope, Url, get_authority, get_scheme
from crawler.core.tags import LayeredSettings
from crawler.core.visit.state import PERMANENT_REDIRECTS, TEMPORARY_REDIRECTS
from crawler.errors import BadInput, NotFound, name_field
from crawler.store import claim, domains
from crawler.store.database import Database
from crawler.store.domain_rows import put_robots
from crawler.store.domain_settings import merge_layers
from crawler.times import format_instant, format_typed_instant

if TYPE_CHECKING:  # the web UI does not need it
    from crawler.app.root_probe import RedirectChain, RootProbe
    from crawler.fetch import Http

MAX_REDIRECTS = 5  # apex to www and http to https are two
MIN_SIMILARITY = 0.8  # difflib's ratio, reached if one letter in five differs or a subdomain is missing


class DomainCandidate(Struct, frozen=True):
    """A domain to be registered.

    aliases: the other names in the redirects of the root.
    addresses: the IP addresses of the authority; empty if they were not looked up.
    seeds: seeds in addition to the root.
    warning: what went wrong with the root; empty if nothing did.
    requests, received_bytes: the costs of the probe, charged to the domain's budget.
    robots: the body of robots.txt; empty if there is none, None if it was not fetched.
    crawl_delay: the delay that robots.txt requires.
    root_response: the response of the root, if its status is 200.
    """

    authority: Authority
    scheme: str
    aliases: tuple[Authority, ...] = ()
    addresses: tuple[str, ...] = ()
    seeds: tuple[Url, ...] = ()
    warning: str = ""
    requests: int = 0
    received_bytes: int = 0
    robots: bytes | None = None
    crawl_delay: timedelta = timedelta(0)
    root_response: Fetched | None = None

    @property
    def root(self) -> Url:
        return Url(f"{self.scheme}://{self.authority}/")

    def exclude_root_response(self) -> "DomainCandidate":
        """Return the candidate without the costs of the root's response, which its first visit will be charged for."""
        if self.root_response is None:
            return self
        received_bytes = self.received_bytes - self.root_response.received_bytes
        return replace(self, requests=self.requests - 1, received_bytes=received_bytes)


def parse_typed_url(text: str) -> Url:
    """Parse the URL or name that a user typed. Raises BadInput."""
    try:
        return urls.parse_user_url(text)
    except ValueError as error:
        raise BadInput(str(error)) from error


def parse_candidate(text: str) -> DomainCandidate:
    """Return the candidate for a typed name or URL without any request. Raises BadInput."""
    url = parse_typed_url(text)
    candidate = DomainCandidate(authority=get_authority(url), scheme=get_scheme(url))
    return replace(candidate, seeds=_make_extra_seed(url, candidate))


async def probe_domain(probe: "RootProbe", text: str, *, max_requests: int | None = None) -> DomainCandidate:
    """Fetch the root page of a typed URL or name, and follow its redirects within the registrable domain.

    The robots.txt of each root is fetched first. If it forbids the root, the candidate has the last name that the
    redirects led to. A URL with a path adds that page as a seed. If the server refuses connections, times out or fails,
    the candidate has a warning.

    max_requests: the requests that the domain's budget allows; None for no limit. With 0, the candidate has the typed
    name; if they are used up on the way, the name of the last redirect.
    Raises BadInput for a name that is invalid or cannot be resolved, an address that may not be requested, and a root
    that redirects to another registrable domain.
    """
    from crawler.app.root_probe import RedirectChain

    url = parse_typed_url(text)
    chain = RedirectChain(probe, _make_root(url), max_requests)
    if not chain.may_request():
        warning = f"{get_authority(url)} was not fetched: the budget allows no request today"
        return replace(parse_candidate(text), warning=warning)
    addresses = await _resolve_addresses(probe.http_client, get_authority(url))
    response = await chain.fetch_root(chain.current_root)
    if "://" not in text.partition("?")[0] and _is_unreachable(response) and chain.may_request():
        # The user typed no scheme, and http was a guess.
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
    authority = get_authority(chain.current_root)
    _require_allowed_address(response, authority)
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
    db: Database, candidate: DomainCandidate, layers: LayeredSettings, *, delay: timedelta, at: datetime
) -> Domain:
    """Register a candidate with the user's settings. Raises BadInput for an invalid seed or pattern.

    The costs of the probe are charged to the domain's budget, and a fetched robots.txt is stored.
    delay: the time until the first request of a crawl, unless robots.txt requires a longer one; zero if no request was
    made just now.
    """
    seeds = dict.fromkeys([*candidate.seeds, *layers.own.get("seeds", ())])
    if seeds:
        with name_field("settings"):
            layers = layers.set_own({"seeds": normalize_seeds(make_scope(candidate, merge_layers(layers)), seeds)})
    domain = await domains.register(
        db,
        candidate.authority,
        scheme=candidate.scheme,
        aliases=candidate.aliases,
        addresses=candidate.addresses,
        domain_settings=layers,
        delay=max(delay, candidate.crawl_delay) if candidate.requests else delay,
        at=at,
    )
    if candidate.robots is not None:
        from crawler.engine.requests.robots import build_good_copy

        await put_robots(db, domain, build_good_copy(candidate.robots, at=at), replaces=False)
    await charge_probe(db, domain, candidate, at=at)
    return domain


async def charge_probe(db: Database, domain: Domain, candidate: DomainCandidate, *, at: datetime) -> None:
    """Charge the requests of a probe to the domain's budget."""
    if candidate.requests:
        await claim.charge(db, domain, requests=candidate.requests, received_bytes=candidate.received_bytes, at=at)


def make_scope(domain: DomainCandidate | Domain, chosen: DomainSettings) -> Scope:
    """Return the scope of a domain under these settings. Raises BadInput for an invalid pattern."""
    try:
        return build_scope(domain.authority, domain.scheme, domain.aliases, chosen)
    except ValueError as error:
        raise BadInput(str(error)) from error


def normalize_seeds(scope: Scope, seeds: Collection[Url]) -> tuple[Url, ...]:
    """Return the seeds as URLs of the domain. Raises BadInput for a seed that is not a page of it."""
    for seed in seeds:
        exclusion = scope.find_exclusion(seed)
        if exclusion is ExclusionReason.OTHER_DOMAIN:
            raise BadInput(f"the seed {seed} is not a page of {scope.authority}")
        if exclusion is not None:
            raise BadInput(f"the seed {seed} is out of scope ({exclusion.value.replace('_', ' ')})")
    return tuple(dict.fromkeys(map(scope.to_domain_url, seeds)))


async def _resolve_addresses(http_client: "Http", authority: Authority) -> tuple[str, ...]:
    addresses = await http_client.resolve_addresses(authority)
    if not isinstance(addresses, Unreached):
        return addresses
    _require_allowed_address(addresses, authority)
    problem = f"{urls.get_host(authority)} cannot be resolved ({addresses.detail})"
    raise BadInput(f"{problem}: check the spelling, or register it with --offline")


def _require_allowed_address(response: Response | None, authority: Authority) -> None:
    """Raise BadInput if the address may not be requested. The user can allow private addresses."""
    if not isinstance(response, Unreached) or response.reason is not FailureReason.ADDRESS:
        return
    from crawler.fetch import find_refusal  # slow to import

    may_be_allowed = find_refusal(response.detail.partition(" ")[0], allow_private=True) is None
    remedy = ": if it is your own server, allow private addresses (--allow-private)" if may_be_allowed else ""
    raise BadInput(f"{authority} may not be requested because {response.detail}{remedy}")


def _find_next_root(response: Response | None, chain: "RedirectChain") -> Url | None:
    """Return the other root that a root redirects to, if any. Raises BadInput if its registrable domain differs."""
    redirects = PERMANENT_REDIRECTS | TEMPORARY_REDIRECTS
    if not isinstance(response, Fetched) or response.status not in redirects or response.location is None:
        return None
    here, there = get_authority(chain.current_root), get_authority(response.location)
    if urls.get_registrable_domain(here) != urls.get_registrable_domain(there):
        raise BadInput(f"{here} redirects to another domain, {there}: register that one instead")
    next_root = _make_root(response.location)
    return None if next_root == chain.current_root else next_root


def _format_warning(response: Response | None, chain: "RedirectChain") -> str:
    authority = get_authority(chain.current_root)
    match response:
        case None:
            return _explain_unfetched_root(chain)
        case Unreached(reason=reason, detail=detail):
            return f"{authority} did not respond ({reason.value}: {detail}); the crawl will try again"
        case Fetched(status=status) if status >= 500:
            return f"{authority} returned status {status} for its root page; the crawl will try again"
        case _:
            return f"{authority} redirects its root page in a loop" if _find_next_root(response, chain) else ""


def _explain_unfetched_root(chain: "RedirectChain") -> str:
    """Return why the root was not fetched; empty if the budget was exhausted or the crawl delay is too long."""
    authority = get_authority(chain.current_root)
    match chain.robots_responses.get(chain.current_root):
        case Unreached(reason=reason, detail=detail):
            return f"the robots.txt of {authority} is unavailable ({reason.value}: {detail}); the crawl will try again"
        case Fetched(status=status) if chain.get_robots(chain.current_root) is None:
            return f"{authority} returned status {status} for its robots.txt; the crawl will try again"
        case Fetched() if not chain.allows(chain.current_root):
            return f"the robots.txt of {authority} forbids its root page"
        case _:
            return ""


def _is_unreachable(response: Response | None) -> bool:
    return isinstance(response, Unreached) and response.reason in {FailureReason.REFUSED, FailureReason.DEADLINE}


def _make_root(url: Url) -> Url:
    return Url(f"{get_scheme(url)}://{get_authority(url)}/")


def _make_extra_seed(url: Url, candidate: DomainCandidate) -> tuple[Url, ...]:
    """Return the typed page under the candidate's authority as a seed; empty for the root."""
    path = urls.get_path_and_query(url)
    return () if path == "/" else (Url(candidate.root + path[1:]),)


def parse_authority(text: str) -> Authority:
    """Return the authority of a typed name or URL. Raises BadInput."""
    return get_authority(parse_typed_url(text))


async def get_domain(db: Database, text: str) -> Domain:
    """Return the registered domain with this name, alias or URL. Raises BadInput, and NotFound if there is none."""
    authority = parse_authority(text)
    domain = await domains.find_domain(db, authority)
    if domain is None:
        raise NotFound(await format_not_registered(db, authority))
    return domain


async def get_domains(db: Database, texts: Iterable[str]) -> list[Domain]:
    """Return the registered domains with these names, aliases or URLs, each once. Raises as `get_domain` does."""
    names = list(map(parse_authority, texts))
    found = await domains.find_named_domains(db, names)
    by_name = {name: domain for domain in found for name in (domain.authority, *domain.aliases)}
    for name in names:
        if name not in by_name:
            raise NotFound(await format_not_registered(db, name))
    return list({by_name[name].id: by_name[name] for name in names}.values())


async def find_domains(db: Database, name: str | None = None, *, at: datetime | None = None) -> list[Domain]:
    """Return the domain with this name, or all. Raises BadInput, also if `at` is before a domain's last visit."""
    if name is None:
        selected = [each.domain for each in await domains.list_domains(db)]
    else:
        selected = [await get_domain(db, name)]
    if at is not None:
        await require_after_last_visit(db, selected, at)
    return selected


async def format_not_registered(db: Database, authority: Authority) -> str:
    """Return a message that a name is not registered, with a suggestion if a similar one is."""
    names = await domains.list_names(db)
    # Suggest another port of the same host, else a name with a similar spelling.
    same_host = [name for name in names if urls.get_host(name) == urls.get_host(authority)]
    suggestions = get_close_matches(authority, same_host or names, n=1, cutoff=0 if same_host else MIN_SIMILARITY)
    suggestion = f", or did you mean {suggestions[0]}?" if suggestions else ""
    return f"{authority} is not registered: recrawl domains add {authority}{suggestion}"


async def require_after_last_visit(db: Database, selected: Iterable[Domain], at: datetime | None) -> None:
    """Raise BadInput if a time is before the last visit of a domain. at: None for now."""
    instant = at or datetime.now(UTC)
    for domain in selected:
        last = (await domains.read_status(db, domain, at=instant)).last_visit_at
        if last is not None and last > instant:
            subject = "the given time" if at is not None else "the current time"
            raise BadInput(
                f"{domain.authority} was last visited at {format_instant(last)}, and {subject} is before that: "
                f"use a later time, such as --at {format_typed_instant(last)}; "
                f"if the last visit has a wrong time: recrawl domains reset-clock {domain.authority}"
            )


def parse_prefix(domain: Domain, prefix: str) -> Url:
    """Parse a URL prefix that a user typed as a path or URL; empty for all pages of the domain. Raises BadInput."""
    if not prefix:
        return domain.root
    url = parse_typed_url(f"{domain.root}{prefix[1:]}" if prefix.startswith("/") else prefix)
    scope = make_scope(domain, domain.settings)
    if scope.find_exclusion(url) is ExclusionReason.OTHER_DOMAIN:
        raise BadInput(f"{url} is not a URL of {domain.authority}")
    return scope.to_domain_url(url)
