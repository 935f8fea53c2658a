"""The verbs for programs without asyncio: each waits for what App does, in a thread of its own."""

from collections.abc import AsyncGenerator, Collection, Generator
from contextlib import suppress
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from crawler.app.crawl import CrawlResult
from crawler.app.python_api.app import EVERY_KIND, USUAL_SETTINGS, WEEK, App
from crawler.core.domain import Domain
from crawler.core.domain_settings import DomainSettings
from crawler.export import SearchHit
from crawler.store.report import DomainReport, EventKind, FeedItem, PageVersion, TakenPage, VersionContent

if TYPE_CHECKING:
    from anyio.from_thread import BlockingPortal

T = TypeVar("T")


class BlockingApp:
    """recrawl, open, with verbs that wait. They are those of App, and mean the same; several threads may use it."""

    def __init__(self, app: App, portal: "BlockingPortal") -> None:
        self._app, self._portal = app, portal

    def add(
        self, *names: str, settings: DomainSettings = USUAL_SETTINGS, offline: bool = False, at: datetime | None = None
    ) -> list[Domain]:
        """Register what each name or URL names; see App.add."""
        return self._portal.call(partial(self._app.add, *names, settings=settings, offline=offline, at=at))

    def domains(self) -> list[Domain]:
        """All that are registered."""
        return self._portal.call(self._app.domains)

    def crawl(
        self,
        *names: str,
        pages: int | None = None,
        time_limit: timedelta | None = None,
        at: datetime | None = None,
    ) -> CrawlResult:
        """Look at what is due until nothing is due any more; see App.crawl."""
        return self._portal.call(partial(self._app.crawl, *names, pages=pages, time_limit=time_limit, at=at))

    def refresh(self, what: str, *, at: datetime | None = None) -> int:
        """Make a page, or all pages beneath a URL, due at once; gives how many there are."""
        return self._portal.call(partial(self._app.refresh, what, at=at))

    def changes(
        self,
        what: str | None = None,
        *,
        after: int = 0,
        since: datetime | None = None,
        kinds: Collection[EventKind] = EVERY_KIND,
        follow: bool = False,
    ) -> Generator[FeedItem]:
        """What changed, in the order of the feed; see App.changes."""
        return self._each(self._app.changes(what, after=after, since=since, kinds=kinds, follow=follow))

    def cursor(self) -> int:
        """Where the feed ends now."""
        return self._portal.call(self._app.cursor)

    def pages(self, domain: str, *, bodies: bool = False) -> Generator[TakenPage]:
        """The pages of a domain that are there, each with its newest text."""
        return self._each(self._app.pages(domain, bodies=bodies))

    def text(self, url: str, *, version: int | None = None, at: datetime | None = None) -> VersionContent | None:
        """What a page said; see App.text."""
        return self._portal.call(partial(self._app.text, url, version=version, at=at))

    def versions(self, url: str) -> Generator[PageVersion]:
        """The versions of a page, the newest first."""
        return self._each(self._app.versions(url))

    def freshness(
        self, domain: str | None = None, *, window: timedelta = WEEK, at: datetime | None = None
    ) -> list[DomainReport]:
        """How fresh a domain is, or all of them; see App.freshness."""
        return self._portal.call(partial(self._app.freshness, domain, window=window, at=at))

    def search(self, words: str, *, domain: str | None = None, most: int = 10) -> list[SearchHit]:
        """The parts of pages that say these words, the best first; see App.search."""
        return self._portal.call(partial(self._app.search, words, domain=domain, most=most))

    def _each(self, items: AsyncGenerator[T]) -> Generator[T]:
        """One item after the other; what is held for the next one is let go when nobody wants it any more."""
        try:
            while True:
                try:
                    yield self._portal.call(items.__anext__)
                except StopAsyncIteration:
                    return
        finally:
            with suppress(RuntimeError):  # the app was closed before, and with it whatever was held
                self._portal.call(items.aclose)
