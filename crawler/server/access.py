"""Login links, session authentication and CSRF protection of the web UI; the key is a file in RECRAWL_HOME.

Whoever has no name logs in with a login link, and may do everything. Users have sessions in the database.

A login link works once and is exchanged for a session cookie. Pages of other sites can make the user's browser send
requests to this server, so it checks the Host and Origin headers, and every form carries its session's CSRF token.
"""

import hmac
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from crawler.app.running import serving
from crawler.app.running.serving import FEED_PATH, INVITATION_PATH, LOGIN_PATH, LOGIN_PURPOSE, PROOF_PATH, Signer
from crawler.errors import CrawlerError
from crawler.server.api import is_api_path
from crawler.server.identity import Identity

CODE_LIFETIME = timedelta(hours=12)  # a login link expires after this
SESSION_LIFETIME = timedelta(days=30)
LOGIN_FORM_PATH = "/login"
STYLE_PATH = "/style.css"
# Paths that need no session. A feed checks its own token.
OPEN_PATHS = (LOGIN_PATH, LOGIN_FORM_PATH, INVITATION_PATH, STYLE_PATH, FEED_PATH)
MAX_ENDED_SESSIONS = 10_000  # that are remembered
NO_STORE = {"cache-control": "no-store"}

# Only the style sheet and images of this server are loaded: texts of crawled pages can never run as scripts.
POLICY = b"default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; "
HEADERS = (
    (b"content-security-policy", POLICY + b"frame-ancestors 'none'"),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    # With no-referrer, browsers would send forms with "Origin: null", like those of a foreign page.
    (b"referrer-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
)


class Authenticator:
    """Checks login codes, sessions and CSRF tokens.

    addresses: the origins of the server.  started_at: the start of the server; older login codes are rejected, since
    a previous server may have accepted them.  port: the listening port; None for the one in the first address.
    """

    def __init__(self, key: str, *, addresses: tuple[str, ...], started_at: datetime, port: int | None = None) -> None:
        self._signer = Signer(key)
        milliseconds = started_at.microsecond // 1000  # the precision of a login code
        self._started_at = started_at.replace(microsecond=milliseconds * 1000)
        self.addresses = addresses
        self._hosts = {address.partition("://")[2] for address in addresses}
        self._used_codes: set[str] = set()
        self._ended: dict[str, None] = {}
        self._port = port if port is not None else int(addresses[0].rpartition(":")[2])
        # Browsers store cookies by host name without port: two servers on one machine need different names.
        self.cookie = f"recrawl_{self._port}"

    def exchange_code(self, code: str, *, at: datetime) -> str | None:
        """Exchange a login code for a session; return None if the code is invalid, expired or already used."""
        created_at = self._signer.read_token_time(LOGIN_PURPOSE, code)
        earliest = max(self._started_at, at - CODE_LIFETIME)
        if created_at is None or created_at < earliest or code in self._used_codes:
            return None
        self._used_codes.add(code)
        return self._signer.create_token("session", at)

    def is_valid_session(self, session: str, *, at: datetime) -> bool:
        """Return whether a session of a login link is valid and not expired."""
        created_at = self._signer.read_token_time("session", session)
        return created_at is not None and at - created_at <= SESSION_LIFETIME and session not in self._ended

    def end_session(self, session: str) -> None:
        """End a session of a login link, until this server ends."""
        self._ended[session] = None
        if len(self._ended) > MAX_ENDED_SESSIONS:
            del self._ended[next(iter(self._ended))]

    def compute_csrf_token(self, session: str) -> str:
        """Return the CSRF token of a session, which its forms carry."""
        return self._signer.compute_mac("form", session)

    def is_valid_csrf_token(self, session: str, token: str) -> bool:
        """Return whether the token is the CSRF token of the session."""
        return hmac.compare_digest(self.compute_csrf_token(session).encode(), token.encode())

    def compute_proof(self, nonce: str) -> str:
        """Return the proof that this server knows the key; a command checks it before it opens a login link here."""
        return serving.compute_proof(self._signer.key, port=self._port, nonce=nonce[: serving.MAX_NONCE_CHARS])

    def find_refusal(self, scope: Scope) -> str:
        """Return why a request must be rejected (a foreign Host or Origin header); empty if it is allowed."""
        headers = Headers(scope=scope)
        if [value.lower() for value in headers.getlist("host")] not in [[host] for host in self._hosts]:
            return f"unknown Host header: this server is {self.addresses[0]}; RECRAWL_WEB_ORIGINS adds other addresses"
        origins = headers.getlist("origin")
        # The API accepts only tokens, which no page of another site can make a browser send.
        needs_origin = scope["method"] not in {"GET", "HEAD"} and not is_api_path(scope["path"])
        if not set(origins) <= set(self.addresses) or (needs_origin and len(origins) != 1):
            return "requests from pages of other sites are not allowed"
        return ""


def require_authentication(
    app: ASGIApp,
    authenticator: Authenticator,
    *,
    identify: Callable[[Scope], Awaitable[Identity | None]],
    unauthenticated_app: ASGIApp,
) -> ASGIApp:
    """Return the application with authentication; every response has the security headers of this module.

    app: finds the sender in scope["identity"], and the session, or an empty string, in scope["session"].
    identify: returns who sends a request; None if it is unknown.
    unauthenticated_app: handles requests that need a session and have none; scope["problem"] is an error of `identify`.
    """

    async def check_request(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await app(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], *HEADERS]
            await send(message)

        refusal = authenticator.find_refusal(scope)
        if refusal:
            await PlainTextResponse(refusal, 403, NO_STORE)(scope, receive, send_with_headers)
            return
        if scope["path"].startswith(f"{PROOF_PATH}/"):
            proof = authenticator.compute_proof(scope["path"].removeprefix(f"{PROOF_PATH}/"))
            await PlainTextResponse(proof, headers=NO_STORE)(scope, receive, send_with_headers)
            return
        # The API accepts tokens, which no browser sends automatically, and never a session.
        is_public = is_api_path(scope["path"]) or scope["path"] == STYLE_PATH
        try:
            identity = None if is_public else await identify(scope)
        except CrawlerError as error:
            await unauthenticated_app({**scope, "problem": error}, receive, send_with_headers)
            return
        scope["identity"], scope["session"] = identity, identity.session if identity is not None else ""
        is_open = identity is not None or is_public or scope["path"] in OPEN_PATHS
        await (app if is_open else unauthenticated_app)(scope, receive, send_with_headers)

    return check_request


def read_cookie(scope: Scope, name: str) -> str:
    """Return the value of a cookie, or an empty string."""
    pairs = ";".join(Headers(scope=scope).getlist("cookie")).split(";")
    cookies = (pair.strip().partition("=") for pair in pairs)
    return next((value for key, _, value in cookies if key == name), "")
