"""Credentials of domains on the command line: given only by reference, and never visible to others."""

import contextlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest
from anyio.from_thread import start_blocking_portal

from tests.commands import Recrawl, command
from tests.engine.doors import Answering, Asked, DoorServer, Reply, door
from tests.engine.test_keys import BASIC, LOGIN, PASSWORD, TOKEN, USER, Club, site

SECRETS = {"DOCS_USER": USER, "DOCS_PASS": PASSWORD, "DOCS_TOKEN": TOKEN}
LITERAL = "typed-by-mistake-77"


def process_list() -> str:
    """Return the command lines of all processes, which every user of the machine can read."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):  # the process has ended
            found.append(path.read_bytes().decode(errors="replace"))
    return "\n".join(found)


@contextmanager
def opened(answer: Answering) -> Iterator[DoorServer]:
    """Run a server beside the commands of this process."""
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(door(answer)) as server:
        yield server


def files_in(folder: Path) -> str:
    """Return the content of all files in a folder."""
    return "".join(path.read_text(errors="replace") for path in folder.rglob("*") if path.is_file())


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--header", f"X-Key: {LITERAL}"], "env:NAME"),
        (["--auth", f"basic env:DOCS_USER {LITERAL}"], "env:NAME"),
        (["--auth", f"bearer {LITERAL}"], "env:NAME"),
        (["--login", f"/login user=env:DOCS_USER password={LITERAL}"], "env:NAME"),
        (["--proxy", f"http://me:{LITERAL}@127.0.0.1:3128"], "env:USER env:PASSWORD"),
        (["--ca-file", "certificates.pem"], "absolute path"),
        (["--insecure-tls", "--ca-file", "/etc/ca.pem"], "--insecure-tls"),
        (["--hours", "Mon-Fri 22:00-25:00"], "write them as in 'Mon-Fri 22:00-06:00 Europe/Vienna"),
    ],
)
def test_invalid_credentials_are_a_one_line_error_with_the_remedy(
    recrawl: Recrawl, options: list[str], says: str
) -> None:
    done = recrawl("domains", "add", "--offline", "a.test", *options)

    said = " ".join(done.err.replace("\u2502", " ").split())
    assert done.code == 2
    assert says in said
    assert LITERAL not in done.out + done.err


def test_no_secret_is_found_in_the_database_the_output_the_files_or_the_process_list(
    recrawl: Recrawl, database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    club = Club(ends_after=6)
    processes: list[str] = []
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)

    def watched(asked: Asked) -> Reply:
        processes.append(process_list())
        if asked.headers.get("x-key") != TOKEN or asked.headers.get("authorization") != BASIC:
            return Reply("no entry", 401)
        return club(asked)

    options = ["--header", "X-Key: env:DOCS_TOKEN", "--auth", "basic env:DOCS_USER env:DOCS_PASS", "--login", LOGIN]
    with opened(watched) as server:
        others = (
            ("try", server.url),
            ("domains", "show", server.url),
            ("domains", "show", server.url, "--json"),
            ("plan",),
            ("report",),
        )
        # A process, because others can read its command line.
        crawled = command("crawl", server.url, "--allow-private", *options, database_url=database_url, home=tmp_path)
        said = [crawled, *(recrawl(*words) for words in others)]
        sessions = [f"s-{n + 1}" for n in range(club.logins)]

    stored = dump(database_url)
    everything = {
        "output": "".join(one.out + one.err for one in said),
        "database": stored,
        "files": files_in(tmp_path),
        "processes": "".join(processes),
    }
    hidden = [USER, PASSWORD, TOKEN, BASIC.removeprefix("Basic "), "t-77", *(f"sid={one}" for one in sessions)]
    assert [one.code for one in said] == [0] * len(said), [one.err for one in said]
    assert club.logins >= 2
    assert "env:DOCS_PASS" in stored
    assert any(server.url in each for each in processes)
    assert {(where, secret) for where, text in everything.items() for secret in hidden if secret in text} == set()


def test_a_missing_variable_is_named_and_no_request_is_sent(recrawl: Recrawl) -> None:
    with opened(site) as server:
        done = recrawl("crawl", server.url, "--allow-private", "--auth", "bearer env:DOCS_TOKEN")
        shown = recrawl("domains", "show", server.url)
        tried = recrawl("try", server.url)

    assert server.asked == []
    assert done.code == 1
    for said in (done.err, shown.out, tried.out + tried.err):
        assert "the secret env:DOCS_TOKEN is not there" in " ".join(said.split())


@pytest.mark.soak
def test_exceptions_of_tls_and_hours_are_shown(recrawl: Recrawl) -> None:
    recrawl("domains", "add", "--offline", "https://a.test/", "--insecure-tls", "--hours", "22-06 x2 Europe/Vienna")

    at = ["--at", "2026-01-07T12:00Z"]
    shown = recrawl("domains", "show", "a.test", *at).out
    document = recrawl("domains", "show", "a.test", "--json").json
    asked = recrawl("crawl", "a.test", *at)

    assert "INSECURE: certificates are not verified" in shown
    assert "closed until" in shown
    assert (document["settings"]["insecure_tls"], document["settings"]["hours"]) == (True, "22-06 x2 Europe/Vienna")
    assert "is outside its crawl hours until" in asked.out
    assert asked.code == 0


def dump(database_url: str) -> str:
    """Return every row of every table as text."""
    tables = "SELECT format('%I.%I', schemaname, tablename) FROM pg_tables WHERE schemaname = 'public'"
    with psycopg.connect(database_url) as connection:
        found = [
            connection.execute(f"SELECT t::text FROM {table} t".encode()).fetchall()
            for (table,) in connection.execute(tables).fetchall()
        ]
    return "\n".join(row for each in found for (row,) in each)
