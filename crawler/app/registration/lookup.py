"""What people call domains, the pages beneath a prefix, and instants at which they may be looked at."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from difflib import get_close_matches

from crawler.app.registration.register import scope_of, url_of
from crawler.core.domain import Domain
from crawler.core.http import Authority, Refusal, Url, authority_of, host_of
from crawler.errors import BadInput
from crawler.store import domains
from crawler.store.database import Database
from crawler.times import format_instant, format_typed_instant

CLOSE = 0.8  # of difflib's ratio: one letter of five, or a subdomain that was left out


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
    found = (
        [await domain_named(db, name)] if name is not None else [listed.domain for listed in await domains.every(db)]
    )
    if at is not None:
        await require_not_before_last_visit(db, found, at)
    return found


async def not_registered(db: Database, authority: Authority) -> str:
    """The sentence about a name that is not registered, with the one that may have been meant."""
    meant = nearest(authority, await domains.names(db))
    return f"{authority} is not registered: recrawl domains add {authority}" + (
        f", or did you mean {meant}?" if meant else ""
    )


def nearest(authority: Authority, names: Sequence[Authority]) -> Authority | None:
    """The name that may have been meant: of another port of the host if there is one, else one spelt much like it."""
    same_host = [name for name in names if host_of(name) == host_of(authority)]
    found = get_close_matches(authority, same_host or names, n=1, cutoff=0 if same_host else CLOSE)
    return Authority(found[0]) if found else None


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
