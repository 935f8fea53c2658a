"""robots.txt under a lease: files of any size, redirects, and Crawl-delay."""

from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from crawler.clock import Clock
from crawler.core.domain_settings import DomainSettings
from crawler.core.http.robots import MAX_ROBOTS_BYTES
from crawler.core.http.urls import Authority
from crawler.engine.coordinator import CrawlLimits, crawl_lease
from crawler.engine.requests.pacer import Pacer
from crawler.engine.resources import open_resources
from crawler.engine.store_port import LeasedStore
from crawler.settings import Settings
from crawler.store import claim, domains
from crawler.store.database import Database
from tests.engine.crawls import QUICK, START, crawl, register, rows
from tests.fetch.server import Server, answer, serving

SMALL = QUICK.model_copy(update={"max_body_bytes": 100_000})


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    async with serving() as found:
        for path in ("/", "/open", "/closed", "/late"):
            links = "".join(f"<a href={to}>{to}</a> " for to in ("/open", "/closed", "/late"))
            found.says(path, answer(f"<p>page {path} says what there is to say of {path} {links}".encode()))
        yield found


def pages(server: Server) -> set[str]:
    paths = {request.line.split(b" ")[1].decode() for request in server.heard}
    return {path for path in paths if path in {"/", "/open", "/closed", "/late"}}


@pytest.mark.parametrize("settings", [QUICK, SMALL], ids=["within the limit of bodies", "beyond it"])
async def test_of_an_over_large_robots_txt_the_first_part_counts(
    db: Database, server: Server, settings: Settings
) -> None:
    rules = b"User-agent: *\nDisallow: /closed\n" + b"# filler\n" * (MAX_ROBOTS_BYTES // 9) + b"Disallow: /late\n"
    body = rules + b"# more\n" * 2_000_000
    server.says("/robots.txt", answer(body))
    await register(db, server.url())
    result = await crawl(db, at=START, settings=settings)

    assert result.suspensions == {}
    assert pages(server) == {"/", "/open", "/late"}
    assert (await rows(db, "SELECT outcome FROM robots")) == [("ok",)]


async def test_a_domain_with_private_addresses_is_led_to_its_own_ones_alone(db: Database, server: Server) -> None:
    async with serving() as other:
        secret = other.says("/robots.txt", answer(b"User-agent: *\nAllow: /"))
        server.says("/robots.txt", answer(b"", f"Location: {secret}", status="302 Found"))
        await register(db, server.url())
        result = await crawl(db, at=START)

    assert other.heard == []
    assert pages(server) == set()
    assert [hold.reason for hold in result.suspensions.values()] == ["robots_address"]


async def test_a_domain_is_led_to_another_path_and_another_name_of_its_own(db: Database, server: Server) -> None:
    server.says("/robots.txt", answer(b"", "Location: /rules", status="301 Moved Permanently"))
    other = f"http://localhost:{server.port}/there"
    server.says("/rules", answer(b"", f"Location: {other}", status="301 Moved Permanently"))
    server.says("/there", answer(b"User-agent: recrawl\nDisallow: /closed"))
    await domains.register(
        db,
        Authority(f"127.0.0.1:{server.port}"),
        scheme="http",
        aliases=[Authority(f"localhost:{server.port}")],
        domain_settings=DomainSettings(allow_private=True, delay=timedelta(0)),
        at=START,
    )
    await crawl(db, at=START)

    assert pages(server) == {"/", "/open", "/late"}


async def test_the_delay_of_a_robots_txt_just_read_holds_for_the_first_page(db: Database, server: Server) -> None:
    server.says("/robots.txt", answer(b"User-agent: *\nCrawl-delay: 3600"))
    await register(db, server.url())
    lease = await claim.claim(db, at=START, term=QUICK.lease_term, holder="test")
    assert lease is not None
    clock = Clock.from_instant(START)
    async with open_resources(QUICK) as webs:
        await crawl_lease(
            LeasedStore(db, lease, settings=QUICK, clock=clock),
            webs,
            limits=CrawlLimits(),
            progress=lambda _: None,
        )

    assert pages(server) == set()
    ((wait,),) = await rows(db, "SELECT next_request_at - clock_timestamp() FROM domain_state")
    assert timedelta(minutes=55) < wait <= timedelta(hours=1)


def test_who_slows_down_does_so_from_the_last_request_on() -> None:
    fresh, used = Pacer(delay=timedelta(0)), Pacer(delay=timedelta(0))
    used.note_response()
    for pacer in (fresh, used):
        pacer.raise_delay(timedelta(hours=1))

    assert fresh.wait == timedelta(0)
    assert used.wait > timedelta(minutes=59)
