"""The pages as files: the same ones, without forms, that lead to each other and to nowhere else."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from crawler.app.changes import Database, FeedItem, newest_changes
from crawler.app.overview import DomainFacts, HomeFacts, examine_domain, summarize_domain
from crawler.app.pages import Domain, Url, VersionsQuery
from crawler.app.running.serving import open_parsers
from crawler.errors import CrawlerError
from crawler.server.ui.facts import ChangeFacts, ChangesAsked, url_facts
from crawler.server.ui.links import Addresses
from crawler.server.ui.render import changes_page, domain_page, home_page, url_page

MOST_CHANGES = 200  # in the file of changes
CHANGES_OF_DOMAIN = 5  # on a domain's, and on the first page twice as many
MOST_PAGES = 200  # of one domain that get a file: those that changed last, those to worry about, those that fail


@dataclass(frozen=True, slots=True)
class Written:
    """What was written. index: the file to begin with."""

    index: Path
    files: int


async def write_pages(db: Database, wanted: Sequence[Domain], folder: Path, *, at: datetime) -> Written:
    """Write the pages of these domains to a folder. Raises CrawlerError where that cannot be written."""
    cards = [card for domain in wanted if (card := await summarize_domain(db, domain, at=at)) is not None]
    found = [await examine_domain(db, card) for card in cards]
    items = {facts.domain.id: await newest_changes(db, at=at, most=MOST_CHANGES, only=facts.domain) for facts in found}
    pages = {facts.domain.id: _pages_of(facts, items[facts.domain.id]) for facts in found}
    links = Addresses(frozenset(url for urls in pages.values() for url in urls))
    _make(folder)
    async with open_parsers(db.settings) as readers:
        for facts in found:
            own = items[facts.domain.id]
            name = links.domain(facts.domain.authority)
            _write(folder / name, domain_page(facts, own[:CHANGES_OF_DOMAIN], links=links))
            for url in pages[facts.domain.id]:
                known = await url_facts(db, facts.domain, url, VersionsQuery(), readers=readers, at=at)
                _write(folder / links.page(url), url_page(known, links=links))
    every = sorted((item for own in items.values() for item in own), key=lambda item: item.place, reverse=True)
    changes = ChangeFacts(at=at, asked=ChangesAsked(), names=(), items=tuple(every[:MOST_CHANGES]), more="")
    _write(folder / links.changes(), changes_page(changes, links=links))
    home = HomeFacts(at=at, cards=tuple(facts.card for facts in found), count=len(found), more="")
    index = _write(folder / links.home(), home_page(home, every[: 2 * CHANGES_OF_DOMAIN], links=links))
    return Written(index=index, files=2 + len(found) + sum(map(len, pages.values())))


def _pages_of(facts: DomainFacts, items: Iterable[FeedItem]) -> list[Url]:
    """The pages of a domain that get a file."""
    urls = [item.url for item in items]
    urls += [worry.page.url for worry in facts.worries]
    urls += [page.url for group in facts.groups for page in group.pages]
    return list(dict.fromkeys(urls))[:MOST_PAGES]


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CrawlerError(f"{folder} cannot be made: {error.strerror}") from error


def _write(file: Path, text: str) -> Path:
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise CrawlerError(f"{file} cannot be written: {error.strerror}") from error
    return file
