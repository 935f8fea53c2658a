"""A domain's cookies are sent only where they were set, and their number is limited."""

from crawler.core.http.credentials import RequestAuth
from crawler.core.http.urls import Url
from crawler.fetch.cookies import MAX_COOKIE_BYTES, MAX_COOKIES, DomainCookies
from tests.engine.doors import Asked, Reply, door
from tests.fetch.asking import SOON, http

HERE = Url("https://www.site.test/a/b")


async def test_cookies_are_sent_where_they_belong() -> None:
    cookies = DomainCookies()
    cookies.store_cookies(
        HERE, ["sid=a1; Path=/; HttpOnly", "deep=x; Path=/a", "safe=s; Secure; Path=/", "wide=w; Domain=site.test"]
    )
    cookies.store_cookies(HERE, ["other=o; Domain=elsewhere.test; Path=/", "sid=b2; Path=/"])

    assert set(cookies.get_header(HERE).split("; ")) == {"sid=b2", "deep=x", "safe=s", "wide=w"}
    assert set(cookies.get_header(Url("http://www.site.test/c")).split("; ")) == {"sid=b2"}
    assert cookies.get_header(Url("https://elsewhere.test/a")) == ""
    assert cookies.get_header(Url("https://site.test/a")) == "wide=w"


async def test_a_cookie_without_a_domain_stays_on_its_host_and_no_suffix_gets_one() -> None:
    cookies = DomainCookies()
    shop = Url("https://shop.co.uk/")
    cookies.store_cookies(
        shop, ["own=1; Path=/; Port=443", "all=2; Domain=co.uk; Path=/", "wide=3; Domain=.shop.co.uk"]
    )

    assert set(cookies.get_header(shop).split("; ")) == {"own=1", "wide=3"}
    assert cookies.get_header(Url("https://www.shop.co.uk/")) == "wide=3"
    assert cookies.get_header(Url("https://other.co.uk/")) == ""


async def test_a_host_without_a_dot_has_cookies() -> None:
    cookies = DomainCookies()
    for host in ("wiki", "localhost:8000", "127.0.0.1:8000"):
        cookies.store_cookies(Url(f"http://{host}/"), [f"sid={host[:3]}; Domain={host.partition(':')[0]}; Path=/"])
        assert cookies.get_header(Url(f"http://{host}/a")) == f"sid={host[:3]}"


async def test_cookies_of_many_folders_are_limited() -> None:
    cookies = DomainCookies()
    for n in range(2 * MAX_COOKIES):
        cookies.store_cookies(Url(f"http://a.test/{n}/page"), ["sid=1"])
    kept = [n for n in range(2 * MAX_COOKIES) if cookies.get_header(Url(f"http://a.test/{n}/page"))]
    assert kept == list(range(MAX_COOKIES))


async def test_a_deleted_cookie_is_not_sent() -> None:
    cookies = DomainCookies()
    cookies.store_cookies(HERE, ["sid=a1; Path=/", "short=s; Max-Age=0"])
    cookies.store_cookies(HERE, ["sid=; Max-Age=0; Path=/"])

    assert cookies.get_header(HERE) == ""


async def test_a_jar_has_limits() -> None:
    cookies = DomainCookies()
    cookies.store_cookies(HERE, ["large=" + "x" * MAX_COOKIE_BYTES, "odd=a\0b"])
    for n in range(MAX_COOKIES + 20):
        cookies.store_cookies(HERE, [f"c{n}=v; Path=/"])
    cookies.store_cookies(HERE, ["c0=again; Path=/"])

    sent = cookies.get_header(HERE).split("; ")
    assert len(sent) == MAX_COOKIES
    assert "c0=again" in sent


async def test_a_request_sends_its_credentials_and_stores_cookies() -> None:
    def sets(asked: Asked) -> Reply:
        return Reply("x", headers=("Set-Cookie: sid=one; Path=/", "Set-Cookie: two=2; Path=/"))

    access = RequestAuth(headers=(("X-Key", "k"), ("Cookie", "own=1")), cookies=DomainCookies())
    async with door(sets) as server, http() as web:
        url = Url(server.url)
        for _ in range(2):
            await web.fetch(url, deadline=SOON, auth=access)
        await web.fetch(url, deadline=SOON)

    assert [one.cookies for one in server.asked] == [{"own": "1"}, {"own": "1", "sid": "one", "two": "2"}, {}]
    assert [one.headers.get("x-key") for one in server.asked] == ["k", "k", None]
    assert "one" not in repr(access)


async def test_a_form_is_posted_in_utf_8() -> None:
    async with door(lambda _: Reply("x")) as server, http() as web:
        form = (("user", "m\xfcller"), ("password", "a&b=c"))
        await web.fetch(Url(server.url), deadline=SOON, method="POST", auth=RequestAuth(form=form))

    (asked,) = server.asked
    assert (asked.method, asked.form) == ("POST", dict(form))
    assert asked.headers["content-type"].startswith("application/x-www-form-urlencoded")
