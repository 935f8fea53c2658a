"""What the browser's pages may ask for, and the asking: each request is one of the lease's, or is refused."""

from collections import Counter
from collections.abc import Collection
from dataclasses import replace
from typing import Protocol
from urllib.parse import urlsplit

from crawler.core.http.response import Fetched, Reason, Relay, Relayed, Unreached
from crawler.core.http.robots import RobotsRules
from crawler.core.http.urls import Authority, Url, authority_of, normalise
from crawler.errors import CrawlerError

MOST_REQUESTS = 100  # of one page, beside its document
MOST_BYTES = 20_000_000  # that they bring
MEMO_BYTES = 32 << 20  # of scripts and styles that are kept for the next page

# What nobody reads: pictures, fonts and the like are neither text nor links.
_UNREAD = frozenset({"image", "font", "audio", "video", "track", "object", "embed", "manifest", "report"})
_UNREAD_ENDS = (
    *(".png", ".jpg", ".jpeg", ".gif", ".webp", ".avif", ".ico", ".svg", ".bmp", ".woff", ".woff2", ".ttf", ".otf"),
    *(".eot", ".mp3", ".mp4", ".webm", ".ogg", ".m4a", ".mov", ".wav"),
)
_KEPT = frozenset({"script", "style", "worker", "sharedworker"})
_KEPT_ENDS = (".js", ".mjs", ".css")
# Between the browser and us only, or of a client that is not the browser.
_NOT_SENT = frozenset(
    {"host", "user-agent", "accept-encoding", "cookie2", "upgrade-insecure-requests", "content-length"}
)
# What would bind the browser to a server that it never meets.
_NOT_TOLD = frozenset(("alt-svc", "clear-site-data", "content-encoding", "content-length", "nel", "report-to")) | {
    "strict-transport-security"
}
_EVENTS = "text/event-stream"


class AskForPage(Protocol):
    """Sends a request that a page makes; None where the budget has none left, or the lease is ending."""

    async def relay(self, request: Relay, *, is_own: bool) -> Relayed | Unreached | None: ...


class PageRequests:
    """Answers the requests of one tab's pages, one page at a time.

    own: authorities whose server the lease paces; of others none may be private.  memo: scripts and styles that pages
    of the lease have had, so that a site's program is asked for once.  agent: as robots.txt names us.
    """

    def __init__(self, ask: AskForPage, *, own: Collection[Authority], agent: str, memo: "ScriptMemo") -> None:
        self._ask, self._own, self._agent, self._memo = ask, frozenset(own), agent, memo
        self._url = Url("")
        self._document: Fetched | None = None
        self._rules: RobotsRules | None = None
        self.requests = 0
        self.received_bytes = 0
        self.refused: Counter[str] = Counter()
        self.missing = 0  # answers of the domain's own server that did not come, or say that it has failed

    def begin(self, url: Url, document: Fetched, rules: RobotsRules) -> None:
        """Requests are those of this page from now on. document: what its server said a moment ago."""
        self._url, self._document, self._rules = url, document, rules
        self.requests = self.received_bytes = self.missing = 0
        self.refused = Counter()

    async def answer(self, request: Relay) -> Relayed:
        """The answer to one request."""
        url = normalise(request.url)
        if url is None:
            return self._refuse("not_http")
        if request.method == "OPTIONS":
            return _preflight(request)
        if request.method not in {"GET", "HEAD"}:
            return self._refuse("not_read", status=405)
        if url == self._url and self._document is not None and request.destination in {"document", ""}:
            document, self._document = self._document, None
            return Relayed(200, (("Content-Type", document.content_type or "text/html"),), document.body)
        is_image = not request.destination and request.header("accept").startswith("image/")
        if is_image or _is_for(request, _UNREAD, _UNREAD_ENDS):
            return self._refuse("unread", status=404)
        if request.header("accept") == _EVENTS:
            return self._refuse("event_stream", status=204)  # HTML, 9.2.3: it is not asked for again
        kept = self._memo.get(request.url)
        if kept is not None:
            return kept
        is_own = authority_of(url) in self._own
        if is_own and self._rules is not None and not self._rules.allows(url, self._agent):
            return self._refuse("robots")
        if self.requests >= MOST_REQUESTS or self.received_bytes >= MOST_BYTES:
            return self._refuse("limit")
        return await self._asked(request, is_own=is_own)

    async def _asked(self, request: Relay, *, is_own: bool) -> Relayed:
        self.requests += 1
        try:
            answer = await self._ask.relay(replace(request, headers=_sent(request)), is_own=is_own)
        except CrawlerError:  # the lease is lost, or the store is silent: whoever keeps the lease finds that, too
            answer = None
        if answer is None:
            self.requests -= 1
            return self._refuse("budget", status=503)
        self.received_bytes += answer.received_bytes
        self.missing += is_own and (isinstance(answer, Unreached) or answer.status == 429 or answer.status >= 500)
        if isinstance(answer, Unreached):
            return self._refuse("address" if answer.reason is Reason.ADDRESS else "unreached", status=502)
        headers = tuple((name, value) for name, value in answer.headers if name.lower() not in _NOT_TOLD)
        made = Relayed(answer.status, headers, answer.body)
        if request.method == "GET" and answer.status == 200 and _is_for(request, _KEPT, _KEPT_ENDS):
            self._memo.put(request.url, made)
        return made

    def _refuse(self, what: str, *, status: int = 403) -> Relayed:
        self.refused[what] += 1
        return Relayed(status)


class ScriptMemo:
    """Scripts and styles by their URLs, up to so many bytes in all; nothing is let go of for another."""

    def __init__(self, most_bytes: int = MEMO_BYTES) -> None:
        self._kept: dict[Url, Relayed] = {}
        self._left = most_bytes

    def get(self, url: Url) -> Relayed | None:
        return self._kept.get(url)

    def put(self, url: Url, answer: Relayed) -> None:
        if url not in self._kept and len(answer.body) <= self._left:
            self._kept[url] = answer
            self._left -= len(answer.body)


def _is_for(request: Relay, destinations: Collection[str], ends: tuple[str, ...]) -> bool:
    """Return whether a request is for one of these; where the browser does not say, the end of its path tells."""
    if request.destination:  # only secure origins are told (Fetch Metadata)
        return request.destination in destinations
    return urlsplit(request.url).path.lower().endswith(ends)


def _sent(request: Relay) -> tuple[tuple[str, str], ...]:
    return tuple(
        (name, value)
        for name, value in request.headers
        if name not in _NOT_SENT and not name.startswith(("proxy-", "sec-ch-"))
    )


def _preflight(request: Relay) -> Relayed:
    """What a server says that lets its answers be read (CORS, Fetch Standard 3.3): it is asked all the same."""
    return Relayed(
        204,
        (
            ("Access-Control-Allow-Origin", request.header("origin") or "*"),
            ("Access-Control-Allow-Methods", "GET, HEAD"),
            ("Access-Control-Allow-Headers", request.header("access-control-request-headers") or "*"),
            ("Access-Control-Allow-Credentials", "true"),
            ("Access-Control-Max-Age", "600"),
        ),
    )
