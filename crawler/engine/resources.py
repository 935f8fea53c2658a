"""The resources of a crawling process: HTTP clients, sessions, a browser, parser processes, prefetched responses."""

import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager

from msgspec import Struct, field

from crawler.core.domain import NO_CERTIFICATES, Domain
from crawler.core.http.credentials import Cookies, SecretReference
from crawler.core.http.response import Fetched
from crawler.core.http.urls import Url
from crawler.engine.parsing.parser_pool import ParserPool, choose_parser_count
from crawler.engine.rendering.browsers import BrowserSource
from crawler.engine.requests import session as sessions
from crawler.engine.requests.session import DomainSession, FindSecret, read_environment_secret
from crawler.fetch import Http, Proxy, build_ssl_context
from crawler.plugins import load_plugins
from crawler.settings import Settings


class CrawlResources(Struct, eq=False):
    """The HTTP clients (one may connect to private addresses, one never does), parsers and browser of a process.

    prefetched: responses fetched when domains were registered, for the first visits of their pages.  settings,
    find_secret: used to open sessions of special domains, which have credentials, cookies, a proxy or TLS settings.
    """

    public_client: Http
    private_client: Http
    parsers: ParserPool
    browsers: BrowserSource
    settings: Settings
    stack: AsyncExitStack
    prefetched: dict[Url, Fetched] = field(default_factory=dict)
    find_secret: FindSecret = read_environment_secret
    _sessions: dict[int, tuple[Domain, DomainSession]] = field(default_factory=dict)

    def choose_client(self, domain: Domain) -> Http:
        """Return the shared client for the domain. With a proxy or TLS settings, its requests need a separate one."""
        return self.private_client if domain.settings.allow_private else self.public_client

    async def open_session(self, domain: Domain) -> DomainSession | str:
        """Return a session for the domain. That of a special domain is reused while settings and secrets stay the same.

        If a secret or certificate is missing, return the reason for a suspension instead: no request may be sent.
        """
        if not domain.settings.is_special:
            return DomainSession(domain, self.choose_client(domain), secrets={}, cookies=None)
        cached = self._sessions.get(domain.id)
        secrets = await sessions.find_secrets(domain.settings.credentials.references, self.find_secret)
        if isinstance(secrets, str):
            return secrets
        if cached is not None and cached[0].settings == domain.settings and cached[1].secrets == secrets:
            return cached[1]
        try:
            client = await self._open_client(domain, secrets)
        except OSError:  # includes ssl.SSLError
            return f"{NO_CERTIFICATES} {domain.settings.ca_file}"
        cookies = _create_cookies() if domain.settings.cookies or domain.settings.login else None
        session = DomainSession(domain, client, secrets=secrets, cookies=cookies)
        self._sessions[domain.id] = (domain, session)
        return session

    async def _open_client(self, domain: Domain, secrets: Mapping[SecretReference, str]) -> Http:
        """Open a separate client if the domain has a proxy or its own TLS settings; else return the shared one."""
        domain_settings = domain.settings
        ssl_context = build_ssl_context(ca_file=domain_settings.ca_file, insecure=domain_settings.insecure_tls)
        if ssl_context is None and not domain_settings.proxy:
            return self.choose_client(domain)
        client = _build_client(
            self.settings,
            allow_private=domain_settings.allow_private,
            connections=64,  # it serves only this domain
            ssl_context=ssl_context,
            proxy=_build_proxy(domain, secrets),
        )
        return await self.stack.enter_async_context(client)


def _create_cookies() -> Cookies:
    from crawler.fetch.cookies import DomainCookies  # noqa: PLC0415  its parts of the standard library are slow

    return DomainCookies()


def _build_proxy(domain: Domain, secrets: Mapping[SecretReference, str]) -> Proxy | None:
    reference = domain.settings.credentials.proxy
    if reference is None:
        return None
    user, password = ("" if each is None else secrets[each] for each in (reference.user, reference.password))
    return Proxy(host=reference.host, port=reference.port, user=user, password=password)


@asynccontextmanager
async def open_resources(
    settings: Settings,
    *,
    connections: int = 512,
    prefetched: Mapping[Url, Fetched] | None = None,
    find_secret: FindSecret = read_environment_secret,
) -> AsyncIterator[CrawlResources]:
    """Open the resources until the block ends.

    connections: the maximum of each shared client, over all domains.  find_secret: looks up the secrets of domains.
    Raise PluginBroken before anything is opened.
    """
    plugins = load_plugins(settings.plugins)
    parser_count = choose_parser_count() if settings.parser_processes is None else settings.parser_processes
    async with (
        _build_client(settings, allow_private=False, connections=connections) as public,
        _build_client(settings, allow_private=True, connections=connections) as private,
        ParserPool(parser_count, plugins=plugins) as parsers,
        AsyncExitStack() as stack,
    ):
        timeout, user_agent = settings.render_timeout, settings.user_agent_header
        browsers = BrowserSource(browser_name=settings.browser, user_agent=user_agent, timeout=timeout)
        stack.push_async_callback(browsers.close)
        yield CrawlResources(public, private, parsers, browsers, settings, stack, dict(prefetched or {}), find_secret)


def _build_client(
    settings: Settings,
    *,
    allow_private: bool,
    connections: int,
    ssl_context: ssl.SSLContext | None = None,
    proxy: Proxy | None = None,
) -> Http:
    return Http(
        user_agent=settings.user_agent_header,
        allow_private=allow_private,
        max_body_bytes=settings.max_body_bytes,
        connections=connections,
        ssl_context=ssl_context,
        proxy=proxy,
    )
