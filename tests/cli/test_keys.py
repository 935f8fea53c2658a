"""Credentials of domains on the command line: given only by reference, and never visible to others."""

import asyncio
import contextlib
import json
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from crawler.store.database import Database, open_database
from tests.engine.crawls import command, rows
from tests.engine.doors import Asked, Reply, door
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


def files_in(folder: Path) -> str:
    """Return the content of all files in a folder."""
    return "".join(path.read_text(errors="replace") for path in folder.rglob("*") if path.is_file())


@pytest.fixture
async def db(database_url: str) -> AsyncIterator[Database]:
    async with open_database(database_url) as database:
        yield database


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
    database_url: str, tmp_path: Path, options: list[str], says: str
) -> None:
    done = command("domains", "add", "--offline", "a.test", *options, database_url=database_url, home=tmp_path)

    said = " ".join(done.stderr.replace("\u2502", " ").split())
    assert done.returncode == 2
    assert says in said
    assert LITERAL not in done.stdout + done.stderr


async def test_no_secret_is_found_in_the_database_the_output_the_files_or_the_process_list(
    db: Database, database_url: str, tmp_path: Path
) -> None:
    club = Club(ends_after=6)
    processes: list[str] = []

    def watched(asked: Asked) -> Reply:
        processes.extend(
            path.read_bytes().decode(errors="replace") for path in Path("/proc").glob("[0-9]*/cmdline") if path.exists()
        )
        if asked.headers.get("x-key") != TOKEN or asked.headers.get("authorization") != BASIC:
            return Reply("no entry", 401)
        return club(asked)

    options = ["--header", "X-Key: env:DOCS_TOKEN", "--auth", "basic env:DOCS_USER env:DOCS_PASS", "--login", LOGIN]
    async with door(watched) as server:
        wanted = (
            ["crawl", server.url, "--allow-private", *options],
            ["try", server.url],
            ["domains", "show", server.url],
            ["domains", "show", server.url, "--json"],
            ["plan"],
            ["report"],
        )
        said = [await _run(arguments, database_url, tmp_path, SECRETS) for arguments in wanted]
        sessions = [f"s-{n + 1}" for n in range(club.logins)]

    dump = await _dump(db)
    everything = {
        "output": "".join(one.stdout + one.stderr for one in said),
        "database": dump,
        "files": files_in(tmp_path),
        "processes": "".join(processes),
    }
    hidden = [USER, PASSWORD, TOKEN, BASIC.removeprefix("Basic "), "t-77", *(f"sid={one}" for one in sessions)]
    assert [one.returncode for one in said] == [0] * len(said), [one.stderr for one in said]
    assert club.logins >= 2
    assert "env:DOCS_PASS" in dump
    assert {(where, secret) for where, text in everything.items() for secret in hidden if secret in text} == set()


async def test_a_missing_variable_is_named_and_no_request_is_sent(
    db: Database, database_url: str, tmp_path: Path
) -> None:
    async with door(site) as server:
        arguments = ["crawl", server.url, "--allow-private", "--auth", "bearer env:DOCS_TOKEN"]
        done = await _run(arguments, database_url, tmp_path, {})
        shown = await _run(["domains", "show", server.url], database_url, tmp_path, {})
        tried = await _run(["try", server.url], database_url, tmp_path, {})

    assert server.asked == []
    assert done.returncode == 1
    for one in (done.stderr, shown.stdout, tried.stdout + tried.stderr):
        assert "the secret env:DOCS_TOKEN is not there" in " ".join(one.split())


@pytest.mark.soak
async def test_exceptions_of_tls_and_hours_are_shown(database_url: str, tmp_path: Path) -> None:
    add = ["domains", "add", "--offline", "https://a.test/", "--insecure-tls", "--hours", "22-06 x2 Europe/Vienna"]
    await _run(add, database_url, tmp_path, {})

    at = ["--at", "2026-01-07T12:00Z"]
    shown = (await _run(["domains", "show", "a.test", *at], database_url, tmp_path, {})).stdout
    document = json.loads((await _run(["domains", "show", "a.test", "--json"], database_url, tmp_path, {})).stdout)
    asked = await _run(["crawl", "a.test", *at], database_url, tmp_path, {})

    assert "INSECURE: certificates are not verified" in shown
    assert "closed until" in shown
    assert (document["settings"]["insecure_tls"], document["settings"]["hours"]) == (True, "22-06 x2 Europe/Vienna")
    assert "is outside its crawl hours until" in asked.stdout
    assert asked.returncode == 0


async def _run(
    arguments: list[str], database_url: str, home: Path, environment: dict[str, str]
) -> subprocess.CompletedProcess[str]:
    """Return the command, with a server in this process."""
    return await asyncio.to_thread(command, *arguments, database_url=database_url, home=home, **environment)


async def _dump(db: Database) -> str:
    """Return every row of every table as text."""
    tables = await rows(
        db, "SELECT format('%%I.%%I', schemaname, tablename) FROM pg_tables WHERE schemaname = 'public'"
    )
    found = [await rows(db, f"SELECT t::text FROM {table} t") for (table,) in tables]
    return "\n".join(str(row[0]) for table in found for row in table)
