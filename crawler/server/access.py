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

from crawler.app.running.serving import ENTERING, ENTRANCE, FEED, LONGEST_NONCE, PROOF_PATH, Signer, proof_of
from crawler.server.api import is_api_path

CODE_LASTS = timedelta(hours=12)  # an address that was printed and not used
SESSION_LASTS = timedelta(days=30)
OPEN_PATHS = (ENTRANCE, "/style.css", FEED)  # what somebody who has not entered may ask for; a feed wants its token
READING = ("GET", "HEAD")
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


class Doorkeeper:
    """Knows who has entered. addresses: of the server, as browsers write an origin.  opened_at: when it began to serve.
    port: on which it listens; None for the one in its first address.

    A code that was made before that is refused, since a former server may have seen it.
    """

    def __init__(self, key: str, *, addresses: tuple[str, ...], opened_at: datetime, port: int | None = None) -> None:
        self._signer = Signer(key)
        self._opened_at = opened_at.replace(microsecond=opened_at.microsecond // 1000 * 1000)  # as exact as a code
        self.addresses = addresses
        self._hosts = {address.partition("://")[2] for address in addresses}
        self._used: set[str] = set()
        self._port = port if port is not None else int(addresses[0].rpartition(":")[2])
        # Browsers keep cookies by name of host alone: two servers of one machine must not overwrite each other's.
        self.cookie = f"recrawl_{self._port}"

    def admit(self, code: str, *, at: datetime) -> str | None:
        """The session that a code is exchanged for; None if it is none, is too old, or was used."""
        made_at = self._signer.made_at(ENTERING, code)
        if made_at is None or code in self._used or made_at < self._opened_at or at - made_at > CODE_LASTS:
            return None
        self._used.add(code)
        return self._signer.signed("session", at)

    def knows(self, session: str, *, at: datetime) -> bool:
        """Whether that is a session of somebody who has entered."""
        made_at = self._signer.made_at("session", session)
        return made_at is not None and at - made_at <= SESSION_LASTS

    def form_word(self, session: str) -> str:
        """What every form of a session carries."""
        return self._signer.mac("form", session)

    def is_form_of(self, session: str, word: str) -> bool:
        """Whether a form was made by this server for this session."""
        return hmac.compare_digest(self.form_word(session).encode(), word.encode())

    def proof(self, nonce: str) -> str:
        """What only a server that knows the key can say, to a command that is about to send somebody here."""
        return proof_of(self._signer.key, port=self._port, nonce=nonce[:LONGEST_NONCE])

    def refusal(self, scope: Scope) -> str:
        """Why a request is not from a page of this server, or not for this server; empty if it may be answered."""
        headers = Headers(scope=scope)
        if [value.lower() for value in headers.getlist("host")] not in [[host] for host in self._hosts]:
            return f"this is {self.addresses[0]}"
        origins = headers.getlist("origin")
        if not set(origins) <= set(self.addresses) or (scope["method"] not in READING and len(origins) != 1):
            return "only its own pages may ask"
        return ""


def guarded(app: ASGIApp, doorkeeper: Doorkeeper, *, now: Callable[[], datetime], refuse: ASGIApp) -> ASGIApp:
    """The application behind the doorkeeper; every answer has the headers of this module.

    scope["session"]: of who has entered, else an empty string.  refuse: answers who has not.
    """

    async def checked(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await app(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], *HEADERS]
            await send(message)

        why = doorkeeper.refusal(scope)
        if why:
            await PlainTextResponse(why, 403, NO_STORE)(scope, receive, send_guarded)
            return
        if scope["path"].startswith(f"{PROOF_PATH}/"):
            proof = doorkeeper.proof(scope["path"].removeprefix(f"{PROOF_PATH}/"))
            await PlainTextResponse(proof, headers=NO_STORE)(scope, receive, send_guarded)
            return
        session = _cookie(scope, doorkeeper.cookie)
        scope["session"] = session if doorkeeper.knows(session, at=now()) else ""
        # The API lets in by tokens, which no browser shows by itself, and never by a session.
        is_open = bool(scope["session"]) or scope["path"] in OPEN_PATHS or is_api_path(scope["path"])
        await (app if is_open else refuse)(scope, receive, send_guarded)

    return checked


def _cookie(scope: Scope, name: str) -> str:
    for header in Headers(scope=scope).getlist("cookie"):
        for pair in header.split(";"):
            key, _, value = pair.strip().partition("=")
            if key == name:
                return value
    return ""
