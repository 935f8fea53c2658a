"""The API's routes: who asks is known by a token, how much is bounded, and what comes is JSON."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from math import ceil
from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from crawler.json_lines import json_text
from crawler.errors import BadInput, CrawlerError, CursorTooOld, StoreUnavailable
from crawler.runtime.keys.api_tokens import token_shown
from crawler.server.api.endpoints import ENDPOINTS, ROOT, Asked, Endpoint, ListedItems
from crawler.server.api.limits import STRANGERS, RateLimit
from crawler.server.api.openapi import document
from crawler.server.api.problems import Problem
from crawler.store.database import Database

OPENAPI = f"{ROOT}/openapi.json"
AT_ONCE = 2  # requests that ask the store; the pages have the other connections
PATIENCE_S = 10.0  # until one of those ends
DEADLINE_S = 30.0  # of one answer
MOST_QUERY = 16 << 10  # bytes
NO_STORE = {"cache-control": "no-store"}

log = logging.getLogger("recrawl.api")

Page = Callable[[Request], Awaitable[Response]]


@dataclass(slots=True)
class ReadApi:
    """What the routes are made of. home: of the tokens.  now: knowledge time.  want_index: as of Asked."""

    db: Database
    home: Path
    now: Callable[[], datetime]
    want_index: Callable[[], str]
    rate: RateLimit = field(default_factory=RateLimit)
    turn: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(AT_ONCE))


def beneath_api(path: str) -> bool:
    """Whether a request is of the API, and needs no session of the pages."""
    return path == "/api" or path.startswith("/api/")


def api_routes(db: Database, home: Path, *, now: Callable[[], datetime], want_index: Callable[[], str]) -> list[Route]:
    """The routes of the API, each of which refuses whom it does not know."""
    api = ReadApi(db=db, home=home, now=now, want_index=want_index)
    routes = [Route(each.path, _answered(api, each), methods=["GET"]) for each in ENDPOINTS]
    return [*routes, Route(OPENAPI, _described, methods=["GET"]), Route("/api/{rest:path}", _unknown)]


def _answered(api: ReadApi, endpoint: Endpoint) -> Page:
    async def answer(request: Request) -> Response:
        try:
            await _let_in(api, request)
            values = _values(endpoint, request)
            found = await _found(api, endpoint, values)
        except Problem as problem:
            return problem.response
        except BadInput as error:
            return Problem(400, str(error)).response
        except CursorTooOld as error:
            return Problem(410, str(error)).response
        except StoreUnavailable as error:
            return Problem(503, str(error)).response
        except CrawlerError as error:
            return Problem(500, str(error)).response
        except Exception:
            log.exception("api.failed", extra={"path": endpoint.path})
            return Problem(500, "something is stored that was not foreseen; the log tells what").response
        document = {"items": found.items, "next": found.next} if isinstance(found, ListedItems) else found
        return Response(json_text(document), media_type="application/json", headers=NO_STORE)

    return answer


async def _let_in(api: ReadApi, request: Request) -> None:
    """Raises Problem for whom is not known, and for who asks too much."""
    scheme, _, shown = request.headers.get("authorization", "").partition(" ")
    token = None
    if scheme.lower() == "bearer" and shown:
        token = await asyncio.to_thread(token_shown, api.home, shown.strip(), at=api.now())
    wait = api.rate.wait(token.name if token is not None else STRANGERS)
    if wait:
        raise Problem(429, "too many requests", {"retry-after": str(ceil(wait))})
    if token is None:
        raise Problem(401, "show a token: recrawl tokens add NAME", {"www-authenticate": 'Bearer realm="recrawl"'})


def _values(endpoint: Endpoint, request: Request) -> Mapping[str, Any]:
    if len(request.scope["query_string"]) > MOST_QUERY:
        raise Problem(400, f"the query is longer than {MOST_QUERY} bytes")
    known = {each.name for each in endpoint.parameters}
    unknown = sorted(set(request.query_params) - known)
    if unknown:
        raise Problem(400, f"{unknown[0][:40]} is no parameter; there are {', '.join(sorted(known)) or 'none'}")
    return {each.name: each.value_in(request.query_params) for each in endpoint.parameters}


async def _found(api: ReadApi, endpoint: Endpoint, values: Mapping[str, Any]) -> ListedItems | object:
    try:
        async with asyncio.timeout(PATIENCE_S):
            await api.turn.acquire()
    except TimeoutError as error:
        raise Problem(503, "too much is asked at once", {"retry-after": "5"}) from error
    try:
        async with asyncio.timeout(DEADLINE_S):
            return await endpoint.answer(
                Asked(db=api.db, home=api.home, at=api.now(), values=values, want_index=api.want_index)
            )
    except TimeoutError as error:
        raise Problem(503, f"it takes longer than {DEADLINE_S:.0f} s") from error
    finally:
        api.turn.release()


async def _described(request: Request) -> Response:
    server = f"{request.url.scheme}://{request.url.netloc}"
    return Response(json_text(document(server)), media_type="application/json", headers=NO_STORE)


async def _unknown(request: Request) -> Response:
    return Problem(404, f"there is no {request.url.path}: {OPENAPI} tells what there is").response
