"""The API in the application of the pages; FastAPI is imported with the first request to it."""

import gc
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from pathlib import Path
from urllib.parse import parse_qsl, urlencode

from starlette.types import ASGIApp, Receive, Scope, Send

from crawler.app.database import AppDatabase

API_PATH = "/api/{rest:path}"


def is_api_path(path: str) -> bool:
    """Return whether a request belongs to the API, and so needs a token instead of a session."""
    return path == "/api" or path.startswith("/api/")


@dataclass(frozen=True)
class ApiOnDemand:
    """An ASGI application that makes the API of these values (see Api) when it is first asked for."""

    db: AppDatabase
    home: Path
    now: Callable[[], datetime]
    request_index: Callable[[], str]

    @cached_property
    def _app(self) -> ASGIApp:
        from crawler.server.api.app import make_app  # noqa: PLC0415  10 MB, and most servers serve pages alone
        from crawler.server.api.endpoints import Api  # noqa: PLC0415

        app = make_app(Api(db=self.db, home=self.home, now=self.now, request_index=self.request_index))
        gc.freeze()  # else each of the collections between answers would go through all of FastAPI: 15 ms
        return app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request. A HEAD request is a GET without its body, and an empty parameter is one not given."""
        method = "GET" if scope["method"] == "HEAD" else scope["method"]
        query = urlencode(parse_qsl(scope["query_string"].decode("latin-1"))).encode()
        await self._app({**scope, "method": method, "query_string": query}, receive, send)
