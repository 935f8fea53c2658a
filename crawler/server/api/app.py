"""The FastAPI application: its routes, problem documents and OpenAPI description."""

import json
import re
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from functools import cache, wraps
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.parse import quote

from fastapi import FastAPI, HTTPException, Request, Response
from fastapi.datastructures import Default
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import TypeAdapter
from starlette.exceptions import HTTPException as AnyHTTPException
from starlette.routing import Match

from crawler import __version__
from crawler.errors import (
    BadInput,
    Conflict,
    CrawlerError,
    CursorTooOld,
    NotAllowed,
    NotFound,
    NotStored,
    StoreUnavailable,
)
from crawler.json_lines import format_json
from crawler.server.api.gate import KEY_HEADER, NO_STORE, Gate
from crawler.server.api.table import ENDPOINTS, Endpoint
from crawler.server.api.writing import Accepted, WritingApi

ROOT = "/api/v1"
OPENAPI = f"{ROOT}/openapi.json"
EXAMPLES = Path(__file__).with_name("examples.json")  # recorded by tests/server/api/test_every_endpoint.py
WRITING_METHODS = ("POST", "PATCH")  # those with a body

MEDIA_TYPE = "application/problem+json"
STATUS = {
    NotAllowed: 403,
    NotFound: 404,
    NotStored: 404,
    Conflict: 409,
    BadInput: 400,
    CursorTooOld: 410,
    StoreUnavailable: 503,
}  # the first that fits
_DESCRIPTIONS: dict[int | str, str] = {
    400: "A parameter is invalid, the body is not JSON, or the cursor belongs to another database.",
    401: "The bearer token is missing or invalid.",
    403: "The token lacks the scope of this operation.",
    404: "The requested item does not exist.",
    409: "The request does not fit the current state, or a request with the same idempotency key is still running.",
    410: "Changes after this cursor are no longer stored: read all pages again.",
    413: "The body is too large.",
    415: "The body is not application/json.",
    422: "A field of the body is invalid, or the idempotency key was used for another request.",
    429: "Too many requests; Retry-After is the number of seconds to wait.",
    503: "The database is not available, the response took too long, too many requests run at once, or the search "
    "index is still being built.",
    "default": "Any other error.",
}
_CONTENT = {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}
RESPONSES = {str(status): {"description": text, "content": _CONTENT} for status, text in _DESCRIPTIONS.items()}
OF_BODIES = {"413", "415", "422"}
KEPT = {each.operation for each in ENDPOINTS if each.is_kept}
LONG = {"remove_domain"}  # they return Accepted if they take long
ACCEPTED = {"202": {"description": "It takes longer and continues. Location says where to see whether it is done."}}
IDEMPOTENCY_KEY = {
    "name": KEY_HEADER,
    "in": "header",
    "required": False,
    "schema": {"type": "string", "minLength": 1, "maxLength": 255},
    "description": "A unique text, such as a UUID. A repeated request with the same key gets the first response again.",
}
SCHEME = {
    "type": "http",
    "scheme": "bearer",
    "description": "Create a token with recrawl tokens add NAME --scope SCOPES.",
}
DESCRIPTION = "Reads and changes the domains, pages, versions, changes and notifications that recrawl stores."


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem document (RFC 9457). field: the parameter, or the field of the body with dots; null if unknown."""

    type: str
    title: str
    status: int
    detail: str
    field: str | None


def build_problem(status: int, detail: str, *, field: str = "", headers: dict[str, str] | None = None) -> Response:
    problem = Problem("about:blank", HTTPStatus(status).phrase, status, detail, field or None)
    return Response(format_json(problem), status, {**NO_STORE, **(headers or {})}, MEDIA_TYPE)


async def handle_http_error(_request: Request, error: AnyHTTPException) -> Response:
    return build_problem(error.status_code, error.detail, headers=dict(error.headers or {}))


async def handle_crawler_error(request: Request, error: CrawlerError) -> Response:
    status = next((status for kind, status in STATUS.items() if isinstance(error, kind)), 500)
    field = error.field if isinstance(error, BadInput) else ""
    if status == 400 and request.method in WRITING_METHODS:
        status = 422
    return build_problem(status, f"{field}: {error}" if field else str(error), field=field)


async def handle_bad_parameter(_request: Request, error: RequestValidationError) -> Response:
    """Report the first invalid parameter or field, and the reason."""
    first = error.errors()[0]
    place, value = first["loc"], str(first["input"])[:40]
    if first["type"] == "json_invalid":
        return build_problem(400, f"the body is not JSON: {first['ctx']['error']} at character {place[1]}")
    name = ".".join(map(str, place[1:])) or "the body"
    reason = str(first.get("ctx", {}).get("error") or f"{first['msg']}, not {value!r}")
    detail = f"{name} is missing" if first["type"] == "missing" else f"{name}: {reason}"
    return build_problem(422 if place[0] == "body" else 400, detail, field=".".join(map(str, place[1:])))


def make_app(api: WritingApi) -> FastAPI:
    """Return the application for the paths below /api."""
    app = FastAPI(
        title="recrawl",
        version=__version__,
        description=DESCRIPTION,
        openapi_url=None,  # served below, with the address of the server
        docs_url=None,  # FastAPI's pages load scripts from other sites
        redoc_url=None,
        redirect_slashes=False,
        exception_handlers={
            AnyHTTPException: handle_http_error,
            CrawlerError: handle_crawler_error,
            RequestValidationError: handle_bad_parameter,
        },
        generate_unique_id_function=lambda route: route.name,
    )
    gate = Gate(api)
    for endpoint in ENDPOINTS:
        app.router.add_api_route(
            f"{ROOT}{endpoint.path}",
            _respond_json(getattr(api, endpoint.operation), endpoint),
            methods=[endpoint.method],
            status_code=endpoint.status,
            responses={"default": {}},  # without it, FastAPI adds its own
            openapi_extra={"security": [{"token": [endpoint.scope.value]}]},
            route_class_override=_build_route_class(gate, endpoint),
            response_model=None if endpoint.status == HTTPStatus.NO_CONTENT else Default(None),
        )

    build_document = cache(lambda: build_openapi_document(app))

    async def serve_openapi(request: Request) -> Response:
        servers = [{"url": f"{request.url.scheme}://{request.url.netloc}"}]
        return Response(format_json(build_document() | {"servers": servers}), 200, NO_STORE, "application/json")

    async def reject_unknown_path(request: Request) -> Response:
        routes = [route for route in app.routes if route.matches(request.scope)[0] is Match.PARTIAL]
        methods = sorted({method for route in routes for method in getattr(route, "methods", None) or ()})
        if methods:
            raise HTTPException(405, headers={"allow": ", ".join(methods)})
        raise HTTPException(404, f"there is no {request.url.path}: see {OPENAPI} for all paths")

    app.add_route(OPENAPI, serve_openapi)
    app.add_route("/api/{rest:path}", reject_unknown_path, methods=["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
    return app


def _build_route_class(gate: Gate, endpoint: Endpoint) -> type[APIRoute]:
    """Return a class of routes whose requests pass the gate before FastAPI reads them."""

    class GatedRoute(APIRoute):
        def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
            handle = super().get_route_handler()

            async def handle_request(request: Request) -> Response:
                return await gate.handle(request, endpoint, self, handle)

            return handle_request

    return GatedRoute


def _respond_json(
    operation: Callable[..., Awaitable[object]], endpoint: Endpoint
) -> Callable[..., Awaitable[Response]]:
    """Return the operation with a JSON response, and with the Location of what it created."""

    @wraps(operation)
    async def respond(**arguments: Any) -> Response:
        document, headers = await operation(**arguments), dict(NO_STORE)
        if endpoint.location:
            location = re.sub(r"{(\w+)}", lambda each: quote(str(getattr(document, each[1])), ":"), endpoint.location)
            headers["location"] = f"{ROOT}{location}"
        if isinstance(document, Accepted):
            return Response(None, 202, headers | {"location": f"{ROOT}{quote(document.location)}"})
        if document is None:
            return Response(None, endpoint.status, headers)
        return Response(format_json(document), endpoint.status, headers, "application/json")

    return respond


def build_openapi_document(app: FastAPI) -> dict[str, Any]:
    """Return the OpenAPI document for the output of `format_json`: spans in seconds, all returned fields required."""

    def adapt_schema(node: dict[str, Any]) -> dict[str, Any]:
        if node.get("format") == "duration":
            return {**node, "type": "number", "format": "double", "description": "seconds"}
        # Bodies of requests allow no other fields; they may omit some.
        is_returned = node.get("type") == "object" and "properties" in node and "additionalProperties" not in node
        return node | {"required": list(node["properties"])} if is_returned else node

    text = re.sub(r"\bItems_(\w+)_\b", r"\1List", json.dumps(app.openapi()))
    document: dict[str, Any] = json.loads(text, object_hook=adapt_schema)
    for name, schema in document["components"]["schemas"].items():
        schema["title"] = name  # some generators name their classes by titles, which must be unique
    examples: dict[str, dict[str, Any]] = json.loads(EXAMPLES.read_bytes())
    for path in document["paths"].values():
        for method, operation in path.items():
            (status, success), *_ = operation["responses"].items()
            _add_examples(operation, success, examples.get(operation["operationId"], {}))
            statuses = [each for each in RESPONSES if method in {"post", "patch"} or each not in OF_BODIES]
            errors = {each: {"$ref": f"#/components/responses/{each}"} for each in statuses}
            operation["responses"] = {
                status: success,
                **(ACCEPTED if operation["operationId"] in LONG else {}),
                **errors,
            }
            if operation["operationId"] in KEPT:
                operation.setdefault("parameters", []).append(IDEMPOTENCY_KEY)
    document["components"]["schemas"]["Problem"] = TypeAdapter(Problem).json_schema()
    document["components"]["responses"] = RESPONSES
    document["components"]["securitySchemes"] = {"token": SCHEME}
    return document


def _add_examples(operation: dict[str, Any], success: dict[str, Any], example: dict[str, Any]) -> None:
    """Add the examples of one call: its parameters, its body and its successful response."""
    for parameter in operation.get("parameters", ()):
        if parameter["name"] in example.get("parameters", {}):
            parameter["example"] = example["parameters"][parameter["name"]]
    if "body" in example:
        operation["requestBody"]["content"]["application/json"]["example"] = example["body"]
    if "response" in example:
        success["content"]["application/json"]["example"] = example["response"]
