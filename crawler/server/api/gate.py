"""What each request passes before it is read: token, scope, rate, size, idempotency key, concurrency and time limit."""

import asyncio
import logging
import sqlite3
import time
from collections.abc import Awaitable, Callable
from contextlib import nullcontext
from dataclasses import dataclass, field
from hashlib import sha256
from math import ceil
from typing import Any

from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from crawler.app.actor import PERMISSIONS_OF_SCOPES, Actor, ActorKind, Permission, acting_as
from crawler.app.running.tokens import ApiToken, KeptResponse, KeptResponses, TokenScope, find_token
from crawler.errors import CrawlerError
from crawler.server.api.endpoints import Api
from crawler.server.api.table import Endpoint
from crawler.server.identity import ProxyTrust

MAX_CONCURRENT = 2  # requests at once, and as many slow ones; the other database connections are for the web UI
DEADLINE_S, SLOW_DEADLINE_S = 30.0, 120.0  # time limits of one response
SLOT_PATIENCE_S = 10  # the wait for another request to end
MAX_QUERY_BYTES = 16 << 10
MAX_BODY_BYTES = 1 << 20
MAX_KEY_CHARS = 255
PER_SECOND, BURST = 20.0, 40.0  # requests with one token; all requests without a valid token share one limit
KEY_HEADER = "Idempotency-Key"
NO_STORE = {"cache-control": "no-store"}
TRY_AGAIN = {"retry-after": "5"}

log = logging.getLogger("recrawl.api")

Handle = Callable[[Request], Awaitable[Response]]


@dataclass(slots=True)
class RateLimit:
    """A token bucket per name. per_second: the refill rate.  burst: the capacity.  now: returns monotonic seconds."""

    per_second: float = PER_SECOND
    burst: float = BURST
    now: Callable[[], float] = time.monotonic
    _remaining: dict[str, tuple[float, float]] = field(default_factory=dict)  # tokens, and when they were counted

    def count_request(self, name: str) -> float:
        """Count a request. Return 0 if it is allowed, or the seconds to wait."""
        at = self.now()
        left, then = self._remaining.get(name, (self.burst, at))
        left = min(self.burst, left + (at - then) * self.per_second)
        self._remaining[name] = (left - 1 if left >= 1 else left, at)
        return max(1 - left, 0) / self.per_second


class Gate:
    """The checks and limits of all requests. Errors are HTTPExceptions."""

    def __init__(self, api: Api) -> None:
        self._api, self._kept, self._trust = api, KeptResponses(api.home), ProxyTrust(api.db)
        self._rate = RateLimit()
        self._slots = {is_slow: asyncio.Semaphore(MAX_CONCURRENT) for is_slow in (False, True)}
        self._writing = asyncio.Lock()  # a change writes back what it has read, so changes take turns
        self._running_keys: set[tuple[str, str]] = set()

    async def handle(self, request: Request, endpoint: Endpoint, route: APIRoute, handle: Handle) -> Response:
        """Check a request, and return the response of `handle`, or the kept one of its idempotency key."""
        token = await self._check_token(request, endpoint)
        _check_query(request, route)
        body = b""
        if route.body_field is not None:
            body = await _read_body(request)
            request = Request(request.scope, _replay_body(body))
        permissions = frozenset[Permission]().union(*(PERMISSIONS_OF_SCOPES[scope] for scope in token.scopes))
        actor = Actor(ActorKind.TOKEN, token.name, self._trust.find_address(request.scope), permissions)
        with acting_as(actor):
            return await self._run_once(request, endpoint, handle, token=token, body=body)

    async def _run_once(
        self, request: Request, endpoint: Endpoint, handle: Handle, *, token: ApiToken, body: bytes
    ) -> Response:
        """Return the response of `handle`, or the kept one of the request's idempotency key."""
        key = request.headers.get(KEY_HEADER) if endpoint.is_kept else None
        if key is None:
            return await self._run(request, endpoint, handle)
        if not 0 < len(key) <= MAX_KEY_CHARS or not key.isprintable():
            raise HTTPException(400, f"{KEY_HEADER} is not a text of 1 to {MAX_KEY_CHARS} printable characters")
        digest = sha256(f"{request.url.path}?{request.url.query}\n".encode() + body).hexdigest()
        running = (token.digest, key)
        if running in self._running_keys:
            raise HTTPException(409, f"a request with this {KEY_HEADER} is still running", TRY_AGAIN)
        self._running_keys.add(running)
        try:
            try:
                kept = await asyncio.to_thread(self._kept.find, *running, at=self._api.now())
            except sqlite3.Error as error:
                log.exception("api.kept_responses_unreadable")
                raise HTTPException(503, "the kept responses cannot be read; the log says why") from error
            if kept is not None:
                return _replay_response(kept, digest)
            response = await self._run(request, endpoint, handle)  # an error has no effect, so only successes are kept
            made = KeptResponse(
                digest, response.status_code, response.headers.get("location", ""), bytes(response.body)
            )
            try:
                await asyncio.to_thread(self._kept.keep, *running, made, at=self._api.now())
            except sqlite3.Error:  # the change is made, so its response must be sent
                log.exception("api.response_not_kept")
            return response
        finally:
            self._running_keys.discard(running)

    async def _check_token(self, request: Request, endpoint: Endpoint) -> ApiToken:
        scheme, _, secret = request.headers.get("authorization", "").partition(" ")
        token = None
        if scheme.lower() == "bearer" and secret.strip():
            token = await asyncio.to_thread(find_token, self._api.home, secret.strip(), at=self._api.now())
        if wait := self._rate.count_request(token.name if token is not None else ""):
            raise HTTPException(429, "too many requests", {"retry-after": str(ceil(wait))})
        if token is None:
            headers = {"www-authenticate": 'Bearer realm="recrawl"'}
            raise HTTPException(401, "send a bearer token; create one with recrawl tokens add NAME", headers)
        if endpoint.scope not in token.scopes:
            challenge = f'Bearer realm="recrawl", error="insufficient_scope", scope="{endpoint.scope}"'
            detail = f"the token {token.name} lacks the scope {endpoint.scope}: recrawl tokens add NAME --scope SCOPES"
            raise HTTPException(403, detail, {"www-authenticate": challenge})
        return token

    async def _run(self, request: Request, endpoint: Endpoint, handle: Handle) -> Response:
        """Return the response of `handle` within the limits of concurrency and time."""
        is_change = endpoint.method != "GET" and endpoint.scope is TokenScope.ADMIN and not endpoint.is_slow
        slots, deadline = self._slots[endpoint.is_slow], SLOW_DEADLINE_S if endpoint.is_slow else DEADLINE_S
        try:
            async with asyncio.timeout(SLOT_PATIENCE_S):
                await slots.acquire()
        except TimeoutError as error:
            raise HTTPException(503, "too many requests run at once: try again later", TRY_AGAIN) from error
        try:
            async with asyncio.timeout(deadline), self._writing if is_change else nullcontext():
                return await handle(request)
        except TimeoutError as error:
            raise HTTPException(503, f"the response took longer than {deadline:.0f} s") from error
        except (HTTPException, CrawlerError, RequestValidationError):
            raise
        except Exception as error:
            log.exception("api.failed", extra={"path": endpoint.path})
            raise HTTPException(500, "an unexpected error occurred; the log has the details") from error
        finally:
            slots.release()


def _check_query(request: Request, route: APIRoute) -> None:
    if len(request.scope["query_string"]) > MAX_QUERY_BYTES:
        raise HTTPException(400, f"the query is longer than {MAX_QUERY_BYTES} bytes")
    allowed = {each.alias for each in route.dependant.query_params}
    unknown = sorted(set(request.query_params) - allowed)
    if unknown:
        names = ", ".join(sorted(allowed)) or "none"
        raise HTTPException(400, f"{unknown[0][:40]} is not a parameter of this path; its parameters: {names}")


async def _read_body(request: Request) -> bytes:
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise HTTPException(415, "the body must be JSON: send Content-Type: application/json")
    body = bytearray()
    try:
        async for part in request.stream():
            body += part
            if len(body) > MAX_BODY_BYTES:
                raise HTTPException(413, f"the body is larger than {MAX_BODY_BYTES} bytes")
    except ClientDisconnect as error:
        raise HTTPException(400, "the body is incomplete") from error
    return bytes(body)


def _replay_body(body: bytes) -> Callable[[], Awaitable[dict[str, Any]]]:
    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    return receive


def _replay_response(kept: KeptResponse, digest: str) -> Response:
    """Return the first response to a request. Raise HTTPException if the key was used for another request."""
    if kept.request != digest:
        raise HTTPException(422, f"this {KEY_HEADER} was used for another request: use a new one")
    headers = {**NO_STORE, "idempotency-replayed": "true"} | ({"location": kept.location} if kept.location else {})
    return Response(kept.body, kept.status, headers, "application/json" if kept.body else None)
