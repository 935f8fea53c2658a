"""A month of a living site: every version and every difference agrees with what the site served."""

from collections import defaultdict
from datetime import datetime, timedelta

import pytest

from crawler.core.change.word_diff import PageDiff
from crawler.core.domain import Domain
from crawler.core.http.response import Fetched
from crawler.core.http.urls import Url
from crawler.core.page.selectors import FULL_VIEW
from crawler.core.page_rules import PageRules
from crawler.core.visit.state import State
from crawler.engine.page_diff import diff_versions
from crawler.engine.parsing.parser_pool import DomainParser, ParserPool
from crawler.store import domains, report
from crawler.store.database import Database
from crawler.store.report import VersionContent
from labs.demo.site import Ask, make_site, reply
from tests.engine.crawls import DAY, QUICK, START, answered, answering, crawl, register, rows
from tests.patience import SLOW

DAYS, PAGES = 22, 80
NO_LISTS = QUICK.model_copy(update={"probe_sitemaps": False})
ALL = 1_000_000  # blocks around a change: the whole page


class Served:
    """A site as it was served day by day: each body by path and day number."""

    def __init__(self) -> None:
        self.site = make_site(31, pages=PAGES, start=START, days=DAYS + 2)
        self.day = self.requests = 0
        self.bodies: defaultdict[tuple[str, int], list[bytes]] = defaultdict(list)

    @property
    def at(self) -> datetime:
        return START + self.day * DAY

    def respond(self, target: str) -> bytes:
        self.requests += 1
        said = reply(self.site, Ask(target.partition("?")[0]), self.at, self.requests)
        if said.status == 200:
            self.bodies[target, self.day].append(said.body)
            return answered(200, said.body)
        location = next((value for name, value in said.headers if name == "Location"), None)
        head = f"Location: {location}\r\n" if location else ""
        return f"HTTP/1.1 {said.status} X\r\n{head}Content-Length: {len(said.body)}\r\n\r\n".encode() + said.body


def day_of(at: datetime) -> int:
    return (at - START) // DAY


async def blocks_of(parser: DomainParser, version: VersionContent) -> list[str]:
    """Return the texts of all blocks of a version."""
    assert version.body is not None
    kind = version.version.content_type
    answer = Fetched(200, version.body, len(version.body), timedelta(0), content_type=kind)
    return [block.text for block in await parser.parse_blocks(answer, version.url, view=FULL_VIEW) or () if block.text]


def sides(found: PageDiff) -> tuple[list[str], list[str]]:
    """Return the old and the new blocks of a page according to a difference."""
    every = [block for hunk in found.hunks for block in hunk.blocks]
    was = sorted((block.was_at, block.old_text) for block in every if block.was_at is not None)
    now = sorted((block.is_at, block.new_text) for block in every if block.is_at is not None)
    return [text for _, text in was], [text for _, text in now]


async def every_version(db: Database, domain: Domain, url: Url) -> list[VersionContent]:
    found = [
        await report.read_version(db, domain, url, number=version.number)
        for version in reversed(await report.list_versions(db, domain, url))
    ]
    return [version for version in found if version is not None]


@pytest.mark.soak
@SLOW
async def test_every_version_of_a_month_and_every_difference_is_what_the_site_served(db: Database) -> None:
    served = Served()
    async with answering(served.respond) as site:
        domain = await register(db, site, exclude=("/-/",), max_depth=6, max_pages=120, render="never")
        for served.day in range(DAYS):
            await domains.request_refresh(db, domain, prefix=domain.root, at=served.at)
            await crawl(db, at=served.at, settings=NO_LISTS)
    urls = [Url(row[0]) for row in await rows(db, "SELECT url FROM page WHERE version > 0 ORDER BY url")]

    versions = differences = 0
    kept: dict[Url, list[VersionContent]] = {}
    async with ParserPool(1) as readers:
        parser = DomainParser(readers, PageRules(domain.settings.rules))
        for url in urls:
            path = "/" + url.removeprefix(domain.root)
            kept[url] = await every_version(db, domain, url)
            for version in kept[url]:
                assert version.body in served.bodies[path, day_of(version.version.at)], (url, version.version.number)
                versions += 1
            for before, after in zip(kept[url], kept[url][1:], strict=False):
                found = await diff_versions(db, domain, before, after, parsers=readers, context=ALL)
                assert bool(found) == (await blocks_of(parser, before) != await blocks_of(parser, after))
                if found:
                    assert sides(found) == (await blocks_of(parser, before), await blocks_of(parser, after))
                    differences += 1
    assert len(urls) > PAGES
    assert versions > 2 * len(urls)
    assert differences > len(urls)

    for day in range(0, DAYS, 5):
        at = START + day * DAY + DAY / 2
        then = await report.list_pages_at(db, domain, at=at)
        assert {page.url for page in then} == {url for url in urls if kept[url][0].version.at <= at}
        for page in then:
            newest = [version for version in kept[page.url] if version.version.at <= at][-1]
            assert (page.version, page.version_at) == (newest.version.number, newest.version.at)
            path = "/" + page.url.removeprefix(domain.root)
            if page.state is State.GONE:
                assert not served.bodies[path, day]
