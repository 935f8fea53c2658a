"""Sites that require credentials: headers, authentication, cookies, a login, a proxy, certificates."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from crawler.clock import Clock
from crawler.core.domain import Domain
from crawler.core.domain_settings import DomainSettings
from crawler.core.http.credentials import SecretReference, SecretSource
from crawler.core.http.urls import Authority
from crawler.engine.requests.session import find_secrets
from crawler.engine.resources import open_resources
from crawler.engine.stats import ShiftResult
from crawler.engine.try_page import try_page
from crawler.runtime.secrets import build_secret_finder
from crawler.store import domains
from crawler.store.database import Database
from tests.engine.crawls import DAY, QUICK, START, crawl, register, rows
from tests.engine.doors import Answering, Asked, Reply, door, tunnel_proxy
from tests.engine.scripted import text
from tests.fetch.test_http_tls import certificate, tls

__all__ = ["certificate"]  # a fixture

USER, PASSWORD, TOKEN = "anna-of-docs", "opens-Sesame-9", "tok-4f7Ahx"
PAGES = ("alder", "birch", "cedar", "dogwood", "elm", "fir")
BASIC = "Basic YW5uYS1vZi1kb2NzOm9wZW5zLVNlc2FtZS05"


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"DOCS_USER": USER, "DOCS_PASS": PASSWORD, "DOCS_TOKEN": TOKEN}.items():
        monkeypatch.setenv(name, value)


def site(asked: Asked) -> Reply:
    """Return a root that links to pages with unique words."""
    if asked.target == "/robots.txt":
        return Reply("User-agent: *\nAllow: /", headers=())
    if asked.target == "/":
        return Reply(text("trees of the garden", *(f"/{name}" for name in PAGES)).body)
    name = asked.target.strip("/")
    return Reply(text(f"the {name} in the garden, told at length").body) if name in PAGES else Reply("none", 404)


def behind(lets_in: Callable[[Asked], bool]) -> Answering:
    """Return the site for allowed requests, and 401 for all others, including robots.txt."""
    return lambda asked: site(asked) if lets_in(asked) else Reply("no entry", 401)


async def known(db: Database) -> int:
    """Return how many pages were fetched."""
    found = await rows(db, "SELECT count(*) FROM page WHERE version > 0")
    return int(found[0][0])


async def hold_of(db: Database) -> str:
    return str((await rows(db, "SELECT resume_reason FROM domain_state"))[0][0])


@pytest.mark.parametrize(
    ("settings", "shown"),
    [
        ({"headers": ("X-Key: env:DOCS_TOKEN",)}, ("x-key", TOKEN)),
        ({"auth": "bearer env:DOCS_TOKEN"}, ("authorization", f"Bearer {TOKEN}")),
        ({"auth": "basic env:DOCS_USER env:DOCS_PASS"}, ("authorization", BASIC)),
        ({"headers": ("Cookie: env:DOCS_TOKEN",)}, ("cookie", TOKEN)),
    ],
)
async def test_who_shows_the_key_reads_every_page_and_robots_txt(
    db: Database, settings: dict[str, Any], shown: tuple[str, str]
) -> None:
    async with door(behind(lambda asked: asked.headers.get(shown[0]) == shown[1])) as server:
        domain = await register(db, server.url, **settings)
        await crawl(db, at=START)
        async with open_resources(QUICK) as webs:
            tried = await try_page(db, webs, domain, domain.root, settings=QUICK, clock=Clock.from_instant(START + DAY))

    assert await known(db) == 1 + len(PAGES)
    assert all(asked.headers.get(shown[0]) == shown[1] for asked in server.asked)
    assert "/robots.txt" in [asked.target for asked in server.asked]
    assert tried.parsed is not None


async def test_a_secret_that_is_missing_is_a_hold_with_its_place_and_no_request(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DOCS_TOKEN")
    async with door(site) as server:
        domain = await register(db, server.url, headers=("X-Key: env:DOCS_TOKEN",))
        missing = await crawl(db, at=START)
        async with open_resources(QUICK) as webs:
            tried = await try_page(db, webs, domain, domain.root, settings=QUICK, clock=Clock.from_instant(START))
        monkeypatch.setenv("DOCS_TOKEN", "two\r\nX-Lines: 1")
        unusable = await crawl(db, at=START + DAY)
        held = await hold_of(db)
        silent = list(server.asked)
        monkeypatch.setenv("DOCS_TOKEN", TOKEN)
        await crawl(db, at=START + 2 * DAY)

    assert [hold.reason for hold in missing.suspensions.values()] == ["no_secret env:DOCS_TOKEN is not there"]
    assert "env:DOCS_TOKEN" in tried.problem
    assert [hold.reason for hold in unusable.suspensions.values()] == [held]
    assert held == "no_secret env:DOCS_TOKEN contains characters that are not allowed in a header"
    assert silent == []
    assert await known(db) == 1 + len(PAGES)


async def test_a_secret_whose_file_cannot_be_read_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DOCS_TOKEN")
    monkeypatch.setenv("DOCS_TOKEN_FILE", str(tmp_path / "none"))

    found = await find_secrets([SecretReference(SecretSource.ENV, "DOCS_TOKEN")], build_secret_finder(QUICK))

    assert found == (
        f"no_secret env:DOCS_TOKEN is not there (DOCS_TOKEN_FILE: {tmp_path / 'none'} cannot be read: "
        "No such file or directory)"
    )


async def test_nothing_is_shown_to_another_authority_along_a_redirect(db: Database) -> None:
    async with door(site) as other:

        def leads_away(asked: Asked) -> Reply:
            if asked.target == "/robots.txt":
                return Reply(status=302, headers=(f"Location: {other.url}robots.txt",))
            return Reply("x", headers=("Set-Cookie: sid=of-mine; Path=/",))

        async with door(leads_away) as server:
            port = server.url.split(":")[2].strip("/")
            # An alias of the domain gets the same credentials.
            domain = await register(
                db, server.url, headers=("X-Key: env:DOCS_TOKEN",), auth="bearer env:DOCS_TOKEN", cookies=True
            )
            await crawl(db, at=START)

    assert domain.authority == f"127.0.0.1:{port}"
    assert server.asked
    assert all(asked.headers["x-key"] == TOKEN for asked in server.asked)
    # A private address is not requested, not even for a redirected robots.txt.
    assert not any({"x-key", "authorization", "cookie"} & asked.headers.keys() for asked in other.asked)


async def test_cookies_are_sent_back_while_a_crawl_runs_and_only_where_their_user_wants_that(db: Database) -> None:
    def counts(asked: Asked) -> Reply:
        return replace(site(asked), headers=("Set-Cookie: visitor=v-1; Path=/",))

    sent = []
    for wanted in (True, False):
        async with door(counts) as server:
            await register(db, server.url, cookies=wanted, parallelism=1)
            await crawl(db, at=START)
            sent.append([asked.cookies.get("visitor") for asked in server.asked])

    assert sent[0][0] is None
    assert set(sent[0][1:]) == {"v-1"}
    assert set(sent[1]) == {None}
    assert await known(db) == 2 * (1 + len(PAGES))


class Club:
    """A site behind a form with a token; sessions end after some pages. logins: how many logins it accepted."""

    def __init__(self, *, ends_after: int = 1000, always_asks: tuple[str, ...] = ()) -> None:
        self.ends_after, self.always_asks = ends_after, always_asks
        self.logins = self.tries = self.shown = 0
        self.session = ""

    def __call__(self, asked: Asked) -> Reply:
        if asked.target == "/robots.txt":
            return site(asked)
        if asked.target == "/login":
            return self.log_in(asked) if asked.method == "POST" else self.form()
        if asked.cookies.get("sid") != self.session or not self.session or asked.target in self.always_asks:
            return Reply(status=302, headers=("Location: /login",))
        self.shown += 1
        if self.shown % self.ends_after == 0:
            self.session = ""
        return site(asked)

    def form(self) -> Reply:
        return Reply(
            "<h1>Members</h1><form method=post action=/login><input type=hidden name=token value=t-77>"
            "<input name=user><input type=password name=password><button>In</button></form>"
        )

    def log_in(self, asked: Asked) -> Reply:
        self.tries += 1
        if asked.form != {"token": "t-77", "user": USER, "password": PASSWORD}:
            return self.form()
        self.logins += 1
        self.session = f"s-{self.logins}"
        return Reply(status=303, headers=("Location: /", f"Set-Cookie: sid={self.session}; Path=/; HttpOnly"))


LOGIN = "/login user=env:DOCS_USER password=env:DOCS_PASS"


async def test_a_login_by_a_form_opens_the_site_once_for_all_its_pages(db: Database) -> None:
    club = Club()
    async with door(club) as server:
        domain = await register(db, server.url, login=LOGIN)
        await crawl(db, at=START)
        crawled = len(server.asked)
        async with open_resources(QUICK) as webs:
            tried = await try_page(db, webs, domain, domain.root, settings=QUICK, clock=Clock.from_instant(START + DAY))

    spent = await rows(db, "SELECT spent_requests FROM domain_state")
    assert (club.logins, club.tries) == (2, 2)  # by the crawl and by the trial
    assert await known(db) == 1 + len(PAGES)
    assert tried.parsed is not None
    assert spent == [(len(server.asked) - crawled,)]  # logins are debited from the day's budget


async def test_when_pages_turn_into_the_form_it_logs_in_again_and_no_page_is_lost(db: Database) -> None:
    club = Club(ends_after=6)
    async with door(club) as server:
        await register(db, server.url, login=LOGIN, parallelism=2)
        await crawl(db, at=START)

    assert club.logins == 2
    assert await known(db) == 1 + len(PAGES)


async def test_a_page_that_shows_the_form_to_members_too_ends_neither_the_crawl_nor_in_endless_logins(
    db: Database,
) -> None:
    club = Club(always_asks=("/birch", "/elm"))
    async with door(club) as server:
        await register(db, server.url, login=LOGIN)
        await crawl(db, at=START)

    moved = await rows(db, "SELECT count(*) FROM visit WHERE change = 'moved'")
    assert club.tries <= 1 + 3
    assert await known(db) == 1 + len(PAGES) - 2
    assert moved == [(0,)]


async def test_a_login_that_is_not_accepted_is_a_hold_that_grows_and_no_page_is_asked(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCS_PASS", "wrong-one")
    club = Club()
    async with door(club) as server:
        await register(db, server.url, login=LOGIN)
        first = await crawl(db, at=START)
        again = await crawl(db, at=START + timedelta(hours=12))

    holds = [hold for result in (first, again) for hold in result.suspensions.values()]
    reason = "login_failed the form is shown again: the credentials were not accepted"
    assert {hold.reason for hold in holds} == {reason}
    assert holds[1].rejections == 2
    assert club.tries == 2
    assert set(server.pages) == {"/login"}


@pytest.mark.parametrize(
    ("form", "why"),
    [
        (Reply("<p>no form"), "no form with the fields user, password at /login"),
        (Reply("<form><input name=user><input name=password></form>"), "does not use POST"),
        (
            Reply("<form method=post action=http://elsewhere.test/x><input name=user><input name=password></form>"),
            "is submitted to another domain",
        ),
        (Reply(status=302, headers=("Location: http://elsewhere.test/sso",)), "redirects to another domain"),
        (Reply("gone", 500), "no form"),
    ],
)
async def test_what_is_no_form_for_us_gets_no_password(db: Database, form: Reply, why: str) -> None:
    async with door(lambda asked: form if asked.target == "/login" else site(asked)) as server:
        await register(db, server.url, login=LOGIN)
        done = await crawl(db, at=START)

    (hold,) = done.suspensions.values()
    assert why in hold.reason
    assert all(asked.method == "GET" for asked in server.asked)


async def test_a_domain_is_asked_by_way_of_its_proxy_alone(db: Database) -> None:
    async with door(site) as server, tunnel_proxy(wanted=BASIC) as proxy:
        address = f"http://127.0.0.1:{proxy.port}"
        await register(
            db, server.url, proxy=f"{address} env:DOCS_USER env:DOCS_PASS", headers=("X-Key: env:DOCS_TOKEN",)
        )
        await crawl(db, at=START)

    assert await known(db) == 1 + len(PAGES)
    assert set(proxy.targets) == {f"127.0.0.1:{server.port}"}
    assert all("X-Key" not in head and TOKEN not in head for head in proxy.heads)
    assert all(asked.headers["x-key"] == TOKEN for asked in server.asked)
    assert len(proxy.heads) <= 8  # tunnels are reused


async def over_tls(db: Database, port: int, **settings: Any) -> tuple[Domain, ShiftResult]:
    wished = DomainSettings(allow_private=True, delay=timedelta(0), **settings)
    name = Authority(f"localhost:{port}")
    domain = await domains.register(db, name, scheme="https", domain_settings=wished, at=START)
    return domain, await crawl(db, at=START)


async def test_certificates_are_checked_unless_the_domains_user_says_otherwise(db: Database, certificate: Path) -> None:
    context = tls(certificate)
    found = {}
    ways: dict[str, dict[str, Any]] = {
        "checked": {},
        "insecure": {"insecure_tls": True},
        "pinned": {"ca_file": str(certificate)},
    }
    for name, settings in ways.items():
        async with door(site, tls=context) as server:
            domain, done = await over_tls(db, server.port, **settings)
            found[name] = (len(server.pages) > 0, [hold.reason for hold in done.suspensions.values()])
            await domains.remove(db, domain)
    async with door(site, tls=context) as server:
        _, done = await over_tls(db, server.port, ca_file="/nowhere/at/all.pem")

    assert found == {"checked": (False, ["tls"]), "insecure": (True, []), "pinned": (True, [])}
    assert [hold.reason for hold in done.suspensions.values()] == ["no_certificates /nowhere/at/all.pem"]
    assert server.asked == []
