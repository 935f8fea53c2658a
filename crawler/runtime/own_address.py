"""Who may ask the Prefect server at all: pages of its own, and programs that mean it, by its own address.

A page of any site could otherwise have the user's browser ask it, under a name that leads to this machine.
"""

import hmac
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from crawler.runtime.watch import HEADERS, PAGE, is_watch_path

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Message, Receive, Send], Awaitable[None]]

NAMES = ("127.0.0.1", "localhost")
HTTP_PORT = 80
PROOF_PATH = "/recrawl/proof"
LONGEST_NONCE = 64
POLICY_VIOLATION = 1008  # RFC 6455; before a connection is accepted, it becomes a 403


def own_hosts(port: int) -> tuple[str, ...]:
    """By which names the server may be called in a request's Host."""
    return tuple(name if port == HTTP_PORT else f"{name}:{port}" for name in NAMES)


def own_origins(port: int) -> tuple[str, ...]:
    """Whose pages may ask: those that the server itself has served."""
    return tuple(f"http://{host}" for host in own_hosts(port))


def proof_of(auth: str, *, port: int, nonce: str) -> str:
    """What only a server that knows the auth string can say. port: its own, so that none can pass on another's."""
    return hmac.digest(auth.encode(), f"{port}/{nonce}".encode(), "sha256").hex()


def own_address_only(app: App, *, port: int, auth: str) -> App:
    """The application behind a check of Host and Origin; who asks is given the proof that it knows the auth string.

    The way to a run (watch.py) is shown to anybody: it holds nothing.
    """
    hosts = {host.encode() for host in own_hosts(port)}
    origins = {origin.encode() for origin in own_origins(port)}

    async def checked(scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] not in {"http", "websocket"}:
            await app(scope, receive, send)
        elif [value.lower() for value in values(scope, b"host")] not in [[host] for host in hosts]:
            await refuse(scope, send, f"this is {own_origins(port)[0]}")
        elif not set(values(scope, b"origin")) <= origins:
            await refuse(scope, send, "only its own pages may ask")
        elif scope["type"] == "http" and scope["path"].startswith(f"{PROOF_PATH}/"):
            nonce = scope["path"].removeprefix(f"{PROOF_PATH}/")[:LONGEST_NONCE]
            await answer(send, 200, proof_of(auth, port=port, nonce=nonce))
        elif scope["type"] == "http" and scope["method"] == "GET" and is_watch_path(scope["path"]):
            await send({"type": "http.response.start", "status": 200, "headers": list(HEADERS)})
            await send({"type": "http.response.body", "body": PAGE.encode()})
        else:
            await app(scope, receive, send)

    return checked


def values(scope: Message, name: bytes) -> list[bytes]:
    return [value for key, value in scope["headers"] if key == name]


async def refuse(scope: Message, send: Send, why: str) -> None:
    if scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": POLICY_VIOLATION, "reason": why})
    else:
        await answer(send, 403, why)


async def answer(send: Send, status: int, text: str) -> None:
    headers = [(b"content-type", b"text/plain; charset=utf-8")]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": text.encode()})
