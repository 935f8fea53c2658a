"""Names, addresses and ports: what is allowed, and what does not exist."""

import asyncio
import socket
import threading
from collections.abc import Sequence
from datetime import timedelta

import pytest

from crawler.core.http.response import FailureReason, Fetched, Unreached
from crawler.core.http.urls import Authority, Url
from crawler.fetch import pool
from tests.fetch.asking import SOON, http, one, reason
from tests.fetch.server import answer, serving


async def test_a_closed_port_refuses() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    assert reason(await one(Url(f"http://127.0.0.1:{port}/"))) is FailureReason.REFUSED


def no_such_name(host: str) -> Sequence[str]:
    raise socket.gaierror(socket.EAI_NONAME, f"{host} is not known")


async def test_a_name_that_does_not_resolve_is_a_dns_finding() -> None:
    async with http(lookup=no_such_name) as web:
        assert reason(await web.fetch(Url("http://nowhere.example/"), deadline=SOON)) is FailureReason.DNS
        found = await web.resolve_addresses(Authority("nowhere.example"))
    assert isinstance(found, Unreached)
    assert found.reason is FailureReason.DNS


async def test_a_name_with_an_impossible_label_is_a_dns_finding() -> None:
    assert reason(await one(Url("http://xn--a.xn--" + "a" * 60 + "/"))) is FailureReason.DNS


async def test_a_name_with_a_private_address_gets_no_request() -> None:
    async with serving() as server, http(allow_private=False) as web:
        server.says("/", answer(b"secret"))
        for host in ("localhost", "127.0.0.1", "[::1]", "[::ffff:127.0.0.1]", "0.0.0.0"):
            found = await web.fetch(Url(f"http://{host}:{server.port}/"), deadline=SOON)
            assert reason(found) is FailureReason.ADDRESS, host
            listed = await web.resolve_addresses(Authority(f"{host}:{server.port}"))
            assert isinstance(listed, Unreached)
            assert listed.reason is FailureReason.ADDRESS
    assert server.connections == 0


@pytest.mark.parametrize("answers", [("127.0.0.1",), ("10.0.0.1", "192.168.0.1"), ("::1", "127.0.0.1", "fe80::1")])
async def test_a_public_name_with_private_addresses_gets_no_request(answers: Sequence[str]) -> None:
    async with serving() as server, http(allow_private=False, lookup=lambda _: answers) as web:
        found = await web.fetch(Url(f"http://rebound.example:{server.port}/"), deadline=SOON)
        assert reason(found) is FailureReason.ADDRESS
    assert server.connections == 0


async def test_a_redirect_to_a_private_address_is_not_requested() -> None:
    async with serving() as public, serving() as inside:
        inside.says("/secret", answer(b"secret"))
        public.says("/", answer(b"", f"Location: {inside.url('/secret')}", status="302 Found"))
        first = await one(public.url("/"))
        assert isinstance(first, Fetched)
        assert first.location == inside.url("/secret")
        assert reason(await one(first.location, allow_private=False)) is FailureReason.ADDRESS
    assert inside.connections == 0


async def test_a_name_whose_address_changes_is_checked_at_every_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "ADDRESS_SECONDS", 0)
    async with serving() as server:
        answers = iter([("127.0.0.1",), ("169.254.169.254",)])
        async with http(lookup=lambda _: next(answers)) as web:
            url = Url(f"http://rebound.example:{server.port}/")
            server.says("/", answer(b"x", "Connection: close"))
            assert isinstance(await web.fetch(url, deadline=SOON), Fetched)
            await asyncio.sleep(0)  # the addresses are forgotten
            assert reason(await web.fetch(url, deadline=SOON)) is FailureReason.ADDRESS


async def test_of_several_addresses_the_allowed_ones_are_tried() -> None:
    async with serving() as server, http(lookup=lambda _: ("169.254.169.254", "127.0.0.1")) as web:
        server.says("/", answer(b"x"))
        found = await web.fetch(Url(f"http://both.example:{server.port}/"), deadline=SOON)
        assert await web.resolve_addresses(Authority("both.example")) == ("127.0.0.1",)
    assert isinstance(found, Fetched)
    assert found.address == "127.0.0.1"


async def test_the_addresses_of_an_ip_literal_are_itself() -> None:
    async with http(lookup=no_such_name) as web:
        assert await web.resolve_addresses(Authority("127.0.0.1:8001")) == ("127.0.0.1",)
        assert await web.resolve_addresses(Authority("[::1]:8001")) == ("::1",)


async def test_a_slow_name_server_meets_the_deadline() -> None:
    answered = threading.Event()

    def slow(_: str) -> Sequence[str]:
        answered.wait()
        return ()

    short = timedelta(milliseconds=100)
    try:
        async with http(lookup=slow) as web:
            found = await web.fetch(Url("http://slow.example/"), deadline=short)
            listed = await web.resolve_addresses(Authority("slow.example"), deadline=short)
    finally:
        answered.set()
    assert reason(found) is FailureReason.DEADLINE
    assert isinstance(listed, Unreached)
    assert listed.reason is FailureReason.DEADLINE


async def test_a_name_without_addresses_is_a_dns_finding() -> None:
    async with http(lookup=lambda _: ()) as web:
        assert reason(await web.fetch(Url("http://empty.example/"), deadline=SOON)) is FailureReason.DNS
        listed = await web.resolve_addresses(Authority("empty.example"))
    assert isinstance(listed, Unreached)
    assert listed.reason is FailureReason.DNS
