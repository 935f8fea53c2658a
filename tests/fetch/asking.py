"""An HTTP client for tests, and helpers for its results."""

import ssl
from collections.abc import Callable, Sequence
from datetime import timedelta

from crawler.core.http.response import FailureReason, Response, Unreached
from crawler.core.http.urls import Url
from crawler.fetch import Http
from tests.patience import PATIENCE_S

AGENT = "recrawl/test (+https://example.com/about-our-crawler)"
SOON = timedelta(seconds=PATIENCE_S)  # never reached
MEGABYTE = 1024 * 1024


def http(
    *,
    allow_private: bool = True,
    max_body_bytes: int = MEGABYTE,
    connections: int = 16,
    lookup: Callable[[str], Sequence[str]] | None = None,
    trust: ssl.SSLContext | None = None,
) -> Http:
    if lookup is None:
        return Http(
            user_agent=AGENT,
            allow_private=allow_private,
            max_body_bytes=max_body_bytes,
            connections=connections,
            ssl_context=trust,
        )
    return Http(user_agent=AGENT, allow_private=allow_private, lookup=lookup, ssl_context=trust)


async def one(url: Url, **options: bool | int) -> Response:
    async with http(**options) as web:  # type: ignore[arg-type]
        return await web.fetch(url, deadline=SOON)


def reason(found: Response) -> FailureReason:
    assert isinstance(found, Unreached), found
    assert found.detail
    assert "\n" not in found.detail
    return found.reason
