"""The command as a process: signals, concurrency, and the embedded Postgres."""

import fcntl
import io
import json
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import pytest

from crawler.cli.output import remark, show_table
from crawler.runtime.postgres.cluster import find_running_postgres
from tests.commands import RECRAWL, Done, Recrawl, Site, command, environ, run_here
from tests.databases import execute
from tests.patience import PATIENCE_S, until


@contextmanager
def started(*arguments: str, database_url: str | None, home: Path) -> Iterator[subprocess.Popen[str]]:
    """Run the command for the duration of the block."""
    process = subprocess.Popen(
        [RECRAWL, *arguments],
        env=environ(database_url, home),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


@pytest.fixture(scope="module")
def embedded_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a home with an embedded Postgres, whose data are created once."""
    return tmp_path_factory.mktemp("embedded")


def end_of(process: subprocess.Popen[str]) -> Done:
    said, complained = process.communicate(timeout=PATIENCE_S)
    return Done(process.returncode, said, complained)


def test_two_crawls_of_one_domain_do_not_meet(recrawl: Recrawl, site: Site, database_url: str, tmp_path: Path) -> None:
    recrawl("domains", "add", site.url, "--allow-private")
    site.asked.clear()
    with site.gate, started("crawl", site.name, "--json", database_url=database_url, home=tmp_path) as first:
        until(lambda: "/" in site.asked)
        asked = len(site.asked)

        second = recrawl("crawl", site.name, "--json")
        due = recrawl("crawl", "--due", "--json")

        assert len(site.asked) == asked
        assert second.code == 1
        assert f"{site.name} is being crawled by " in second.complaint
        assert f"/{first.pid}/crawl" in second.complaint
        assert (second.json["visits"], due.code, due.json["visits"]) == (0, 0, 0)
        site.gate.release()
        done = end_of(first)
        site.gate.acquire()
    assert (done.code, done.json["visits"]) == (0, 3)


@pytest.mark.parametrize(
    ("number", "code"), [pytest.param(signal.SIGINT, 130, marks=pytest.mark.soak), (signal.SIGTERM, 143)]
)
def test_the_first_signal_lets_requests_in_progress_be_recorded(  # noqa: PLR0917
    recrawl: Recrawl, site: Site, database_url: str, tmp_path: Path, number: signal.Signals, code: int
) -> None:
    recrawl("crawl", site.url, "--allow-private", "--pages", "1", "--parallelism", "1")
    site.asked.clear()
    with site.gate, started("crawl", site.name, "--json", database_url=database_url, home=tmp_path) as process:
        until(lambda: len(site.asked) == 1)
        process.send_signal(number)
        assert process.stderr is not None
        assert "Stopping" in process.stderr.readline()
        site.gate.release()
        done = end_of(process)
        site.gate.acquire()

    assert done.code == code
    assert (done.json["visits"], done.json["was_stopped"]) == (1, True)
    assert len(site.asked) == 1
    assert recrawl("crawl", site.name, "--json").json["visits"] == 1  # released, and nothing is lost
    assert recrawl("db", "check").code == 0


def test_the_second_signal_ends_at_once(recrawl: Recrawl, site: Site, database_url: str, tmp_path: Path) -> None:
    recrawl("domains", "add", site.url, "--allow-private")
    site.asked.clear()
    with site.gate, started("crawl", site.name, database_url=database_url, home=tmp_path) as process:
        until(lambda: "/" in site.asked)
        process.send_signal(signal.SIGINT)
        assert process.stderr is not None
        assert "Stopping" in process.stderr.readline()
        process.send_signal(signal.SIGINT)
        done = end_of(process)  # although no response has arrived

    assert done.code == 130
    assert "Traceback" not in done.err
    assert recrawl("crawl", site.name, "--json").json["visits"] == 3


@pytest.mark.soak
def test_on_a_terminal_a_bar_shows_how_far_it_is(
    recrawl: Recrawl, site: Site, database_url: str, tmp_path: Path
) -> None:
    recrawl("domains", "add", site.url, "--allow-private")
    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 200, 0, 0))
    environment = environ(database_url, tmp_path) | {"TERM": "xterm-256color"}
    process = subprocess.Popen(
        [RECRAWL, "crawl", site.name, "--json"], env=environment, stdout=subprocess.PIPE, stderr=follower, text=True
    )
    os.close(follower)
    shown = b""
    while select.select([leader], [], [], PATIENCE_S)[0]:
        try:
            shown += os.read(leader, 4096)
        except OSError:  # the last writer has ended
            break
    said, _ = process.communicate(timeout=PATIENCE_S)
    os.close(leader)

    assert json.loads(said)["visits"] == 3
    assert site.name.encode() in shown
    assert b"3/3" in shown


@pytest.mark.soak
def test_the_embedded_postgres_runs_while_a_command_needs_it(site: Site, tmp_path: Path) -> None:
    crawled = command("crawl", site.url, "--allow-private", "--json", database_url=None, home=tmp_path)
    left = find_running_postgres(tmp_path)
    listed = command("domains", "list", "--json", database_url=None, home=tmp_path)

    assert crawled.code == 0, crawled.err
    assert crawled.json["visits"] == 3
    assert left is None
    assert [each["pages"]["fetched"] for each in listed.json["domains"]] == [3]
    assert find_running_postgres(tmp_path) is None


@pytest.mark.xdist_group("embedded")
def test_commands_at_once_share_it_and_the_last_one_stops_it(site: Site, embedded_home: Path) -> None:
    with (
        site.gate,
        started("crawl", site.url, "--allow-private", "--offline", database_url=None, home=embedded_home) as first,
        started("domains", "list", "--json", database_url=None, home=embedded_home) as second,
    ):
        until(lambda: bool(site.asked))
        assert end_of(second).code == 0
        still = find_running_postgres(embedded_home)
        site.gate.release()
        done = end_of(first)
        site.gate.acquire()

    assert still is not None
    assert done.code == 0, done.err
    assert find_running_postgres(embedded_home) is None


@pytest.mark.xdist_group("embedded")
def test_killed_with_9_it_goes_on_where_it_was(site: Site, embedded_home: Path) -> None:
    with (
        site.gate,
        started("crawl", site.url, "--allow-private", "--offline", database_url=None, home=embedded_home) as killed,
    ):
        until(lambda: bool(site.asked))
        killed.kill()
        killed.wait()

    done = run_here("crawl", site.name, "--json", database_url=None, home=embedded_home)

    assert done.code == 0, done.err  # the lease of the dead process is freed immediately
    assert done.json["visits"] == 3
    assert find_running_postgres(embedded_home) is None
    assert run_here("db", "check", database_url=None, home=embedded_home).code == 0


@pytest.mark.xdist_group("embedded")
def test_ended_by_a_signal_it_takes_its_postgres_with_it(site: Site, embedded_home: Path) -> None:
    with (
        site.gate,
        started("crawl", site.url, "--allow-private", "--offline", database_url=None, home=embedded_home) as process,
    ):
        until(lambda: bool(site.asked))
        process.send_signal(signal.SIGTERM)
        assert process.stderr is not None
        while "Stopping" not in process.stderr.readline():
            pass
        process.send_signal(signal.SIGTERM)
        code = process.wait(timeout=PATIENCE_S)

    assert code == 143
    assert find_running_postgres(embedded_home) is None


@pytest.mark.soak
def test_a_reader_that_goes_away_is_no_error(recrawl: Recrawl, database_url: str, tmp_path: Path) -> None:
    names = "".join(f"name-{n}.test\n" for n in range(900))  # more than a pipe holds
    recrawl("domains", "add", "--from", "-", "--offline", stdin=names)
    with started("domains", "list", database_url=database_url, home=tmp_path) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.stdout.close()
        process.stdout = None
        _, complained = process.communicate(timeout=PATIENCE_S)

    assert (process.returncode, complained) == (0, "")


@pytest.mark.parametrize(
    ("arguments", "code", "closed"),
    [
        (("--help",), 0, "both"),
        (("report", "--json"), 0, "stdout"),
        pytest.param(("domains", "list"), 0, "both", marks=pytest.mark.soak),
        (("domains",), 2, "stderr"),
        pytest.param(("status",), 1, "stdout", marks=pytest.mark.soak),
        (("status", "--json"), 1, "both"),
        (("domains", "show", "unknown.test"), 2, "stderr"),
    ],
)
def test_without_a_reader_the_exit_code_is_what_it_would_have_been(
    database_url: str, tmp_path: Path, arguments: tuple[str, ...], code: int, closed: str
) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [RECRAWL, *arguments],
        env=environ(database_url, tmp_path),
        stdout=subprocess.PIPE if closed == "stderr" else writer,
        stderr=subprocess.PIPE if closed == "stdout" else writer,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )
    os.close(writer)

    assert done.returncode == code
    assert "Traceback" not in (done.stderr or "")


def test_output_that_nothing_holds_is_one_line(tmp_path: Path) -> None:
    with Path("/dev/full").open("w", encoding="utf-8") as full:
        done = subprocess.run(
            [RECRAWL, "status"],
            env=environ(None, tmp_path),
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            timeout=PATIENCE_S,
        )

    assert done.returncode == 1
    assert done.stderr == "recrawl: the output cannot be written: No space left on device\n"


def test_a_remark_comes_after_the_table_in_a_pipe(recrawl: Recrawl, monkeypatch: pytest.MonkeyPatch) -> None:
    buffered = io.TextIOWrapper(io.BytesIO())
    monkeypatch.setattr(sys, "stdout", buffered)

    show_table(["part"], [["worker"]])
    remark("Next: recrawl up")

    assert b"worker" in buffered.buffer.getvalue()


@pytest.mark.parametrize(("arguments", "code"), [(["db", "url"], 0), (["no-such-command"], 2)])
def test_complaints_that_nothing_holds_change_no_exit_code(
    arguments: list[str], code: int, database_url: str, tmp_path: Path
) -> None:
    with Path("/dev/full").open("w", encoding="utf-8") as full:
        done = subprocess.run(
            [RECRAWL, "-v", *arguments],
            env=environ(database_url, tmp_path),
            stdout=subprocess.PIPE,
            stderr=full,
            check=False,
            timeout=PATIENCE_S,
        )

    assert done.returncode == code


# Databases in a wrong state.


def test_a_database_that_is_down_is_one_line(tmp_path: Path) -> None:
    done = run_here("report", database_url="postgresql://nobody@127.0.0.1:9/nothing", home=tmp_path)

    assert done.code == 1
    assert "cannot open the database" in done.complaint


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("RECRAWL_DATABASE_URL", "mysql://127.0.0.1/x"),
        ("RECRAWL_LEASE_TERM", "soon"),
        ("RECRAWL_LEASE_TERM", "-1"),
        ("RECRAWL_MAX_BODY_BYTES", "-1"),
        ("RECRAWL_EXEMPT_ADDRESSES", "127.0.0.1"),
        ("RECRAWL_EXEMPT_ADDRESSES", "{}"),
        ("RECRAWL_EXEMPT_ADDRESSES", '["127.0.0.1/8"]'),
        ("RECRAWL_USER_AGENT", "Mozilla/5.0 (pretending)"),
    ],
)
def test_a_setting_that_cannot_be_is_one_line(
    recrawl: Recrawl, monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(name, value)

    done = recrawl("report")

    assert done.code == 2
    assert name in done.complaint or "postgresql://" in done.complaint


def test_an_invalid_duration_is_reported_once(recrawl: Recrawl, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECRAWL_LEASE_TERM", "abc")

    done = recrawl("report")

    assert done.complaint == "recrawl: RECRAWL_LEASE_TERM: 'abc' is not a time span such as 30s, 12h or 7d"


@pytest.mark.soak
def test_an_empty_database_is_migrated_without_asking(empty_database_url: str, tmp_path: Path) -> None:
    done = run_here("report", "--json", database_url=empty_database_url, home=tmp_path)

    assert (done.code, done.out) == (0, '{"domains": []}\n')


@pytest.mark.soak
def test_a_database_with_other_tables_is_unchanged_without_an_upgrade(empty_database_url: str, tmp_path: Path) -> None:
    execute(empty_database_url, "CREATE TABLE theirs (id int)")

    refused = run_here("report", database_url=empty_database_url, home=tmp_path)
    upgraded = run_here("db", "upgrade", "--json", database_url=empty_database_url, home=tmp_path)
    accepted = run_here("report", database_url=empty_database_url, home=tmp_path)

    assert refused.code == 1
    assert "recrawl db upgrade adds them" in refused.complaint
    assert upgraded.json == {"before": "foreign", "after": "current"}
    assert accepted.code == 0


@pytest.mark.soak
def test_missing_privileges_are_reported(
    recrawl: Recrawl, database_url: str, empty_database_url: str, tmp_path: Path
) -> None:
    role = f"guest_{uuid.uuid4().hex}"
    execute(database_url, f"CREATE ROLE {role} LOGIN PASSWORD 'guest'")
    try:
        unread = run_here("report", database_url=as_role(database_url, role), home=tmp_path)
        execute(database_url, f"GRANT SELECT ON alembic_version TO {role}")
        read = run_here("report", database_url=as_role(database_url, role), home=tmp_path)
        migrated = run_here("db", "upgrade", database_url=as_role(empty_database_url, role), home=tmp_path)
    finally:
        execute(database_url, f"DROP OWNED BY {role}", f"DROP ROLE {role}")

    for done in (unread, read, migrated):
        assert done.code == 1
        assert "the database refused access: permission denied" in done.complaint


def as_role(url: str, role: str) -> str:
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=f"{role}:guest@{parts.hostname}:{parts.port}"))


def test_a_newer_schema_is_named_with_what_to_do(recrawl: Recrawl, database_url: str) -> None:
    execute(database_url, "UPDATE alembic_version SET version_num = '9999'")

    done = recrawl("report")

    assert done.code == 1
    assert "a newer version of recrawl" in done.complaint


def test_what_a_newer_recrawl_has_migrated_is_not_upgraded(recrawl: Recrawl, database_url: str) -> None:
    execute(database_url, "UPDATE alembic_version SET version_num = '9999'")

    done = recrawl("db", "upgrade")

    assert done.code == 1
    assert done.complaint == "recrawl: a newer version of recrawl has migrated the database; install that version"


@pytest.mark.soak
def test_another_table_with_our_name_is_a_one_line_error(empty_database_url: str, tmp_path: Path) -> None:
    execute(empty_database_url, "CREATE TABLE page (id int)")

    done = run_here("db", "upgrade", database_url=empty_database_url, home=tmp_path)

    assert done.code == 1
    assert "use another database" in done.complaint


def test_a_schema_of_another_checkout_is_a_one_line_error(recrawl: Recrawl, database_url: str) -> None:
    execute(database_url, "ALTER TABLE subscription RENAME TO watcher")

    done = recrawl("notify", "list")

    assert done.code == 1
    assert 'another version of recrawl created the database (relation "subscription" does not' in done.complaint


@pytest.mark.usefixtures("later_release")
def test_the_stack_is_not_started_on_a_database_that_it_may_not_migrate(recrawl: Recrawl) -> None:
    done = recrawl("up")

    assert done.code == 1
    assert done.complaint == "recrawl: the database has an older schema; run recrawl db upgrade"


@pytest.mark.soak
def test_a_new_database_gets_the_requested_partitions(empty_database_url: str, tmp_path: Path) -> None:
    done = run_here("db", "upgrade", "--partitions", "2", database_url=empty_database_url, home=tmp_path)
    other = run_here("db", "upgrade", "--partitions", "3", database_url=empty_database_url, home=tmp_path)
    embedded = run_here("db", "upgrade", "--partitions", "2", database_url=None, home=tmp_path)

    assert done.out == "The database schema is up to date (it was empty)\n"
    assert other.code == embedded.code == 2
    assert "the tables have 2 partitions each" in other.complaint
    assert "set RECRAWL_DATABASE_URL" in embedded.complaint


@pytest.mark.usefixtures("later_release")
def test_an_older_schema_is_upgraded_on_demand(recrawl: Recrawl) -> None:
    refused = recrawl("report")
    done = recrawl("db", "upgrade")

    assert refused.code == 1
    assert "recrawl db upgrade" in refused.complaint
    assert done.out == "The database schema is up to date (it was older)\n"
    assert recrawl("report").code == 0
