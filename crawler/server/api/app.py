"""The FastAPI application: routes, authentication, limits, problem documents and the OpenAPI description."""

import asyncio
import json
import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import wraps
from http import HTTPStatus
from math import ceil
from typing import Annotated, Any

from fastapi import Depends, FastAPI, HTTPException, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from pydantic import TypeAdapter
from starlette.exceptions import HTTPException as AnyHTTPException

from crawler import __version__
from crawler.app.running.tokens import find_token
from crawler.errors import BadInput, CrawlerError, CursorTooOld, StoreUnavailable
from crawler.json_lines import format_json
from crawler.server.api.endpoints import Api

ROOT = "/api/v1"
OPENAPI = f"{ROOT}/openapi.json"
MAX_CONCURRENT = 2  # requests at once; the other database connections are for the web UI
DEADLINE_S = 30.0  # time limit of one response
MAX_QUERY_BYTES = 16 << 10
PER_SECOND, BURST = 20.0, 40.0  # requests with one token; all requests without a valid token share one limit
BEARER = HTTPBearer(auto_error=False, scheme_name="token", description="Create a token with recrawl tokens add NAME.")

log = logging.getLogger("recrawl.api")

NO_STORE = {"cache-control": "no-store"}
MEDIA_TYPE = "application/problem+json"
STATUS = {BadInput: 400, CursorTooOld: 410, StoreUnavailable: 503}
_DESCRIPTIONS: dict[int | str, str] = {
    400: "A parameter is invalid, or the cursor belongs to another database.",
    401: "The bearer token is missing or invalid.",
    404: "The requested item does not exist.",
    410: "Changes after this cursor are no longer stored: read all pages again.",
    429: "Too many requests; Retry-After is the number of seconds to wait.",
    503: "The database is not available, the response took too long, too many requests run at once, or the search "
    "index is still being built.",
    "default": "Any other error.",
}
_CONTENT = {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}
RESPONSES: dict[int | str, dict[str, Any]] = {
    status: {"description": text, "content": _CONTENT} for status, text in _DESCRIPTIONS.items()
}
Handler = Callable[..., Awaitable[Response]]


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem document (RFC 9457)."""

    type: str
    title: str
    status: int
    detail: str


async def handle_http_error(_request: Request, error: AnyHTTPException) -> Response:
    problem = Problem("about:blank", HTTPStatus(error.status_code).phrase, error.status_code, error.detail)
    headers = {**NO_STORE, **(error.headers or {})}
    return Response(format_json(problem), error.status_code, headers, MEDIA_TYPE)


async def handle_crawler_error(request: Request, error: CrawlerError) -> Response:
    status = next((status for kind, status in STATUS.items() if isinstance(error, kind)), 500)
    return await handle_http_error(request, HTTPException(status, str(error)))


async def handle_bad_parameter(request: Request, error: RequestValidationError) -> Response:
    """Report the first invalid parameter and the reason."""
    first = error.errors()[0]
    name, value = first["loc"][1], str(first["input"])[:40]
    reason = first.get("ctx", {}).get("error") or f"{first['msg']}, not {value!r}"
    detail = f"{name} is missing" if first["type"] == "missing" else f"{name}: {reason}"
    return await handle_http_error(request, HTTPException(400, detail))


def make_app(api: Api) -> FastAPI:
    """Return the application for the paths below /api."""
    app = FastAPI(
        title="recrawl",
        version=__version__,
        description="Read-only access to the domains, pages, versions and changes that recrawl stores.",
        openapi_url=None,  # served below, with the address of the server
        docs_url=None,  # FastAPI's pages load scripts from other sites
        redoc_url=None,
        redirect_slashes=False,
        dependencies=[Depends(_build_token_check(api)), Depends(_reject_unknown_parameters)],
        responses=RESPONSES,
        exception_handlers={
            AnyHTTPException: handle_http_error,
            CrawlerError: handle_crawler_error,
            RequestValidationError: handle_bad_parameter,
        },
        generate_unique_id_function=lambda route: route.name,
    )
    slots = asyncio.Semaphore(MAX_CONCURRENT)
    for verb in (api.domains, api.changes, api.pages, api.text, api.versions, api.freshness, api.search):
        app.add_api_route(f"{ROOT}/{verb.__name__}", _limit_endpoint(verb, slots))

    async def serve_openapi(request: Request) -> Response:
        servers = [{"url": f"{request.url.scheme}://{request.url.netloc}"}]
        return _respond_json(build_openapi_document(app) | {"servers": servers})

    async def reject_unknown_path(request: Request) -> Response:
        raise HTTPException(404, f"there is no {request.url.path}: see {OPENAPI} for all paths")

    app.add_route(OPENAPI, serve_openapi)
    app.add_route("/api/{rest:path}", reject_unknown_path)
    return app


def build_openapi_document(app: FastAPI) -> dict[str, Any]:
    """Return the OpenAPI document for the output of `format_json`: durations in seconds, all fields required."""

    def adapt_schema(node: dict[str, Any]) -> dict[str, Any]:
        if node.get("format") == "duration":
            return {**node, "type": "number", "format": "double", "description": "seconds"}
        has_fields = node.get("type") == "object" and "properties" in node
        return node | {"required": list(node["properties"])} if has_fields else node

    document: dict[str, Any] = json.loads(json.dumps(app.openapi()), object_hook=adapt_schema)
    document["components"]["schemas"]["Problem"] = TypeAdapter(Problem).json_schema()
    return document


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


def _build_token_check(api: Api) -> Callable[..., Awaitable[None]]:
    rate = RateLimit()

    async def check_token(authorization: Annotated[HTTPAuthorizationCredentials | None, Depends(BEARER)]) -> None:
        """Raise HTTPException for a request without a valid token, or above the rate limit."""
        token = None
        if authorization is not None:
            token = await asyncio.to_thread(find_token, api.home, authorization.credentials.strip(), at=api.now())
        if wait := rate.count_request(token.name if token is not None else ""):
            raise HTTPException(429, "too many requests", {"retry-after": str(ceil(wait))})
        if token is None:
            headers = {"www-authenticate": 'Bearer realm="recrawl"'}
            raise HTTPException(401, "send a bearer token; create one with recrawl tokens add NAME", headers)

    return check_token


async def _reject_unknown_parameters(request: Request) -> None:
    if len(request.scope["query_string"]) > MAX_QUERY_BYTES:
        raise HTTPException(400, f"the query is longer than {MAX_QUERY_BYTES} bytes")
    allowed = {each.alias for each in request.scope["route"].dependant.query_params}
    unknown = sorted(set(request.query_params) - allowed)
    if unknown:
        names = ", ".join(sorted(allowed)) or "none"
        raise HTTPException(400, f"{unknown[0][:40]} is not a parameter of this path; its parameters: {names}")


def _limit_endpoint(endpoint: Callable[..., Awaitable[object]], slots: asyncio.Semaphore) -> Handler:
    """Return the endpoint with limits on its concurrency and time, and with a JSON response."""

    @wraps(endpoint)
    async def limited(**arguments: Any) -> Response:
        try:
            async with asyncio.timeout(10):  # wait for another request to end
                await slots.acquire()
        except TimeoutError as error:
            raise HTTPException(503, "too many requests run at once: try again later", {"retry-after": "5"}) from error
        try:
            async with asyncio.timeout(DEADLINE_S):
                return _respond_json(await endpoint(**arguments))
        except TimeoutError as error:
            raise HTTPException(503, f"the response took longer than {DEADLINE_S:.0f} s") from error
        except (HTTPException, CrawlerError):
            raise
        except Exception as error:
            log.exception("api.failed", extra={"path": f"{ROOT}/{endpoint.__name__}"})
            raise HTTPException(500, "an unexpected error occurred; the log has the details") from error
        finally:
            slots.release()

    return limited


def _respond_json(document: object) -> Response:
    return Response(format_json(document), headers=NO_STORE, media_type="application/json")
