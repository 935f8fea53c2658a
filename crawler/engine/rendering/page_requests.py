"""Handle the requests of pages in the browser: send them under the lease, respond from a cache, or block them."""

from collections import Counter
from collections.abc import Collection
from dataclasses import replace
from typing import Protocol
from urllib.parse import urlsplit

from crawler.core.http.response import BrowserRequest, BrowserResponse, FailureReason, Fetched, Unreached
from crawler.core.http.robots import RobotsRules
from crawler.core.http.urls import Authority, Url, get_authority, normalize_url
from crawler.errors import CrawlerError

MAX_REQUESTS = 100  # per page, beside its document
MAX_BYTES = 20_000_000  # received by these requests

# Not fetched: images, fonts and media contain neither text nor links.
_UNREAD_DESTINATIONS = frozenset({"image", "font", "audio", "video", "track", "object", "embed", "manifest", "report"})
_UNREAD_SUFFIXES = (
    *(".png", ".jpg", ".jpeg", ".gif", ".webp", ".avif", ".ico", ".svg", ".bmp", ".woff", ".woff2", ".ttf", ".otf"),
    *(".eot", ".mp3", ".mp4", ".webm", ".ogg", ".m4a", ".mov", ".wav"),
)
_CACHED_DESTINATIONS = frozenset({"script", "style", "worker", "sharedworker"})
_CACHED_SUFFIXES = (".js", ".mjs", ".css")
# Request headers that the crawler sets itself or that must not be forwarded.
_UNSENT_HEADERS = {"host", "user-agent", "accept-encoding", "cookie2", "upgrade-insecure-requests", "content-length"}
# Response headers about the connection to the server, since the browser itself has no such connection.
_STRIPPED_HEADERS = {"alt-svc", "clear-site-data", "content-encoding", "content-length", "nel", "report-to"}
_STRIPPED_HEADERS |= {"strict-transport-security"}


class RelaySender(Protocol):
    """A sender of pages' requests (see Requester.relay). is_own: whether a request is for the domain's own server."""

    async def relay(self, request: BrowserRequest, *, is_own: bool) -> BrowserResponse | Unreached | None: ...


class PageRequests:
    """The handler of the requests of one tab, one page at a time.

    own_authorities: the domain's authorities; requests to them are paced. Other hosts must have public addresses.
    cache: scripts and styles that earlier pages of the lease have fetched.
    agent: the crawler's name in robots.txt.
    """

    def __init__(
        self, sender: RelaySender, *, own_authorities: Collection[Authority], agent: str, cache: "ScriptCache"
    ) -> None:
        self._sender, self._own_authorities, self._agent, self._cache = sender, frozenset(own_authorities), agent, cache
        self._url = Url("")
        self._document: Fetched | None = None
        self._rules: RobotsRules | None = None
        self.requests = 0
        self.received_bytes = 0
        self.refused: Counter[str] = Counter()
        self.missing_responses = 0  # requests to the domain's server that got no response, a 429 or a 5xx

    def begin_page(self, url: Url, document: Fetched, rules: RobotsRules) -> None:
        """Start handling the requests of this page. document: the response that was just fetched."""
        self._url, self._document, self._rules = url, document, rules
        self.requests = self.received_bytes = self.missing_responses = 0
        self.refused = Counter()

    async def handle_request(self, request: BrowserRequest) -> BrowserResponse:
        """Return the response to one request."""
        url = normalize_url(request.url)
        if url is None:
            return self._refuse("not_http")
        if request.method == "OPTIONS":
            return _build_preflight(request)
        if request.method not in {"GET", "HEAD"}:
            return self._refuse("not_read", status=405)
        if url == self._url and self._document is not None and request.destination in {"document", ""}:
            document, self._document = self._document, None
            return BrowserResponse(200, (("Content-Type", document.content_type or "text/html"),), document.body)
        is_image = not request.destination and request.get_header("accept").startswith("image/")
        if is_image or _has_destination(request, _UNREAD_DESTINATIONS, _UNREAD_SUFFIXES):
            return self._refuse("unread", status=404)
        if request.get_header("accept") == "text/event-stream":
            return self._refuse("event_stream", status=204)  # HTML, 9.2.3: 204 stops reconnecting
        cached = self._cache.get(request.url)
        if cached is not None:
            return cached
        is_own = get_authority(url) in self._own_authorities
        if is_own and self._rules is not None and not self._rules.allows(url, self._agent):
            return self._refuse("robots")
        if self.requests >= MAX_REQUESTS or self.received_bytes >= MAX_BYTES:
            return self._refuse("limit")
        return await self._relay_request(request, is_own=is_own)

    async def _relay_request(self, request: BrowserRequest, *, is_own: bool) -> BrowserResponse:
        self.requests += 1
        try:
            response = await self._sender.relay(replace(request, headers=_select_headers(request)), is_own=is_own)
        except CrawlerError:  # lease lost or store unavailable: the lease's own tasks report that
            response = None
        if response is None:
            self.requests -= 1
            return self._refuse("budget", status=503)
        self.received_bytes += response.received_bytes
        is_missing = isinstance(response, Unreached) or response.status == 429 or response.status >= 500
        self.missing_responses += is_own and is_missing
        if isinstance(response, Unreached):
            return self._refuse("address" if response.reason is FailureReason.ADDRESS else "unreached", status=502)
        headers = tuple((name, value) for name, value in response.headers if name.lower() not in _STRIPPED_HEADERS)
        passed_on = BrowserResponse(response.status, headers, response.body)
        is_complete = request.method == "GET" and response.status == 200
        if is_complete and _has_destination(request, _CACHED_DESTINATIONS, _CACHED_SUFFIXES):
            self._cache.put(request.url, passed_on)
        return passed_on

    def _refuse(self, reason: str, *, status: int = 403) -> BrowserResponse:
        self.refused[reason] += 1
        return BrowserResponse(status)


class ScriptCache:
    """A cache of scripts and styles by URL, up to `max_bytes` in total; nothing is evicted."""

    def __init__(self, max_bytes: int = 32 << 20) -> None:
        self._responses: dict[Url, BrowserResponse] = {}
        self._bytes_left = max_bytes

    def get(self, url: Url) -> BrowserResponse | None:
        return self._responses.get(url)

    def put(self, url: Url, response: BrowserResponse) -> None:
        if url not in self._responses and len(response.body) <= self._bytes_left:
            self._responses[url] = response
            self._bytes_left -= len(response.body)


def _has_destination(request: BrowserRequest, destinations: Collection[str], suffixes: tuple[str, ...]) -> bool:
    """Return whether a request has one of these destinations or, if the browser sends none, one of these suffixes."""
    if request.destination:  # browsers send a destination only to secure origins (Fetch Metadata)
        return request.destination in destinations
    return urlsplit(request.url).path.lower().endswith(suffixes)


def _select_headers(request: BrowserRequest) -> tuple[tuple[str, str], ...]:
    sent = ((name, value) for name, value in request.headers if name not in _UNSENT_HEADERS)
    return tuple((name, value) for name, value in sent if not name.startswith(("proxy-", "sec-ch-")))


def _build_preflight(request: BrowserRequest) -> BrowserResponse:
    """Build the response to a CORS preflight request (Fetch Standard 3.3), which is not sent to the server."""
    headers = (
        ("Access-Control-Allow-Origin", request.get_header("origin") or "*"),
        ("Access-Control-Allow-Methods", "GET, HEAD"),
        ("Access-Control-Allow-Headers", request.get_header("access-control-request-headers") or "*"),
        ("Access-Control-Allow-Credentials", "true"),
        ("Access-Control-Max-Age", "600"),
    )
    return BrowserResponse(204, headers)
