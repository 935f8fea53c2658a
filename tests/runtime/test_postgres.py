"""The embedded Postgres: start, stop, kills, ports, accounts and error messages."""

import contextlib
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import psutil
import psycopg
import pytest

from crawler.errors import StackFailed
from crawler.runtime import machine
from crawler.runtime.machine import find_free_port, find_process
from crawler.runtime.postgres import account
from crawler.runtime.postgres.account import create_user
from crawler.runtime.postgres.binaries import choose_installation, copy_for_everybody, list_installations
from crawler.runtime.postgres.cluster import Cluster, ensure_postgres, find_running_postgres


@contextmanager
def open_home() -> Iterator[Path]:
    """Make a world-readable folder, and stop its Postgres afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="recrawl-postgres-"))
    folder.chmod(0o755)
    yield folder
    for found in folder.glob("**/postgres"):
        cluster = find_running_postgres(found.parent)
        if cluster is not None:
            cluster.stop()
    shutil.rmtree(folder)


@pytest.fixture
def home() -> Iterator[Path]:
    with open_home() as folder:
        yield folder


@pytest.fixture(scope="module")
def shared_home() -> Iterator[Path]:
    """Return the home of `shared`."""
    with open_home() as folder:
        yield folder


@pytest.fixture(scope="module")
def shared(shared_home: Path) -> Cluster:
    """Return a running cluster that several tests share."""
    return ensure_postgres(shared_home, durable=False)


def ask(cluster: Cluster, statement: str, database: str = "postgres") -> list[tuple[object, ...]]:
    with psycopg.connect(cluster.build_url(database), autocommit=True) as connection:
        cursor = connection.execute(statement.encode())
        return cursor.fetchall() if cursor.description else []


@pytest.mark.soak
def test_cluster_keeps_its_data_and_url_after_a_restart(home: Path) -> None:
    cluster = ensure_postgres(home, durable=False)
    cluster.create_database("crawl")
    cluster.create_database("crawl")  # already exists
    ask(cluster, "CREATE TABLE kept AS SELECT 42 AS answer", "crawl")
    assert ensure_postgres(home, durable=False) == cluster

    cluster.stop()
    cluster.stop()  # does nothing
    assert find_running_postgres(home) is None
    assert find_process(cluster.pid) is None

    again = ensure_postgres(home, durable=False)
    assert again.build_url("crawl") == cluster.build_url("crawl")
    assert ask(again, "SELECT answer FROM kept", "crawl") == [(42,)]
    again.drop_database("crawl")
    again.drop_database("crawl")
    assert ask(again, "SELECT 1 FROM pg_database WHERE datname = 'crawl'") == []


def test_database_stores_any_text_and_has_the_extensions_of_prefect(shared: Cluster) -> None:
    shared.create_database("crawl")
    assert ask(shared, "SHOW server_encoding", "crawl") == [("UTF8",)]
    assert ask(shared, "SELECT lower('ÀΩЖ')", "crawl") == [("àωж",)]
    ask(shared, "CREATE EXTENSION pg_trgm", "crawl")


def test_connection_needs_the_password(shared: Cluster, shared_home: Path) -> None:
    with pytest.raises(psycopg.OperationalError, match="no password supplied"):
        psycopg.connect(f"postgresql://postgres@127.0.0.1:{shared.port}/postgres")
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        psycopg.connect(f"postgresql://postgres:guess@127.0.0.1:{shared.port}/postgres")
    assert (shared_home / "postgres" / str(shared.binaries.major) / "password").stat().st_mode & 0o077 == 0
    assert shared.password not in repr(shared)


def test_kill_9_loses_no_committed_data(home: Path) -> None:
    cluster = ensure_postgres(home)
    ask(cluster, "CREATE TABLE kept (n int)")
    for n in range(3):
        ask(cluster, f"INSERT INTO kept VALUES ({n})")
        os.kill(cluster.pid, signal.SIGKILL)
        cluster = ensure_postgres(home)  # immediately, while old processes are still ending
        assert ask(cluster, "SELECT count(*) FROM kept") == [(n + 1,)]


@pytest.mark.soak
def test_cluster_can_be_created_after_a_killed_attempt(home: Path) -> None:
    cluster = ensure_postgres(home, durable=False)
    cluster.stop()
    place = home / "postgres" / str(cluster.binaries.major)
    (place / "data").rename(place / "making")
    assert ask(ensure_postgres(home, durable=False), "SELECT 1") == [(1,)]


def test_concurrent_processes_start_one_server(home: Path) -> None:
    command = (
        "import sys, pathlib, crawler.runtime.postgres.cluster as p\n"
        "print(p.ensure_postgres(pathlib.Path(sys.argv[1])).pid)"
    )

    def ensure(_: int) -> str:
        return subprocess.run([sys.executable, "-c", command, home], capture_output=True, text=True, check=True).stdout

    with ThreadPoolExecutor(4) as pool:
        pids = set(pool.map(ensure, range(4)))
    cluster = find_running_postgres(home)
    assert cluster is not None
    assert pids == {f"{cluster.pid}\n"}


@pytest.mark.soak
def test_server_works_in_a_private_folder_that_stays_private(home: Path) -> None:
    closed = home / "closed"
    closed.mkdir(mode=0o700)
    cluster = ensure_postgres(closed / "home")
    ask(cluster, "CREATE TABLE kept AS SELECT 1")
    os.kill(cluster.pid, signal.SIGKILL)
    again = ensure_postgres(closed / "home")
    assert ask(again, "SELECT count(*) FROM kept") == [(1,)]
    again.stop()
    assert find_running_postgres(closed / "home") is None
    assert closed.stat().st_mode & 0o777 == 0o700


@pytest.mark.soak
def test_server_moves_to_another_port_and_stays_there(home: Path) -> None:
    cluster = ensure_postgres(home, durable=False)
    cluster.stop()
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        other.bind(("127.0.0.1", cluster.port))
        other.listen()
        moved = ensure_postgres(home, durable=False)
        assert moved.port != cluster.port
        moved.stop()
    assert ensure_postgres(home, durable=False).port == moved.port


@pytest.mark.soak
def test_reused_process_id_does_not_prevent_the_start(home: Path) -> None:
    cluster = ensure_postgres(home, durable=False)
    pid_file = home / "postgres" / str(cluster.binaries.major) / "data" / "postmaster.pid"
    lines = pid_file.read_text().splitlines()
    cluster.stop()
    pid_file.write_text("\n".join([str(os.getpid()), *lines[1:]]) + "\n")
    assert find_running_postgres(home) is None
    assert ask(ensure_postgres(home, durable=False), "SELECT 1") == [(1,)]


def test_data_of_another_major_version_gives_a_one_line_error(home: Path) -> None:
    data = home / "postgres" / "13" / "data"
    data.mkdir(parents=True)
    (data / "PG_VERSION").write_text("13\n")
    with pytest.raises(StackFailed, match=r"holds data of Postgres 13, .* has only Postgres \d+: install") as failure:
        ensure_postgres(home)
    assert "\n" not in str(failure.value)
    assert list((home / "postgres").glob("1*")) == [home / "postgres" / "13"]


def fill(path: Path) -> None:
    """Write to a file until its disk is full."""
    with path.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while file.write(bytes(1 << 16)):
            pass


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a disk of a known size")
def test_full_disk_gives_a_one_line_error(home: Path) -> None:
    disk = home / "disk"
    disk.mkdir()
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=150m", "none", disk], check=False, capture_output=True)
    if made.returncode != 0:
        pytest.skip("this machine lets root mount nothing")
    try:
        with pytest.raises(
            StackFailed, match=r"the disk of .* is full \(\d+ MB free, 200 needed\): free some"
        ) as failure:
            ensure_postgres(disk / "home")
        assert "\n" not in str(failure.value)

        subprocess.run(["mount", "-o", "remount,size=300m", disk], check=True)
        ensure_postgres(disk / "home").stop()
        fill(disk / "filler")
        with pytest.raises(StackFailed, match="is full"):
            ensure_postgres(disk / "home")
        (disk / "filler").unlink()
        ensure_postgres(disk / "home").stop()
    finally:
        subprocess.run(["umount", "--lazy", disk], check=True)


def modes_of(folder: Path) -> dict[str, int]:
    """Return the files in a folder with permissions for others."""
    found = {str(path.relative_to(folder)): path.lstat().st_mode & 0o077 for path in (folder, *folder.rglob("*"))}
    return {name: mode for name, mode in found.items() if mode}


def test_its_files_are_private_and_other_files_are_not_changed(shared: Cluster, shared_home: Path, home: Path) -> None:
    # For root, the server account may traverse one folder.
    way = {f"postgres/{shared.binaries.major}": 0o010} if os.geteuid() == 0 else {}
    assert modes_of(shared_home) == way

    (home / "a file of the user's").touch(mode=0o644)
    ensure_postgres(home, durable=False)
    assert modes_of(home / "postgres") == ({str(shared.binaries.major): 0o010} if way else {})
    assert {".", "a file of the user's"} <= modes_of(home).keys()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root runs it as somebody else")
def test_root_runs_the_server_with_a_dedicated_account(shared: Cluster, shared_home: Path) -> None:
    account = pwd.getpwuid(psutil.Process(shared.pid).uids().real)
    assert account.pw_name == "recrawl-postgres"
    assert account.pw_shell == "/bin/false"
    assert owners(shared_home / "postgres" / str(shared.binaries.major) / "data") == {account.pw_uid}


def owners(folder: Path) -> set[int]:
    return {path.lstat().st_uid for path in (folder, *folder.rglob("*"))}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has an account made for it")
def test_missing_useradd_gives_a_one_line_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr(account, "SERVER_ACCOUNT", "recrawl-test-account")
    with pytest.raises(
        StackFailed, match=r"neither useradd nor adduser is installed.*: create it \(useradd"
    ) as failure:
        create_user()
    assert "\n" not in str(failure.value)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has an account made for it")
def test_two_processes_create_the_account_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = "recrawl-test-account"
    monkeypatch.setattr(account, "SERVER_ACCOUNT", name)
    calls = tmp_path / "calls"
    made: object = f"{name}:x:4242:4242::/:/bin/false"
    # Slow enough that a second process starts meanwhile.
    useradd = tmp_path / "useradd"
    useradd.write_text(f"#!/bin/sh\necho called >> {calls}\nsleep 0.3\ntouch {tmp_path}/made\n")
    useradd.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setattr(account, "find_user", lambda _: made if (tmp_path / "made").exists() else None)
    with ThreadPoolExecutor() as threads:
        assert [*threads.map(lambda _: create_user(), range(2))] == [made, made]
    assert calls.read_text() == "called\n"
    Path(f"/run/{name}.lock").unlink()


@pytest.mark.soak
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_folder_of_another_user_gives_a_one_line_error(home: Path) -> None:
    ensure_postgres(home, durable=False)
    # Loaded first, because that user cannot read the modules.
    command = (
        "import os, sys, pathlib, crawler.runtime.postgres.cluster as p, crawler.errors as e\n"
        "os.setgroups([]); os.setgid(65534); os.setuid(65534)\n"
        "try: p.ensure_postgres(pathlib.Path(sys.argv[1]))\n"
        "except e.StackFailed as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", command, home], capture_output=True, text=True, check=True)
    assert "set RECRAWL_HOME to a folder that you own" in done.stdout
    assert done.stdout.count("\n") == 1


def test_without_a_free_port_the_error_names_the_ports_that_were_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[int] = []
    monkeypatch.setattr(machine, "is_port_free", tried.append)  # returns None: not free

    with pytest.raises(StackFailed) as failure:
        find_free_port("any")

    assert f"from {min(tried)} to {max(tried)} is free" in str(failure.value)


def test_copied_programs_work(tmp_path: Path) -> None:
    wheel = list_installations()[0]
    copied = copy_for_everybody(wheel, tmp_path / "shared")
    assert copy_for_everybody(wheel, tmp_path / "shared") == copied
    assert copied.bin.is_relative_to(tmp_path)
    assert all(path.stat().st_mode & 0o005 for path in (tmp_path / "shared").rglob("*"))
    said = subprocess.run([copied.bin / "initdb", "--version"], capture_output=True, text=True, check=True).stdout
    assert wheel.version in said


def test_data_is_served_by_an_installation_of_its_version(home: Path) -> None:
    for binaries in list_installations():
        assert choose_installation(binaries.major, home).major == binaries.major
