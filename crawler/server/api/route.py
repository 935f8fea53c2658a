"""The route of the API in the web UI's application; the first request imports FastAPI."""

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
    """Return whether a path belongs to the API, which needs a token instead of a session."""
    return path == "/api" or path.startswith("/api/")


@dataclass(frozen=True)
class ApiOnDemand:
    """An ASGI application that builds the API at its first request, with its own fields as those of `endpoints.Api`."""

    db: AppDatabase
    home: Path
    now: Callable[[], datetime]
    request_index: Callable[[], str]

    @cached_property
    def _app(self) -> ASGIApp:
        from crawler.server.api.app import make_app  # noqa: PLC0415  takes 10 MB, and most servers never use it
        from crawler.server.api.writing import WritingApi  # noqa: PLC0415

        app = make_app(WritingApi(db=self.db, home=self.home, now=self.now, request_index=self.request_index))
        gc.freeze()  # otherwise each collection after a response scans all of FastAPI, for 15 ms
        return app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request. A HEAD request is a GET without the body, and an empty parameter counts as missing."""
        method = "GET" if scope["method"] == "HEAD" else scope["method"]
        query = urlencode(parse_qsl(scope["query_string"].decode("latin-1"))).encode()
        await self._app({**scope, "method": method, "query_string": query}, receive, send)
