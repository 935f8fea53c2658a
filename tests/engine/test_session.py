"""The credentials of a domain are sent only to this domain."""

from datetime import timedelta

import pytest

from crawler.core.domain import Domain
from crawler.core.domain_settings import DomainSettings
from crawler.core.http.credentials import NO_AUTH, SecretReference, SecretSource
from crawler.core.http.urls import Authority, Url
from crawler.engine.requests.session import DomainSession, find_secrets, read_environment_secret
from crawler.fetch import Http
from crawler.fetch.cookies import DomainCookies
from tests.engine.crawls import START

TOKEN = "tok-of-the-door"


def session(scheme: str = "https") -> DomainSession:
    domain = Domain(
        id=1,
        authority=Authority("docs.test"),
        scheme=scheme,
        aliases=frozenset({Authority("www.docs.test")}),
        paused=False,
        registered_at=START,
        settings=DomainSettings(auth="bearer env:TOKEN", delay=timedelta(0)),
    )
    secrets = {SecretReference(SecretSource.ENV, "TOKEN"): TOKEN}
    return DomainSession(domain, Http(user_agent="test"), secrets=secrets, cookies=DomainCookies())


@pytest.mark.parametrize(
    ("url", "is_shown"),
    [
        ("https://docs.test/a", True),
        ("https://www.docs.test/a", True),
        ("http://docs.test/a", False),  # others could read it on the way
        ("https://docs.test:8443/a", False),
        ("https://elsewhere.test/a", False),
        ("https://sub.docs.test/a", False),
    ],
)
async def test_keys_are_shown_to_the_domains_own_names_alone(url: str, *, is_shown: bool) -> None:
    found = session().choose_auth(Url(url))

    assert (found != NO_AUTH) == is_shown
    assert ((("Authorization", f"Bearer {TOKEN}"),) if is_shown else ()) == found.headers
    assert (found.cookies is not None) == is_shown


async def test_a_domain_that_is_asked_by_http_shows_them_by_https_too() -> None:
    urls = ("http://docs.test/", "https://docs.test/")

    assert [session("http").choose_auth(Url(url)) != NO_AUTH for url in urls] == [True, True]


async def test_nothing_that_is_printed_tells_a_secret() -> None:
    mine = session()

    assert TOKEN not in repr(mine) + repr(mine.choose_auth(Url("https://docs.test/")))


async def test_a_block_is_nothing_where_no_prefect_server_is_asked() -> None:
    reference = SecretReference(SecretSource.BLOCK, "door-key")

    assert await find_secrets([reference], read_environment_secret) == "no_secret block:door-key is not there"
