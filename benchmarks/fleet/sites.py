"""Sites on separate addresses, which log each request with the times of its arrival and its response.

Run as python -m benchmarks.fleet.sites --port N --pages N --log FILE ADDRESS...

Each address serves a tree of pages with ten links and different text per page. A response takes RESPONSE_S.
"""

import argparse
import asyncio
import random
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

RESPONSE_S = 0.01
LINKS = 10
WORDS = 120
LETTERS = "bcdfghklmnprstvz"
VOWELS = "aeiou"
READY = "ready"


@dataclass(frozen=True, slots=True)
class SiteRequest:
    """A request to a site. began, ended: monotonic seconds of the machine. by: the address of the client."""

    site: str
    path: str
    by: str
    began: float
    ended: float


def read_log(file: Path) -> list[SiteRequest]:
    """Return the requests in the order of their responses."""
    lines = (line.split("\t") for line in file.read_text().splitlines())
    return [SiteRequest(site, path, by, float(began), float(ended)) for site, path, by, began, ended in lines]


def name_of(number: int) -> str:
    """Return the name of a page in letters; digits would make pages look like a series."""
    name = ""
    number += 1
    while number:
        number, letter = divmod(number - 1, len(LETTERS) * len(VOWELS))
        name = LETTERS[letter // len(VOWELS)] + VOWELS[letter % len(VOWELS)] + name
    return name


def page_of(site: str, number: int, *, pages: int) -> bytes:
    chance = random.Random(f"{site} {number}")

    def word() -> str:
        return "".join(chance.choice(LETTERS) + chance.choice(VOWELS) for _ in range(chance.randint(2, 4)))

    text = " ".join(word() for _ in range(WORDS))
    children = range(number * LINKS + 1, min(number * LINKS + LINKS + 1, pages))
    links = " ".join(f'<a href="/{name_of(child)}">{word()}</a>' for child in children)
    title = f"{word()} {word()}"
    return f"<html><head><title>{title}</title></head><body><p>{text}</p>{links}</body></html>".encode()


class Site(asyncio.Protocol):
    """One connection: successive requests without a body."""

    def __init__(self, site: str, pages: dict[str, int], log: IO[str]) -> None:
        self.site, self.pages, self.log = site, pages, log
        self.given = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.by = transport.get_extra_info("peername")[0]

    def data_received(self, data: bytes) -> None:
        self.given += data
        while b"\r\n\r\n" in self.given:
            head, _, self.given = self.given.partition(b"\r\n\r\n")
            path, began = head.split(b" ", 2)[1].decode(), time.monotonic()
            asyncio.get_running_loop().call_later(RESPONSE_S, self.answer, path, began)

    def answer(self, path: str, began: float) -> None:
        number = self.pages.get(path)
        body = b"" if number is None else page_of(self.site, number, pages=len(self.pages))
        status = b"404 Not Found" if number is None else b"200 OK"
        head = b"HTTP/1.1 %b\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: %d\r\n\r\n"
        # Logged before the last byte is sent, when no client can request the next page.
        print(self.site, path, self.by, f"{began:.6f}", f"{time.monotonic():.6f}", sep="\t", file=self.log)
        if not self.transport.is_closing():
            self.transport.write(head % (status, len(body)) + body)


async def serve(addresses: Sequence[str], *, port: int, pages: int, log: IO[str]) -> None:
    paths = {"/": 0} | {f"/{name_of(number)}": number for number in range(1, pages)}
    loop = asyncio.get_running_loop()
    for address in addresses:
        await loop.create_server(lambda address=address: Site(address, paths, log), address, port)  # type: ignore[misc]
    print(READY, flush=True)
    await loop.run_in_executor(None, sys.stdin.read)  # until the parent process closes the pipe


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("addresses", nargs="+")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--pages", type=int, required=True)
    parser.add_argument("--log", type=Path, required=True)
    given = parser.parse_args()
    with given.log.open("w", buffering=1) as log:
        asyncio.run(serve(given.addresses, port=given.port, pages=given.pages, log=log))


if __name__ == "__main__":
    main()
