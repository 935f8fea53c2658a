"""Who may see the pages: the user, by a key that stands in a file of RECRAWL_HOME, from pages of the server's own.

An address with a code lets in once and is exchanged for a cookie. A page of any site could have the user's browser ask
this server, so every request names its own address, and every form carries a word that only its session has.
"""

import hmac
from collections.abc import Callable
from datetime import datetime, timedelta

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from crawler.app.running.serving import (
    FEED_PATH,
    LOGIN_PATH,
    LOGIN_PURPOSE,
    MAX_NONCE_CHARS,
    PROOF_PATH,
    Signer,
    compute_proof,
)
from crawler.server.api import is_api_path

CODE_LIFETIME = timedelta(hours=12)  # an address that was printed and not used
SESSION_LIFETIME = timedelta(days=30)
OPEN_PATHS = (
    LOGIN_PATH,
    "/style.css",
    FEED_PATH,
)  # what somebody who has not entered may ask for; a feed wants its token
SAFE_METHODS = ("GET", "HEAD")
NO_STORE = {"cache-control": "no-store"}

# Nothing but a style sheet and pictures of our own: texts of strangers' pages cannot become anything that runs.
POLICY = (
    "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = (
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    # With no-referrer browsers would send forms with "Origin: null", which is what a stranger's would have.
    (b"referrer-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
)


class Authenticator:
    """Knows who has entered.

    addresses: of the server, as browsers write an origin.  started_at: when it began to serve.
    port: on which it listens; None for the one in its first address.

    A code that was made before that is refused, since a former server may have seen it.
    """

    def __init__(self, key: str, *, addresses: tuple[str, ...], started_at: datetime, port: int | None = None) -> None:
        self._signer = Signer(key)
        self._started_at = started_at.replace(microsecond=started_at.microsecond // 1000 * 1000)  # as exact as a code
        self.addresses = addresses
        self._hosts = {address.partition("://")[2] for address in addresses}
        self._used_codes: set[str] = set()
        self._port = port if port is not None else int(addresses[0].rpartition(":")[2])
        # Browsers keep cookies by name of host alone: two servers of one machine must not overwrite each other's.
        self.cookie = f"recrawl_{self._port}"

    def exchange_code(self, code: str, *, at: datetime) -> str | None:
        """The session that a code is exchanged for; None if it is none, is too old, or was used."""
        created_at = self._signer.read_token_time(LOGIN_PURPOSE, code)
        if (
            created_at is None
            or code in self._used_codes
            or created_at < self._started_at
            or at - created_at > CODE_LIFETIME
        ):
            return None
        self._used_codes.add(code)
        return self._signer.create_token("session", at)

    def is_valid_session(self, session: str, *, at: datetime) -> bool:
        """Whether that is a session of somebody who has entered."""
        created_at = self._signer.read_token_time("session", session)
        return created_at is not None and at - created_at <= SESSION_LIFETIME

    def compute_csrf_token(self, session: str) -> str:
        """What every form of a session carries."""
        return self._signer.compute_mac("form", session)

    def is_valid_csrf_token(self, session: str, word: str) -> bool:
        """Whether a form was made by this server for this session."""
        return hmac.compare_digest(self.compute_csrf_token(session).encode(), word.encode())

    def compute_proof(self, nonce: str) -> str:
        """What only a server that knows the key can say, to a command that is about to send somebody here."""
        return compute_proof(self._signer.key, port=self._port, nonce=nonce[:MAX_NONCE_CHARS])

    def find_refusal(self, scope: Scope) -> str:
        """Why a request is not from a page of this server, or not for this server; empty if it may be answered."""
        headers = Headers(scope=scope)
        if [value.lower() for value in headers.getlist("host")] not in [[host] for host in self._hosts]:
            return f"this is {self.addresses[0]}"
        origins = headers.getlist("origin")
        if not set(origins) <= set(self.addresses) or (scope["method"] not in SAFE_METHODS and len(origins) != 1):
            return "only its own pages may ask"
        return ""


def require_authentication(
    app: ASGIApp, authenticator: Authenticator, *, now: Callable[[], datetime], unauthenticated_app: ASGIApp
) -> ASGIApp:
    """The application behind the doorkeeper; every answer has the headers of this module.

    scope["session"]: of who has entered, else an empty string.  unauthenticated_app: answers who has not.
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
        session = _read_cookie(scope, authenticator.cookie)
        scope["session"] = session if authenticator.is_valid_session(session, at=now()) else ""
        # The API lets in by tokens, which no browser shows by itself, and never by a session.
        is_open = bool(scope["session"]) or scope["path"] in OPEN_PATHS or is_api_path(scope["path"])
        await (app if is_open else unauthenticated_app)(scope, receive, send_with_headers)

    return check_request


def _read_cookie(scope: Scope, name: str) -> str:
    for header in Headers(scope=scope).getlist("cookie"):
        for pair in header.split(";"):
            key, _, value = pair.strip().partition("=")
            if key == name:
                return value
    return ""
