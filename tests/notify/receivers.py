"""Test receivers with configurable responses, and a shop whose pages change."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from crawler.core.domain import Domain
from crawler.core.http.credentials import SecretReference
from crawler.engine.parsing.parser_pool import ParserPool
from crawler.notify.delivery import deliver
from crawler.notify.delivery_stats import DeliveryStats
from crawler.notify.subscription_delivery import DeliveryContext
from crawler.store import report, subscriptions
from crawler.store.database import Database
from crawler.store.report import EventKind
from crawler.store.subscriptions import Subscription, SubscriptionOptions
from tests.engine.crawls import QUICK, START, answered, crawl, recrawl
from tests.ports import next_port

KINDS = frozenset({EventKind.CHANGED, EventKind.GONE, EventKind.RESTORED})
READ_HERE = QUICK.model_copy(
    update={"parser_processes": 0}
)  # a dozen small pages are parsed faster than a process starts
WORDS = ("amber", "birch", "cedar", "delta", "ember", "fjord", "grove", "heath", "islet", "jetty", "knoll", "ledge")


@dataclass(frozen=True, slots=True)
class Got:
    """A received message."""

    headers: Mapping[str, str]
    body: bytes

    @property
    def document(self) -> Any:
        return json.loads(self.body)


@dataclass(slots=True)
class Receiver:
    """A webhook. answer: returns the status and headers of each response; None never responds."""

    answer: Callable[[Got], tuple[int, str] | None] = lambda _: (204, "")
    got: list[Got] = field(default_factory=list)
    taken: list[Got] = field(default_factory=list)
    url: str = ""

    @property
    def changes(self) -> list[dict[str, Any]]:
        """Return the changes of accepted messages in order, each message once."""
        seen: dict[str, Got] = {}
        for got in self.taken:
            seen.setdefault(got.headers["webhook-id"], got)
        return [change for got in seen.values() for change in got.document["changes"]]


@asynccontextmanager
async def receiving(receiver: Receiver) -> AsyncIterator[Receiver]:
    """Run a webhook on loopback."""
    over = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
                headers = {
                    name.lower(): value for name, _, value in (line.partition(": ") for line in head[1:] if line)
                }
                got = Got(headers, await reader.readexactly(int(headers["content-length"])))
                receiver.got.append(got)
                answer = receiver.answer(got)
                if answer is None:
                    await over.wait()
                    break
                status, more = answer
                if status < 300:
                    receiver.taken.append(got)
                writer.write(f"HTTP/1.1 {status} X\r\n{more}Content-Length: 0\r\n\r\n".encode())
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", next_port())
    receiver.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/hook"
    try:
        yield receiver
    finally:
        over.set()
        server.close()


class Shop:
    """Twelve pages whose texts all change daily; some may be removed."""

    def __init__(self, pages: int = 6) -> None:
        self.pages, self.day, self.gone = pages, 0, set[int]()
        self.prices: dict[int, str] = {}

    def respond(self, target: str) -> bytes:
        number = int(target[2:]) if target.startswith("/p") and target[2:].isdigit() else 0 if target == "/" else -1
        if not 0 <= number < self.pages or number in self.gone:
            return answered(404, b"nothing here")
        name = WORDS[number % len(WORDS)]
        own = " ".join(f"{name}{chr(97 + (number * 7 + n * n) % 26)}{WORDS[(number + n) % 12]}" for n in range(30))
        said = f"{WORDS[self.day % 12]} {WORDS[(self.day // 12 + number) % 12]} {WORDS[(self.day * 5 + number) % 12]}"
        price = f'<p class="price">{self.prices[number]}</p>' if number in self.prices else ""
        links = "".join(f"<a href=/p{n}>{WORDS[n % 12]} {n}</a> " for n in range(1, self.pages)) if number == 0 else ""
        page = (
            f"<title>{name}</title><h1>{name}</h1><p>{own}</p><p>Today it says {said}, and no more.</p>{price}{links}"
        )
        return answered(200, page.encode())


async def first_crawl(db: Database) -> None:
    """Crawl the site for the first time."""
    await crawl(db, at=START, settings=READ_HERE)
    await report.append_to_feed(db, at=START)


async def recrawl_at(db: Database, domain: Domain, *, at: datetime) -> None:
    """Crawl the site at an instant."""
    await recrawl(db, domain, at=at, settings=READ_HERE)


async def changes_of(db: Database) -> list[tuple[int, str, str]]:
    """Return position, URL and kind of the changes in the feed."""
    await report.append_to_feed(db, at=START)
    items = await report.read_feed(db, max_count=10_000)
    return [(item.position, item.url, item.change.value) for item in items if item.change in KINDS]


def delivered_changes(receiver: Receiver) -> list[tuple[int, str, str]]:
    return [(change["position"], change["url"], change["change"]) for change in receiver.changes]


async def subscribe(db: Database, target: str, **wish: Any) -> Subscription:
    given: dict[str, Any] = {"kinds": KINDS, "allow_private": True} | wish
    return await subscriptions.add_subscription(db, SubscriptionOptions(target=target, **given), at=START)


async def deliver_at(
    db: Database,
    *,
    at: datetime,
    secrets: Mapping[str, str] | None = None,
    find: Callable[[SecretReference], Awaitable[str | None]] | None = None,
    signature: str = "mine",
    **given: Any,
) -> DeliveryStats:
    """Deliver at an instant. find: looks up secrets, in place of `secrets`.  signature: the signature of the home."""

    async def found(reference: SecretReference) -> str | None:
        return (secrets or {}).get(str(reference))

    async with ParserPool(0) as readers:
        context = DeliveryContext(
            db=db,
            parsers=readers,
            find_secret=find or found,
            user_agent="recrawl-test",
            now=lambda: at,
            real_now=lambda: at,
            sign=lambda _: signature,
        )
        return await deliver(context, **given)
