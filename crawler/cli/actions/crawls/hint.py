"""recrawl hint: read URLs, find their domains, and leave the hints for whoever crawls them next."""

import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from crawler.app.registration import scope_of, url_of
from crawler.cli.output import print_json, say
from crawler.cli.session import Interrupts, with_database
from crawler.core.domain import Domain
from crawler.core.freshness import SOURCE_NAME, ChangeSignal
from crawler.core.http import Authority, Url, authority_of
from crawler.errors import BadInput
from crawler.format.values import format_count
from crawler.store import domains
from crawler.store.database import Database

MOST = 10_000  # URLs at a time
MOST_LINE = 8192  # characters of a line; a page's URL has as many bytes at most
NOT_REGISTERED = "not_registered"


@dataclass(frozen=True, slots=True)
class TakenHints:
    """Hints by what became of them. refused: by reason, how many; those of other domains among them."""

    taken: dict[str, int]
    refused: dict[str, int]


def hint(texts: Sequence[str], *, source: str, at: datetime | None, as_json: bool) -> int:
    """Leave the hints; gives how many were taken. Raises BadInput for what is no URL or no name of a source."""
    if not SOURCE_NAME.fullmatch(source):
        raise BadInput(f"{source!r} is no name of a source: a small letter, then up to 31 of a-z, 0-9, dot, _ and -")
    urls = list(_urls(texts))
    now = at or datetime.now(UTC)

    async def work(db: Database, _: Interrupts) -> TakenHints:
        return await _leave(db, urls, source=source, at=now)

    found = with_database(work)
    total = sum(found.taken.values())
    if as_json:
        print_json({"source": source, "at": now, "taken": found.taken, "refused": found.refused})
        return total
    for authority, many in found.taken.items():
        say(f"{authority}: {format_count(many, 'hint')} of {source} will be weighed by the next crawl")
    for reason, many in found.refused.items():
        say(f"{format_count(many, 'hint')} refused: {reason.replace('_', ' ')}")
    return total


def _urls(texts: Sequence[str]) -> Iterator[Url]:
    for n, (place, text) in enumerate(_lines(texts)):
        if n >= MOST:
            raise BadInput(f"more than {MOST:,} URLs at a time")
        try:
            yield url_of(text)
        except BadInput as error:
            raise BadInput(f"{place}{error}") from error


def _lines(texts: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Each URL as it was given, with the place to name it by: the line of standard input."""
    for text in texts:
        if text != "-":
            yield "", text
            continue
        number = 0
        while line := sys.stdin.readline(MOST_LINE + 2):
            number += 1
            if len(line) > MOST_LINE + 1:
                raise BadInput(f"line {number}: longer than {MOST_LINE} characters")
            if line.strip():
                yield f"line {number}: ", line.strip()


async def _leave(db: Database, urls: Sequence[Url], *, source: str, at: datetime) -> TakenHints:
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
    """The URLs that the domain's scope allows, by the domain's own name."""
    scope = scope_of(domain, domain.settings)
    for url in dict.fromkeys(map(scope.home, urls)):
        reason = scope.refusal(url, 1)
        if reason is None:
            yield url
        else:
            refused[reason.value] += 1
