"""The resources of a crawling process: HTTP clients, sessions, a browser, parser processes, and answers had before."""

import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from crawler.core.domain import Domain
from crawler.core.http.credentials import Reference
from crawler.core.http.response import Fetched
from crawler.core.http.urls import Url
from crawler.engine.parsing.parser_pool import ParserPool, readers_wanted
from crawler.engine.rendering.browsers import BrowserSource
from crawler.engine.requests.session import NO_CERTIFICATES, DomainSession, FindSecret, find_secrets, from_environment
from crawler.plugins import load
from crawler.settings import Settings

if TYPE_CHECKING:  # aiohttp has 8 MB, and whoever shows pages asks no web
    from crawler.fetch import Http, Proxy

OF_ONE_DOMAIN = 64  # connections of a client that asks one domain alone


@dataclass(slots=True, eq=False)
class CrawlResources:
    """The HTTP clients of a process, one that may ask private addresses and one that never does; readers, browser.

    answered: what pages said a moment ago, when their domains were registered; each counts as the page's first look.
    settings, find_secret, stack: for domains that are asked in another way than others; their clients are closed with
    the stack.
    """

    public: "Http"
    private: "Http"
    parsers: ParserPool
    browsers: BrowserSource
    settings: Settings
    stack: AsyncExitStack
    answered: dict[Url, Fetched] = field(default_factory=dict)
    find_secret: FindSecret = from_environment
    _sessions: dict[int, tuple[Domain, DomainSession]] = field(default_factory=dict)

    def of(self, domain: Domain) -> "Http":
        """The client for a domain that is asked as all are, and for the addresses of every one."""
        return self.private if domain.settings.allow_private else self.public

    async def session_of(self, domain: Domain) -> DomainSession | str:
        """What the domain is shown, and by which client it is asked: one session as long as its settings stay.

        Or why there is none, as the reason of a hold: then nothing may be sent.
        """
        if not domain.settings.is_special:
            return DomainSession(domain, self.of(domain), secrets={}, cookies=None)
        kept = self._sessions.get(domain.id)
        secrets = await find_secrets(domain.settings.credentials.references, self.find_secret)
        if isinstance(secrets, str):
            return secrets
        if kept is not None and kept[0].settings == domain.settings and kept[1].secrets == secrets:
            return kept[1]
        try:
            web = await self._client_of(domain, secrets)
        except OSError:  # of the file; ssl.SSLError is one
            return f"{NO_CERTIFICATES} {domain.settings.ca_file}"
        from crawler.fetch import DomainCookies  # noqa: PLC0415

        keeps_cookies = domain.settings.cookies or bool(domain.settings.login)
        session = DomainSession(domain, web, secrets=secrets, cookies=DomainCookies() if keeps_cookies else None)
        self._sessions[domain.id] = (domain, session)
        return session

    async def _client_of(self, domain: Domain, secrets: Mapping[Reference, str]) -> "Http":
        """A client of the domain's own where its proxy or whose certificates it believes differ from others'."""
        from crawler.fetch import trust_of  # noqa: PLC0415

        wished = domain.settings
        trust = trust_of(ca_file=wished.ca_file, insecure=wished.insecure_tls)
        if trust is None and not wished.proxy:
            return self.of(domain)
        client = _http(
            self.settings,
            allow_private=wished.allow_private,
            connections=OF_ONE_DOMAIN,
            trust=trust,
            proxy=_proxy_of(domain, secrets),
        )
        return await self.stack.enter_async_context(client)


def _proxy_of(domain: Domain, secrets: Mapping[Reference, str]) -> "Proxy | None":
    said = domain.settings.credentials.proxy
    if said is None:
        return None
    from crawler.fetch import Proxy  # noqa: PLC0415

    user, password = ("" if each is None else secrets[each] for each in (said.user, said.password))
    return Proxy(host=said.host, port=said.port, user=user, password=password)


@asynccontextmanager
async def open_resources(
    settings: Settings,
    *,
    connections: int = 512,
    answered: Mapping[Url, Fetched] | None = None,
    find_secret: FindSecret = from_environment,
) -> AsyncIterator[CrawlResources]:
    """Both clients, open until the block ends. connections: over all domains; each domain's parallelism is less.

    find_secret: where secrets are that domains name.  Raises PluginBroken before anything is opened.
    """
    plugins = load(settings.plugins)
    async with (
        _http(settings, allow_private=False, connections=connections) as public,
        _http(settings, allow_private=True, connections=connections) as private,
        ParserPool(readers_wanted() if settings.readers is None else settings.readers, plugins=plugins) as readers,
        AsyncExitStack() as stack,
    ):
        browsers = BrowserSource(
            named=settings.browser, user_agent=settings.user_agent, longest=settings.render_deadline
        )
        stack.push_async_callback(browsers.close)
        yield CrawlResources(public, private, readers, browsers, settings, stack, dict(answered or {}), find_secret)


def _http(
    settings: Settings,
    *,
    allow_private: bool,
    connections: int,
    trust: ssl.SSLContext | None = None,
    proxy: "Proxy | None" = None,
) -> "Http":
    from crawler.fetch import Http  # noqa: PLC0415

    return Http(
        user_agent=settings.user_agent,
        allow_private=allow_private,
        max_body_bytes=settings.max_body_bytes,
        connections=connections,
        trust=trust,
        proxy=proxy,
    )
