"""Fixtures of the web UI: a server, in a thread or in a process of its own, and an HTTP client."""

import asyncio
import http.client
import re
import signal
import subprocess
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from html import unescape
from pathlib import Path
from urllib.parse import urlencode, urlsplit

import pytest
from anyio.from_thread import start_blocking_portal
from pydantic import SecretStr

from crawler.app.database import open_configured_database
from crawler.server import server
from crawler.settings import Settings
from tests.commands import RECRAWL, Recrawl, Site, environ
from tests.patience import PATIENCE_S

HOST_AND_PORT = re.compile(r"https?://[^/?]+")
CSRF_TOKEN = re.compile(r'name="csrf_token" value="([0-9a-f]*)"')


@dataclass(frozen=True, slots=True)
class Seen:
    """A response."""

    status: int
    headers: Mapping[str, str]
    text: str

    @property
    def words(self) -> str:
        """Return the visible text."""
        return " ".join(unescape(re.sub(r"<[^>]*>", " ", self.text)).split())


@dataclass(slots=True)
class Visitor:
    """An HTTP client of the server.

    login_link: its login link.  pid: its process, 0 if it is a thread.  csrf_tokens: the token of each session so far.
    """

    address: str
    login_link: str
    pid: int = 0
    cookie: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    csrf_tokens: dict[str, str] = field(default_factory=dict)

    def get(self, path: str, **headers: str) -> Seen:
        return self.ask("GET", path, b"", headers)

    def post(self, path: str, form: Mapping[str, str], **headers: str) -> Seen:
        given = {"Origin": self.address, "Content-Type": "application/x-www-form-urlencoded"} | headers
        return self.ask("POST", path, urlencode(form).encode(), given)

    def ask(self, method: str, path: str, body: bytes, headers: Mapping[str, str]) -> Seen:
        connection = http.client.HTTPConnection(urlsplit(self.address).netloc, timeout=PATIENCE_S)
        cookies = {"Cookie": self.cookie} if self.cookie else {}
        try:
            connection.request(method, path, body or None, {**cookies, **self.headers, **headers})
            answer = connection.getresponse()
            text = answer.read().decode()
            return Seen(answer.status, {name.lower(): value for name, value in answer.getheaders()}, text)
        finally:
            connection.close()

    def resident(self) -> int:
        """Return the memory of the server and its child processes, in bytes.

        Shared mappings, such as the code of libraries, count in proportion (Pss), because the kernel chooses how much
        of such a file is mapped.
        """
        return sum(_kilobytes(pid, "smaps_rollup", "Pss") for pid in (self.pid, *_children(self.pid))) * 1024

    def most_resident(self) -> int:
        """Return the peak memory of the server including shared mappings, in bytes."""
        return _kilobytes(self.pid, "status", "VmHWM") * 1024

    def log_in(self) -> Seen:
        """Log in with the printed link."""
        seen = self.get(self.login_link.removeprefix(self.address))
        if "set-cookie" in seen.headers:
            self.cookie = seen.headers["set-cookie"].partition(";")[0]
        return seen

    def log_in_as(self, name: str, password: str, **headers: str) -> Seen:
        """Log in with a name and a password."""
        seen = self.post("/login", {"name": name, "password": password}, **headers)
        if "set-cookie" in seen.headers:
            self.cookie = seen.headers["set-cookie"].partition(";")[0]
        return seen

    def send(self, path: str, **form: str) -> Seen:
        """Submit a form with the CSRF token and return the page that it redirects to."""
        seen = self.post(path, {"csrf_token": self.find_csrf_token(), **form})
        return self.get(seen.headers["location"]) if seen.status == 303 else seen

    def find_csrf_token(self) -> str:
        """Return the CSRF token of this session."""
        if self.cookie not in self.csrf_tokens:
            found = CSRF_TOKEN.search(self.get("/account").text)
            assert found is not None
            self.csrf_tokens[self.cookie] = found[1]
        return self.csrf_tokens[self.cookie]


def _kilobytes(pid: int, account: str, what: str) -> int:
    lines = Path(f"/proc/{pid}/{account}").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{what}:"))


def _children(pid: int) -> Iterator[int]:
    for thread in Path(f"/proc/{pid}/task").iterdir():
        for child in (thread / "children").read_text().split():
            yield int(child)
            yield from _children(int(child))


@contextmanager
def served(database_url: str, home: Path, **more: object) -> Iterator[Visitor]:
    """Serve the web UI of this database from a thread to a client that is not logged in. more: settings."""
    settings = Settings(home=home, database_url=SecretStr(database_url), **{"PREFECT_API_URL": None, **more})

    @asynccontextmanager
    async def serve() -> AsyncIterator[Visitor]:
        stop, login_link = asyncio.Event(), asyncio.Future[str]()
        async with (
            open_configured_database(settings, connections=server.CONNECTIONS) as db,
            asyncio.TaskGroup() as tasks,
        ):
            tasks.create_task(server.serve(db, host="127.0.0.1", port=0, report=login_link.set_result, stop=stop))
            yield visit(await login_link)
            stop.set()

    with start_blocking_portal() as portal, portal.wrap_async_context_manager(serve()) as visitor:
        yield visitor


@contextmanager
def served_by_process(database_url: str, home: Path) -> Iterator[Visitor]:
    """Serve the web UI of this database with `recrawl serve` to a client that is not logged in."""
    process = subprocess.Popen(
        [RECRAWL, "serve"],
        env=environ(database_url, home),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        words = process.stdout.readline().split()
        assert words, process.communicate()
        yield visit(words[-1], process.pid)
    finally:
        process.send_signal(signal.SIGTERM)
        _, complaint = process.communicate(timeout=PATIENCE_S)
        assert "Traceback" not in complaint, complaint
        assert process.returncode in {0, 128 + signal.SIGTERM}, complaint


def visit(login_link: str, pid: int = 0) -> Visitor:
    found = HOST_AND_PORT.match(login_link)
    assert found is not None, login_link
    return Visitor(found[0], login_link, pid)


@pytest.fixture
def anonymous(database_url: str, tmp_path: Path) -> Iterator[Visitor]:
    """Return a client that is not logged in."""
    with served(database_url, tmp_path) as visitor:
        yield visitor


@pytest.fixture
def visitor(anonymous: Visitor) -> Visitor:
    """Return a client that is logged in."""
    assert anonymous.log_in().status == 303
    return anonymous


@pytest.fixture
def process_visitor(database_url: str, tmp_path: Path) -> Iterator[Visitor]:
    """Return a logged in client of a server process of its own."""
    with served_by_process(database_url, tmp_path) as visitor:
        assert visitor.log_in().status == 303
        yield visitor


@pytest.fixture(scope="module")
def shared_anonymous(shared_database_url: str, shared_home: Path) -> Iterator[Visitor]:
    """Return a client that is not logged in, of the database that the module's tests share."""
    with served(shared_database_url, shared_home) as visitor:
        yield visitor


@pytest.fixture(scope="module")
def reader(shared_anonymous: Visitor) -> Visitor:
    """Return a client that is logged in, of the database that the module's tests share."""
    assert shared_anonymous.log_in().status == 303
    return shared_anonymous


def crawl_three_pages(recrawl: Recrawl, site: Site) -> None:
    """Crawl a site with three different pages once."""
    site.page("/", "/one", "/two", text="The mill by the river opens at nine and sells flour to whoever asks.")
    site.page("/one", "/two", text="Rye is sown in autumn and cut in July, before the wheat of the lower fields.")
    site.page("/two", "/", text="Bread keeps for a week in a linen bag, longer where the pantry is cold.")
    assert recrawl("crawl", site.url, "--allow-private").code == 0


@pytest.fixture
def crawled(recrawl: Recrawl, site: Site) -> Site:
    """Return a site with three different pages that was crawled once."""
    crawl_three_pages(recrawl, site)
    return site
