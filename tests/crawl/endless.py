"""A site without end: page n links to pages 3n+1, 3n+2 and 3n+3, and to its parents."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

WORDS = [
    "the",
    "quick",
    "brown",
    "fox",
    "jumps",
    "over",
    "a",
    "lazy",
    "dog",
    "while",
    "nobody",
    "looks",
    "and",
    "the",
    "evening",
    "comes",
    "slowly",
]


def name_of(n: int) -> str:
    """A word of its own for each page, without a digit: a page that says nothing new would be held back."""
    return "".join("abcdefghik"[int(digit)] for digit in str(n))


def page_of(n: int) -> bytes:
    links = "".join(f'<a href="/{to}">{to}</a> ' for to in (3 * n + 1, 3 * n + 2, 3 * n + 3, n // 3, n // 9))
    words = (WORDS[(n * 7 + at * (n % 11 + 1)) % len(WORDS)] for at in range(300))
    text = " ".join(word if at % 3 else name_of(n) for at, word in enumerate(words))
    body = f"<!doctype html><title>Page {n}</title><main><h1>Page {n}</h1><p>{text}</p>{links}</main>".encode()
    head = f"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


@asynccontextmanager
async def endless_site() -> AsyncIterator[str]:
    """The site on a loopback port, until the block ends."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                path = (await reader.readuntil(b"\r\n\r\n")).split(b" ", 2)[1].strip(b"/")
                missing = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"
                writer.write(page_of(int(path or b"0")) if path.isdigit() or not path else missing)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
    finally:
        server.close()
