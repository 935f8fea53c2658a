"""The resources of a crawling process: two HTTP clients, a browser, the parser processes, and answers had before."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from crawler.core.domain import Domain
from crawler.core.http import Fetched, Url
from crawler.crawl.browsers import BrowserSource
from crawler.crawl.parsing import ParserPool, readers_wanted
from crawler.plugins import load
from crawler.settings import Settings
from crawler.web import Http


class CrawlResources:
    """The HTTP clients of a process, one that may ask private addresses and one that never does; readers, browser.

    answered: what pages said a moment ago, when their domains were registered; each counts as the page's first look.
    """

    def __init__(
        self,
        public: Http,
        private: Http,
        readers: ParserPool,
        browsers: BrowserSource,
        *,
        answered: Mapping[Url, Fetched] | None = None,
    ) -> None:
        self._public, self._private, self.parsers, self.browsers = public, private, readers, browsers
        self.answered = dict(answered or {})

    def of(self, domain: Domain) -> Http:
        return self._private if domain.settings.allow_private else self._public


@asynccontextmanager
async def open_resources(
    settings: Settings, *, connections: int = 512, answered: Mapping[Url, Fetched] | None = None
) -> AsyncIterator[CrawlResources]:
    """Both clients, open until the block ends. connections: over all domains; each domain's parallelism is less.

    Raises PluginBroken before anything is opened.
    """
    plugins = load(settings.plugins)
    async with (
        _http(settings, allow_private=False, connections=connections) as public,
        _http(settings, allow_private=True, connections=connections) as private,
        ParserPool(readers_wanted() if settings.readers is None else settings.readers, plugins=plugins) as readers,
    ):
        browsers = BrowserSource(
            named=settings.browser, user_agent=settings.user_agent, longest=settings.render_deadline
        )
        try:
            yield CrawlResources(public, private, readers, browsers, answered=answered)
        finally:
            await browsers.close()


def _http(settings: Settings, *, allow_private: bool, connections: int) -> Http:
    return Http(
        user_agent=settings.user_agent,
        allow_private=allow_private,
        max_body_bytes=settings.max_body_bytes,
        connections=connections,
    )
