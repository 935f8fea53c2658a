"""The server of a replay: a recorded site on loopback, at an instant that the replay sets."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from email.utils import format_datetime, parsedate_to_datetime
from enum import StrEnum
from hashlib import blake2b
from http import HTTPStatus
from urllib.parse import unquote
from xml.sax.saxutils import escape

from labs.replay.history import SiteHistory, content_type


class Sitemap(StrEnum):
    """The site's sitemap: with the dates of each page's last own change, with URLs only, or none."""

    DATES = "dates"
    PLAIN = "plain"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class SiteRequest:
    """A request with its response. day: of the history.  page: the path that is shown; None if there never was one."""

    day: float
    url_path: str
    page: str | None
    status: int


@dataclass(frozen=True, slots=True)
class _Response:
    status: HTTPStatus
    body: bytes = b""
    content_type: str = "text/html"
    etag: str = ""
    modified: datetime | None = None
    location: str = ""


class RecordedSite:
    """A recorded site. day: the current time of the server."""

    def __init__(self, history: SiteHistory, sitemap: Sitemap) -> None:
        self.history, self.sitemap, self.day = history, sitemap, 0.0
        self.requests: list[SiteRequest] = []
        self.root, self.answered_at = "", 0.0  # when the last response was sent, in monotonic seconds

    def respond(self, url_path: str) -> _Response:
        """Return the response to a GET of an absolute path."""
        if url_path == "/robots.txt":
            rules = "" if self.sitemap is Sitemap.NONE else f"Sitemap: {self.root}/sitemap.xml\n"
            return _Response(HTTPStatus.OK, rules.encode(), "text/plain")
        if self.sitemap is not Sitemap.NONE and url_path == "/sitemap.xml":
            body = self._sitemap().encode()
            return _Response(HTTPStatus.OK, body, "application/xml", etag=blake2b(body, digest_size=8).hexdigest())
        path = self.history.file_of(url_path, self.day)
        state = None if path is None else self.history.state_at(path, self.day)
        if path is not None and state is not None and state[1] is not None:
            modified = self.history.start + timedelta(days=state[0])
            body, kind = self.history.body(state[1]), content_type(path)
            return _Response(HTTPStatus.OK, body, kind, etag=state[1], modified=modified)
        if self.history.blob_at(f"{url_path.removeprefix('/')}/index.html", self.day) is not None:
            return _Response(HTTPStatus.MOVED_PERMANENTLY, location=f"{url_path}/")
        return _Response(HTTPStatus.NOT_FOUND, b"<!DOCTYPE html><title>404 Not Found</title><h1>Not Found</h1>")

    def _sitemap(self) -> str:
        entries = []
        for path in self.history.live(self.day):
            url = f"<loc>{escape(f'{self.root}/{path}')}</loc>"
            if self.sitemap is Sitemap.DATES:
                life = self.history.pages[path]
                last = max((at for at in (life.born, *life.changes) if at <= self.day), default=0.0)
                url += f"<lastmod>{(self.history.start + timedelta(days=last)).isoformat(timespec='seconds')}</lastmod>"
            entries.append(f"<url>{url}</url>")
        return f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{"".join(entries)}</urlset>'

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Handle the requests of one connection."""
        try:
            while True:
                first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
                headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines if line)}
                method, target, _ = first.split(" ")
                writer.write(self._answer(method, unquote(target.split("?")[0]), headers))
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass  # the client has closed the connection
        finally:
            writer.close()

    def _answer(self, method: str, url_path: str, headers: dict[str, str]) -> bytes:
        found = self.respond(url_path)
        status = (
            HTTPStatus.NOT_MODIFIED if found.status == HTTPStatus.OK and _is_known(found, headers) else found.status
        )
        page = self.history.page_of(url_path, self.day)
        self.requests.append(SiteRequest(self.day, url_path, page, status))
        self.answered_at = time.monotonic()
        head = [f"HTTP/1.1 {status.value} {status.phrase}", f"Content-Type: {found.content_type}"]
        head += [f'ETag: "{found.etag}"'] if found.etag else []
        head += [f"Last-Modified: {format_datetime(found.modified, usegmt=True)}"] if found.modified else []
        head += [f"Location: {found.location}"] if found.location else []
        body = b"" if method == "HEAD" or status == HTTPStatus.NOT_MODIFIED else found.body
        length = [] if status == HTTPStatus.NOT_MODIFIED else [f"Content-Length: {len(found.body)}"]
        return "\r\n".join([*head, *length, "", ""]).encode("latin-1") + body


def _is_known(found: _Response, headers: dict[str, str]) -> bool:
    """Return whether the client's validators are those of the response (RFC 9110, section 13.2.2)."""
    tags = headers.get("if-none-match")
    if tags is not None:
        return bool(found.etag) and f'"{found.etag}"' in tags
    since = headers.get("if-modified-since")
    return since is not None and found.modified is not None and found.modified <= parsedate_to_datetime(since)


@asynccontextmanager
async def serving(site: RecordedSite) -> AsyncIterator[None]:
    """Serve the site on a free port of 127.0.0.1 until the block ends."""
    server = await asyncio.start_server(site.serve, "127.0.0.1", 0)
    site.root = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield
    finally:
        server.close()
