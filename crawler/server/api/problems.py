"""What is wrong with a request, as a problem document (RFC 9457)."""

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from fastapi import HTTPException, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException as AnyHTTPException

from crawler.errors import BadInput, CrawlerError, CursorTooOld, StoreUnavailable
from crawler.json_lines import json_text

NO_STORE = {"cache-control": "no-store"}
MEDIA_TYPE = "application/problem+json"
STATUS = {BadInput: 400, CursorTooOld: 410, StoreUnavailable: 503}
_DESCRIPTIONS: dict[int | str, str] = {
    400: "A parameter cannot be used; also a cursor beyond the end of the feed, which is of another database.",
    401: "The request shows no token, or none that is valid.",
    404: "There is no such thing.",
    410: "Changes after that cursor are not kept any more: read all pages again.",
    429: "Too many requests; Retry-After says in how many seconds to try again.",
    503: "The database does not answer, too many requests run at once, or the search index is still being made.",
    "default": "Any other error.",
}
_CONTENT = {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}
RESPONSES: dict[int | str, dict[str, Any]] = {
    status: {"description": text, "content": _CONTENT} for status, text in _DESCRIPTIONS.items()
}


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong with a request (RFC 9457)."""

    type: str
    title: str
    status: int
    detail: str


async def answer_http_error(_request: Request, error: AnyHTTPException) -> Response:
    problem = Problem("about:blank", HTTPStatus(error.status_code).phrase, error.status_code, error.detail)
    headers = {**NO_STORE, **(error.headers or {})}
    return Response(json_text(problem), error.status_code, headers, MEDIA_TYPE)


async def answer_crawler_error(request: Request, error: CrawlerError) -> Response:
    status = next((status for kind, status in STATUS.items() if isinstance(error, kind)), 500)
    return await answer_http_error(request, HTTPException(status, str(error)))


async def answer_bad_parameter(request: Request, error: RequestValidationError) -> Response:
    """Name the first parameter that cannot be used, and say why."""
    first = error.errors()[0]
    name, given = first["loc"][1], str(first["input"])[:40]
    reason = first.get("ctx", {}).get("error") or f"{first['msg']}, not {given!r}"
    detail = f"{name} is missing" if first["type"] == "missing" else f"{name}: {reason}"
    return await answer_http_error(request, HTTPException(400, detail))


HANDLERS: dict[int | type[Exception], Callable[[Request, Any], Coroutine[Any, Any, Response]]] = {
    AnyHTTPException: answer_http_error,
    CrawlerError: answer_crawler_error,
    RequestValidationError: answer_bad_parameter,
}
