import asyncio
import socket
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from crawler.app.registration import DomainCandidate, parse_candidate, probe_domain, register_candidate
from crawler.app.root_probe import RootProbe
from crawler.core.budget.ledger import SharedBudget
from crawler.core.http.urls import Authority, Url
from crawler.core.tags import LayeredSettings
from crawler.errors import BadInput
from crawler.fetch import Http
from crawler.store import claim, domains
from crawler.store.database import Database, open_database
from tests.fetch.server import Request, Send, Server, answer, serving
from tests.patience import PATIENCE_S

START = datetime(2026, 1, 1, tzinfo=UTC)
SOON = timedelta(seconds=PATIENCE_S)  # never elapses in a test
DELAY = timedelta(seconds=40)  # nor does this
ADDRESSES = {"example.test": "127.0.0.1", "www.example.test": "127.0.0.1", "other.test": "127.0.0.1"}


def resolve(host: str) -> Sequence[str]:
    if host not in ADDRESSES:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
    return (ADDRESSES[host],)


def http(*, allow_private: bool = True, lookup: Callable[[str], Sequence[str]] = resolve) -> Http:
    return Http(user_agent="recrawl/test", allow_private=allow_private, lookup=lookup)


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    async with serving() as found:
        found.says("/", answer(b"hello"))
        found.says("/robots.txt", answer(b"", status="404 Not Found"))
        yield found


def leads(server: Server, places: dict[str, str], *, status: str = "301 Moved Permanently") -> None:
    """Redirect or return the root page, depending on the requested name."""

    async def reply(request: Request, send: Send) -> None:
        name = (request.header("Host") or b"").decode()
        to = places.get(name)
        await send(answer(b"", f"Location: {to}", status=status) if to is not None else answer(b"hello"))

    server.does("/", reply)


def paths(server: Server) -> list[str]:
    return [request.line.split(b" ")[1].decode() for request in server.heard]


@contextmanager
def closed_port() -> Iterator[int]:
    """Reserve a port that refuses connections."""
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        yield unused.getsockname()[1]


async def ask(text: str, *, allow_private: bool = True, delay: timedelta = timedelta(0)) -> DomainCandidate:
    async with http(allow_private=allow_private) as web:
        return await probe_domain(RootProbe(web, delay=delay, deadline=SOON), text)


async def test_a_root_without_redirect_is_registered_as_typed(server: Server) -> None:
    found = await ask(f"example.test:{server.port}")

    assert (found.authority, found.scheme, found.addresses) == (f"example.test:{server.port}", "http", ("127.0.0.1",))
    assert (found.aliases, found.seeds, found.warning) == ((), (), "")


async def test_an_apex_that_leads_to_www_is_registered_as_www(server: Server) -> None:
    port = server.port
    leads(server, {f"example.test:{port}": f"http://www.example.test:{port}/"})

    found = await ask(f"http://example.test:{port}/guide/?page=2")

    assert found.authority == f"www.example.test:{port}"
    assert found.aliases == (f"example.test:{port}",)
    assert found.seeds == (f"http://www.example.test:{port}/guide/?page=2",)
    assert found.warning == ""


async def test_a_root_that_leads_to_https_is_registered_with_https(server: Server) -> None:
    with closed_port() as port:
        leads(server, {f"example.test:{server.port}": f"https://example.test:{port}/"})

        found = await ask(f"http://example.test:{server.port}")

    assert (found.scheme, found.authority) == ("https", f"example.test:{port}")
    assert "refused" in found.warning


async def test_a_root_that_leads_to_a_path_of_its_own_stays_what_it_is(server: Server) -> None:
    leads(server, {f"example.test:{server.port}": "/en/"}, status="302 Found")

    found = await ask(f"http://example.test:{server.port}")

    assert (found.authority, found.aliases, found.warning) == (f"example.test:{server.port}", (), "")
    assert paths(server) == ["/robots.txt", "/"]


async def test_a_redirect_to_another_domain_is_an_error_that_names_it(server: Server) -> None:
    leads(server, {f"example.test:{server.port}": f"http://other.test:{server.port}/"})

    with pytest.raises(BadInput, match=rf"redirects to another domain, other\.test:{server.port}"):
        await ask(f"http://example.test:{server.port}")


async def test_names_that_lead_to_each_other_end_with_a_warning(server: Server) -> None:
    one, other = f"example.test:{server.port}", f"www.example.test:{server.port}"
    leads(server, {one: f"http://{other}/", other: f"http://{one}/"})

    found = await ask(f"http://{one}")

    assert "in a loop" in found.warning
    assert {found.authority, *found.aliases} == {one, other}
    assert paths(server).count("/") <= 6
    assert paths(server).count("/robots.txt") == 2


async def test_hops_to_the_same_server_keep_its_delay(server: Server) -> None:
    heard: list[float] = []
    one, other = f"example.test:{server.port}", f"www.example.test:{server.port}"
    places = {one: f"http://{other}/", other: f"http://{one}/"}

    async def reply(request: Request, send: Send) -> None:
        heard.append(time.monotonic())
        name = (request.header("Host") or b"").decode()
        # First to www, and from there back to a name that was requested before.
        await send(answer(b"", f"Location: {places[name]}", status="301 Moved Permanently"))

    server.does("/", reply)
    await ask(f"http://{one}", delay=timedelta(seconds=0.6))

    same_name = [later - earlier for earlier, later in zip(heard, heard[2:], strict=False)]
    assert len(same_name) >= 3
    assert min(same_name) >= 0.3  # the server's clock starts later than ours


async def test_two_names_on_one_server_are_requested_one_after_the_other(server: Server) -> None:
    heard: list[float] = []

    async def reply(_: Request, send: Send) -> None:
        heard.append(time.monotonic())
        await send(answer(b"hello"))

    server.does("/", reply)
    async with http() as web, asyncio.TaskGroup() as tasks:
        roots = RootProbe(web, delay=timedelta(seconds=0.6), deadline=SOON)
        for path in ("a", "b"):
            tasks.create_task(probe_domain(roots, f"http://example.test:{server.port}/{path}"))

    assert heard[1] - heard[0] >= 0.3


async def test_a_root_that_robots_txt_forbids_is_not_requested(server: Server) -> None:
    server.says("/robots.txt", answer(b"User-agent: recrawl, otherbot\nDisallow: /"))

    found = await ask(f"http://example.test:{server.port}/open/")

    assert paths(server) == ["/robots.txt"]
    assert "forbids its root page" in found.warning
    assert found.robots is not None
    assert (found.authority, found.requests) == (f"example.test:{server.port}", 1)


@pytest.mark.parametrize("status", ["503 Service Unavailable", "429 Too Many Requests", "500 Internal Server Error"])
async def test_while_robots_txt_is_unavailable_the_root_is_not_requested(server: Server, status: str) -> None:
    server.says("/robots.txt", answer(b"", status=status))

    found = await ask(f"http://example.test:{server.port}")

    assert paths(server) == ["/robots.txt"]
    assert f"returned status {status[:3]} for its robots.txt; the crawl will try again" in found.warning
    assert found.robots is None


async def test_a_long_crawl_delay_is_kept_before_the_root_and_in_the_first_lease(server: Server, db: Database) -> None:
    server.says("/robots.txt", answer(b"User-agent: *\nCrawl-delay: 3600"))

    found = await ask(f"http://example.test:{server.port}")
    domain = await register_candidate(db, found, LayeredSettings(), delay=timedelta(seconds=1), at=START)
    status = await domains.read_status(db, domain, at=START)

    assert paths(server) == ["/robots.txt"]
    assert status.next_request_at is not None
    assert status.next_request_at - datetime.now(UTC) > timedelta(minutes=55)
    async with db.transaction() as connection:
        row = await (await connection.execute("SELECT body, due_at FROM robots")).fetchone()
    assert row == (b"User-agent: *\nCrawl-delay: 3600", START + timedelta(days=1))


async def test_robots_txt_leads_to_no_other_private_port_however_the_domain_was_added(server: Server) -> None:
    async with serving() as other:
        secret = other.says("/robots.txt", answer(b"User-agent: *\nAllow: /"))
        server.says("/robots.txt", answer(b"", f"Location: {secret}", status="301 Moved Permanently"))

        found = await ask(f"http://example.test:{server.port}", allow_private=True)

    assert other.heard == []
    assert paths(server) == ["/robots.txt"]
    assert "is unavailable (address: 127.0.0.1 is a private address)" in found.warning


async def test_a_name_without_an_address_is_refused_with_the_next_step() -> None:
    with pytest.raises(BadInput, match=r"nowhere\.test cannot be resolved .*--offline"):
        await ask("nowhere.test")


async def test_a_private_address_is_refused_with_the_next_step(server: Server) -> None:
    with pytest.raises(BadInput, match="a private address: if it is your own server, allow private addresses"):
        await ask(f"http://127.0.0.1:{server.port}", allow_private=False)
    with pytest.raises(BadInput, match="a private address: if it is your own server, allow private addresses"):
        await ask(f"http://example.test:{server.port}", allow_private=False)
    assert server.heard == []


async def test_a_cloud_metadata_address_is_never_requested() -> None:
    with pytest.raises(BadInput) as refused:
        await ask("http://169.254.169.254/")

    assert "--allow-private" not in str(refused.value)


async def test_a_server_that_refuses_is_registered_with_a_warning() -> None:
    with closed_port() as port:
        found = await ask(f"http://example.test:{port}/")

    assert found.authority == f"example.test:{port}"
    assert "refused" in found.warning


async def test_a_server_that_fails_is_registered_with_a_warning(server: Server) -> None:
    server.says("/", answer(b"", status="500 Internal Server Error"))
    failing = await ask(f"http://example.test:{server.port}")
    server.says("/", b"what?\r\n\r\n", close=True)
    stammering = await ask(f"http://example.test:{server.port}")

    assert "status 500" in failing.warning
    assert "garbage" in stammering.warning


async def test_a_missing_root_is_nothing_to_warn_of(server: Server) -> None:
    server.says("/", answer(b"", status="404 Not Found"))

    assert (await ask(f"http://example.test:{server.port}")).warning == ""


async def test_without_a_scheme_https_is_tried_if_http_is_refused() -> None:
    asked: list[str] = []

    class Deaf(Http):
        async def fetch(self, url: Url, **options: object) -> object:  # type: ignore[override]
            asked.append(url)
            return await super().fetch(url, **options)  # type: ignore[arg-type]

    async with Deaf(user_agent="recrawl/test", allow_private=True, lookup=lambda _: ("127.83.17.4",)) as web:
        guessed = await probe_domain(RootProbe(web, delay=timedelta(0), deadline=SOON), "example.test")
        said = await probe_domain(RootProbe(web, delay=timedelta(0), deadline=SOON), "http://example.test")

    assert asked == [
        f"{root}robots.txt" for root in ("http://example.test/", "https://example.test/", "http://example.test/")
    ]
    assert guessed.scheme == said.scheme == "http"
    assert "refused" in guessed.warning


@pytest.mark.parametrize(
    "text", ["file:///etc/passwd", "", "http://", "ftp://example.test/", "http://me:pw@example.test"]
)
async def test_an_invalid_url_is_an_error_before_any_request(text: str) -> None:
    with pytest.raises(BadInput):
        await ask(text)
    with pytest.raises(BadInput):
        parse_candidate(text)


def test_offline_the_name_is_taken_as_it_is() -> None:
    found = parse_candidate("https://nowhere.test/deep/inside")

    assert found == DomainCandidate(
        Authority("nowhere.test"), "https", seeds=(Url("https://nowhere.test/deep/inside"),)
    )


@pytest.fixture
async def db(database_url: str) -> AsyncIterator[Database]:
    async with open_database(database_url) as database:
        yield database


async def test_what_was_found_is_kept(db: Database) -> None:
    found = DomainCandidate(
        Authority("www.example.test"),
        "https",
        aliases=(Authority("example.test"),),
        addresses=("192.0.2.1",),
        seeds=(Url("https://www.example.test/a"),),
    )
    domain_settings = LayeredSettings({"seeds": (Url("http://example.test/b"),)})

    domain = await register_candidate(db, found, domain_settings, delay=DELAY, at=START)

    assert await domains.find_domain(db, Authority("example.test")) == domain
    assert domain.settings.seeds == ("https://www.example.test/a", "https://www.example.test/b")
    async with db.transaction() as connection:
        row = await (await connection.execute("SELECT addresses FROM domain_state")).fetchone()
    assert row == (["192.0.2.1"],)


@pytest.mark.parametrize(
    ("values", "complaint"),
    [
        ({"seeds": (Url("http://other.test/"),)}, "is not a page of example.test"),
        ({"seeds": (Url("http://example.test/a.pdf"),), "exclude": ("*.pdf$",)}, "out of scope"),
        ({"include": ("docs",)}, "must begin with"),
        ({"exclude": ("re:(",)}, "not a regular expression"),
    ],
)
async def test_invalid_settings_register_nothing(db: Database, values: dict[str, Any], complaint: str) -> None:
    with pytest.raises(BadInput, match=complaint):
        await register_candidate(
            db, DomainCandidate(Authority("example.test"), "http"), LayeredSettings(values), delay=DELAY, at=START
        )

    assert await domains.list_domains(db) == []


async def test_a_name_is_registered_once(db: Database) -> None:
    await register_candidate(
        db,
        DomainCandidate(Authority("www.a.test"), "http", aliases=(Authority("a.test"),)),
        LayeredSettings(),
        delay=DELAY,
        at=START,
    )

    for name in ("www.a.test", "a.test"):
        with pytest.raises(BadInput, match="already registered"):
            await register_candidate(
                db, DomainCandidate(Authority(name), "http"), LayeredSettings(), delay=DELAY, at=START
            )


@pytest.mark.parametrize(("delay", "least"), [(timedelta(seconds=40), 10), (timedelta(0), 0)])
async def test_the_first_lease_respects_the_registrations_delay(db: Database, delay: timedelta, least: int) -> None:
    await register_candidate(db, DomainCandidate(Authority("a.test"), "http"), LayeredSettings(), delay=delay, at=START)

    lease = await claim.claim(
        db,
        at=START,
        term=timedelta(minutes=10),
        delay=timedelta(seconds=1),
        holder="tests",
    )

    assert lease is not None
    assert timedelta(seconds=least) <= lease.wait <= delay


async def test_a_question_outside_any_lease_puts_the_next_request_off(db: Database) -> None:
    domain = await register_candidate(
        db, DomainCandidate(Authority("a.test"), "http"), LayeredSettings(), delay=timedelta(0), at=START
    )
    before = await domains.read_status(db, domain, at=START)

    await domains.delay_next_request(db, domain, delay=DELAY)
    await domains.delay_next_request(db, domain, delay=timedelta(0))

    after = await domains.read_status(db, domain, at=START)
    assert before.next_request_at is None
    assert after.next_request_at is not None
    assert after.next_request_at > datetime.now(UTC) + DELAY / 2


async def test_registration_respects_the_budget(server: Server) -> None:
    port = server.port
    leads(server, {f"example.test:{port}": f"http://www.example.test:{port}/"})
    typed = f"http://example.test:{port}/deep"

    async with http() as web:
        none = await probe_domain(RootProbe(web, delay=timedelta(0), deadline=SOON), typed, max_requests=0)
        one = await probe_domain(RootProbe(web, delay=timedelta(0), deadline=SOON), typed, max_requests=1)
        two = await probe_domain(RootProbe(web, delay=timedelta(0), deadline=SOON), typed, max_requests=2)
        enough = await probe_domain(RootProbe(web, delay=timedelta(0), deadline=SOON), typed, max_requests=4)
        together = RootProbe(web, delay=timedelta(0), deadline=SOON, max_requests=6)
        shared = [await probe_domain(together, typed) for _ in range(3)]

    assert (none.requests, none.authority, none.seeds) == (0, f"example.test:{port}", (Url(typed),))
    assert "was not fetched: the budget allows no request today" in none.warning
    assert (one.requests, one.authority) == (1, f"example.test:{port}")  # robots.txt alone
    assert (two.requests, two.authority) == (
        2,
        f"www.example.test:{port}",
    )  # the target of the redirect, which was not requested
    assert (enough.requests, enough.received_bytes) == (4, len(b"hello"))
    assert (two.aliases, two.seeds, two.warning) == (enough.aliases, enough.seeds, enough.warning)
    assert [found.requests for found in shared] == [4, 2, 0]
    assert len(server.heard) == 0 + 1 + 2 + 4 + 6


async def test_what_asking_the_root_took_is_on_the_domains_account(db: Database) -> None:
    found = DomainCandidate(Authority("a.test"), "http", requests=2, received_bytes=500)
    domain = await register_candidate(db, found, LayeredSettings({"budget_per_day": 3}), delay=timedelta(0), at=START)
    lease = await claim.claim(db, at=START, term=timedelta(minutes=10), holder="tests")
    assert lease is not None

    granted = await claim.debit(db, lease, max_requests=10, at=START, paced=False)
    await claim.charge(db, domain, requests=1, received_bytes=0, at=START + timedelta(days=1))
    tomorrow = await claim.debit(db, lease, max_requests=10, at=START + timedelta(days=1), paced=False)

    assert (granted.requests, tomorrow.requests) == (1, 2)


async def test_what_asking_roots_took_is_on_the_account_of_all_domains_together(db: Database) -> None:
    together = SharedBudget(requests=5)

    await claim.charge_shared_budget(db, requests=3, received_bytes=500, at=START)

    assert await claim.count_shared_requests_left(db, together, at=START) == 2
    assert await claim.count_shared_requests_left(db, SharedBudget(requests=5, received_bytes=500), at=START) == 0
    assert await claim.count_shared_requests_left(db, together, at=START + timedelta(days=1)) == 5
    assert await claim.count_shared_requests_left(db, SharedBudget(), at=START) is None
