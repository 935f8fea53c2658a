"""A statically built site on loopback, as of its last deploy."""

import asyncio
from bisect import bisect_right
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cache
from hashlib import blake2b
from random import Random

from benchmarks.deploys.histories import History, PageLife

LETTERS = "bcdfghjklmnprstvwz"
VOWELS = "aeiou"
WORDS = 4000  # size of the site's vocabulary
SENTENCE = 18  # words per paragraph
KEPT_PARAGRAPHS = 60  # maximum paragraphs of a page, to keep the largest pages fast


@cache
def word(n: int) -> str:
    rng = Random(n)
    return "".join(rng.choice(LETTERS) + rng.choice(VOWELS) for _ in range(rng.randint(2, 4)))


def prose(*of: object, words: int = SENTENCE) -> str:
    """Return words that depend only on the arguments."""
    rng = Random(repr(of))
    return " ".join(word(rng.randrange(WORDS)) for _ in range(words))


class BuiltSite:
    """The pages of a history. day: the current day; deploys up to it have happened."""

    def __init__(self, history: History) -> None:
        self._history, self.day, self.requests = history, 0.0, 0
        self._pages = {f"/{page.name}.html": page for page in history.pages}

    @property
    def deploy(self) -> int:
        return max(bisect_right(self._history.days, self.day) - 1, 0)

    def is_there(self, page: PageLife, deploy: int) -> bool:
        return page.born <= deploy and (page.gone is None or deploy < page.gone)

    def body(self, path: str) -> str | None:
        """Return the page, or None if it does not exist."""
        deploy = self.deploy
        if path == "/":
            there = sorted(url for url, page in self._pages.items() if self.is_there(page, deploy))
            entries = "".join(f'<li><a href="{url}">{prose("title", url, words=3)}</a></li>' for url in there)
            return self._framed("contents", f"<h1>Contents</h1><ul>{entries}</ul>", deploy)
        page = self._pages.get(path)
        if page is None or not self.is_there(page, deploy):
            return None
        return self._framed(prose("title", path, words=3), "".join(self._paragraphs(path, page, deploy)), deploy)

    def _paragraphs(self, path: str, page: PageLife, deploy: int) -> list[str]:
        """Return the page's own text. Edits rewrite paragraphs at positions that depend on the edit."""
        many = min(page.paragraphs, KEPT_PARAGRAPHS) + 1
        last = [0] * many
        for edit, size in page.edits.items():
            if edit <= deploy:
                rng = Random(f"{path} {edit}")
                for place in rng.sample(range(many), min(size, many)):
                    last[place] = edit
        return [f"<p>{prose(path, place, edit)}.</p>" for place, edit in enumerate(last)]

    def _framed(self, title: str, main: str, deploy: int) -> str:
        version = prose("version", deploy, words=2)
        return (
            f"<!DOCTYPE html><html><head><title>{title}</title></head><body>"
            f'<nav><p>The manual, edition {version}</p><ul><li><a href="/">Contents</a></li></ul></nav>'
            f"<main>{main}</main><footer><p>Built as {version} by {prose('builder', deploy, words=3)}.</p></footer>"
            "</body></html>"
        )

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
                headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines if line)}
                writer.write(self._answer(first.split(" ")[1], headers.get("if-none-match")))
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    def _answer(self, path: str, tag: str | None) -> bytes:
        self.requests += 1
        body = self.body(path)
        if body is None:
            return b"HTTP/1.1 404 Not Found\r\nContent-Type: text/html\r\nContent-Length: 12\r\n\r\n<p>Not here."
        data = body.encode()
        etag = f'"{blake2b(data, digest_size=8).hexdigest()}"'
        if tag == etag:
            return f"HTTP/1.1 304 Not Modified\r\nETag: {etag}\r\n\r\n".encode()
        head = f"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\nETag: {etag}\r\n"
        return f"{head}Content-Length: {len(data)}\r\n\r\n".encode() + data


@asynccontextmanager
async def serving(site: BuiltSite) -> AsyncIterator[str]:
    """Serve the site and return its root URL."""
    server = await asyncio.start_server(site.serve, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
