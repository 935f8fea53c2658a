"""Hints that pages have changed, left for whoever crawls their domains next."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime

from crawler.app.registration import scope_of
from crawler.core.domain import Domain
from crawler.core.freshness.signals import SOURCE_NAME, ChangeSignal
from crawler.core.http.urls import Authority, Url, authority_of
from crawler.errors import BadInput
from crawler.store import domains
from crawler.store.database import Database

MAX_HINTS = 10_000  # URLs at a time
NOT_REGISTERED = "not_registered"


@dataclass(frozen=True, slots=True)
class TakenHints:
    """What became of hints. taken: how many by domain.  refused: how many by reason."""

    taken: dict[str, int]
    refused: dict[str, int]


def require_source(source: str) -> None:
    """Raise BadInput for what cannot name a source of hints."""
    if not SOURCE_NAME.fullmatch(source):
        raise BadInput(f"{source!r} is no name of a source: a small letter, then up to 31 of a-z, 0-9, dot, _ and -")


async def leave_hints(db: Database, urls: Iterable[Url], *, source: str, at: datetime) -> TakenHints:
    """Leave a hint for each URL that its domain's scope allows. Raises BadInput for what cannot name a source."""
    require_source(source)
    by_authority: defaultdict[Authority, list[Url]] = defaultdict(list)
    for url in urls:
        by_authority[authority_of(url)].append(url)
    taken: Counter[str] = Counter()
    refused: Counter[str] = Counter()
    for authority, meant in by_authority.items():
        domain = await domains.find(db, authority)
        if domain is None:
            refused[NOT_REGISTERED] += len(meant)
            continue
        inside = list(_inside(domain, meant, refused))
        if inside:
            signals = [ChangeSignal(url=url, source=source, at=at) for url in inside]
            await domains.signal(db, domain, signals, at=at)
            taken[domain.authority] += len(inside)
    return TakenHints(taken=dict(taken), refused=dict(refused))


def _inside(domain: Domain, urls: Iterable[Url], refused: Counter[str]) -> Iterator[Url]:
    """Yield the URLs that the domain's scope allows, by the domain's own name."""
    scope = scope_of(domain, domain.settings)
    for url in dict.fromkeys(map(scope.home, urls)):
        reason = scope.refusal(url, 1)
        if reason is None:
            yield url
        else:
            refused[reason.value] += 1
