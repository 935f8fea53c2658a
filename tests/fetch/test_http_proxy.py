"""Requests through a proxy: hosts are resolved and checked here, and the proxy gets only addresses."""

import pytest

from crawler.core.http.response import FailureReason, Fetched, Unreached
from crawler.core.http.urls import Authority, Url
from crawler.fetch import Http, Proxy
from tests.engine.doors import Asked, Reply, door, tunnel_proxy
from tests.fetch.asking import AGENT, SOON, reason

NAMED = "Basic bWU6c2VjcmV0"  # me:secret


def says_hello(_: Asked) -> Reply:
    return Reply("hello")


def proxied(proxy: Proxy, *, address: str = "127.0.0.1", allow_private: bool = True) -> Http:
    return Http(user_agent=AGENT, allow_private=allow_private, lookup=lambda _: (address,), proxy=proxy)


async def test_everything_goes_through_the_proxy_which_gets_an_address_and_no_name() -> None:
    async with door(says_hello) as server, tunnel_proxy(wanted=NAMED) as proxy:
        url = Url(f"http://site.test:{server.port}/a?b=%7e")
        async with proxied(Proxy("127.0.0.1", proxy.port, "me", "secret")) as web:
            found = [await web.fetch(url, deadline=SOON) for _ in range(2)]

    assert [isinstance(each, Fetched) and (each.body, each.address) for each in found] == [(b"hello", "127.0.0.1")] * 2
    assert proxy.targets == [f"127.0.0.1:{server.port}"]  # one tunnel for both
    assert [one.target for one in server.asked] == ["/a?b=%7e"] * 2
    assert {one.headers["host"] for one in server.asked} == {f"site.test:{server.port}"}
    assert not any("proxy-authorization" in one.headers for one in server.asked)


@pytest.mark.parametrize(
    ("address", "allow_private"), [("169.254.169.254", True), ("10.0.0.1", False), ("127.0.0.1", False)]
)
async def test_a_forbidden_address_is_not_requested_through_a_proxy_either(
    address: str, *, allow_private: bool
) -> None:
    async with (
        tunnel_proxy() as proxy,
        proxied(Proxy("127.0.0.1", proxy.port), address=address, allow_private=allow_private) as web,
    ):
        by_name = await web.fetch(Url("http://site.test/"), deadline=SOON)
        literal = await web.fetch(Url(f"http://{address}/"), deadline=SOON)

    assert [reason(by_name), reason(literal)] == [FailureReason.ADDRESS] * 2
    assert proxy.heads == []


async def test_a_refused_tunnel_is_distinguished_from_a_server_error_and_the_password_is_never_shown() -> None:
    async with door(says_hello) as server, tunnel_proxy(wanted=NAMED) as proxy:
        async with proxied(Proxy("127.0.0.1", proxy.port, "me", "another secret")) as web:
            refused = await web.fetch(Url(f"http://site.test:{server.port}/"), deadline=SOON)
        async with proxied(Proxy("127.0.0.1", 1, "me", "another secret")) as web:
            silent = await web.fetch(Url(f"http://site.test:{server.port}/"), deadline=SOON)
        async with proxied(Proxy("127.0.0.1", server.port, "me", "another secret")) as web:
            no_proxy = await web.fetch(Url("http://site.test:9/"), deadline=SOON)

    assert [reason(answer) for answer in (refused, silent, no_proxy)] == [
        *[FailureReason.REFUSED] * 2,
        FailureReason.GARBAGE,
    ]
    for answer, words in ((refused, "407"), (silent, "cannot be reached"), (no_proxy, "")):
        assert isinstance(answer, Unreached)
        assert words in answer.detail
        assert "secret" not in repr(answer)
    assert "secret" not in repr(Proxy("127.0.0.1", 1, "me", "another secret"))


async def test_a_proxy_at_an_address_of_cloud_metadata_gets_no_request() -> None:
    async with proxied(Proxy("169.254.169.254", 80)) as web:
        found = await web.fetch(Url("http://site.test/"), deadline=SOON)
        addresses = await web.resolve_addresses(Authority("site.test"))

    assert reason(found) is FailureReason.REFUSED
    assert addresses == ("127.0.0.1",)
