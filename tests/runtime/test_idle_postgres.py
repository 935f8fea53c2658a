"""The embedded Postgres stays for a while after the last command, and ends by itself, whatever happened meanwhile."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psutil
import pytest

from crawler.runtime.machine import find_process, try_hold_lock
from crawler.runtime.postgres import idle_watcher
from crawler.runtime.postgres.cluster import (
    Cluster,
    borrow_postgres,
    ensure_postgres,
    find_idle_end,
    find_running_postgres,
    keep_postgres,
    release_postgres,
)
from tests.patience import until
from tests.runtime.test_postgres import ask, open_home

SHORT, LONG = timedelta(seconds=0.2), timedelta(hours=1)
# Borrows the Postgres of a home until it is killed or its input ends.
USER = """
import sys
from datetime import timedelta
from pathlib import Path
from crawler.runtime.postgres.cluster import borrow_postgres
with borrow_postgres(Path(sys.argv[1]), idle_time=timedelta(seconds=float(sys.argv[2]))):
    print("borrowed", flush=True)
    sys.stdin.read()
"""


@pytest.fixture(scope="module")
def home() -> Iterator[Path]:
    """Return a home that the tests share, because creating a cluster takes seconds. Each leaves it stopped."""
    with open_home() as folder:
        yield folder


def start_user(home: Path, idle_time: timedelta) -> "subprocess.Popen[str]":
    command = [sys.executable, "-c", USER, str(home), str(idle_time.total_seconds())]
    user = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert user.stdout is not None
    assert user.stdout.readline() == "borrowed\n"
    return user


def use(home: Path, idle_time: timedelta) -> Cluster:
    with borrow_postgres(home, idle_time=idle_time) as cluster:
        return cluster


def list_watchers(home: Path) -> list[int]:
    wanted = [idle_watcher.__name__, str(home / "postgres")]
    return [each.pid for each in psutil.process_iter(["cmdline"]) if (each.info["cmdline"] or [])[-2:] == wanted]


def has_ended(home: Path, cluster: Cluster) -> bool:
    return find_process(cluster.pid) is None and not list_watchers(home)


def test_postgres_stays_for_the_next_command_and_ends_by_itself(home: Path) -> None:
    first = use(home, LONG)
    assert find_running_postgres(home) == first
    ends_at = find_idle_end(home)
    assert ends_at is not None
    assert ends_at > datetime.now(UTC) + LONG / 2

    second = use(home, SHORT)
    os.kill(list_watchers(home)[0], signal.SIGKILL)  # it waits an hour for the first
    until(lambda: not list_watchers(home))
    third = use(home, SHORT)

    assert first == second == third
    until(lambda: has_ended(home, first))
    assert "database system was shut down" in read_next_log(home)  # cleanly, so there is nothing to recover


def read_next_log(home: Path) -> str:
    cluster = ensure_postgres(home)
    log = home / "postgres" / str(cluster.binaries.major) / "server.log"
    started = log.read_text().rpartition("starting PostgreSQL")[2]
    cluster.stop()
    return started


def test_watcher_waits_for_users_and_is_the_only_one(home: Path) -> None:
    users = [start_user(home, SHORT) for _ in range(2)]
    cluster = find_running_postgres(home)
    assert cluster is not None
    until(lambda: len(list_watchers(home)) == 1)
    users[0].communicate("")
    assert find_idle_end(home) is None or find_running_postgres(home) == cluster
    assert ask(cluster, "SELECT 1") == [(1,)]
    users[1].communicate("")
    until(lambda: has_ended(home, cluster))


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT], ids=["killed", "interrupted"])
def test_postgres_of_a_killed_command_ends(home: Path, number: signal.Signals) -> None:
    user = start_user(home, SHORT)
    cluster = find_running_postgres(home)
    assert cluster is not None
    user.send_signal(number)
    user.communicate()
    until(lambda: has_ended(home, cluster))


def test_without_an_idle_time_the_last_command_stops_it_at_once(home: Path) -> None:
    cluster = use(home, LONG)
    use(home, timedelta(0))
    assert find_running_postgres(home) is None
    until(lambda: has_ended(home, cluster))  # also the watcher


def test_nothing_is_left_of_a_removed_home(home: Path) -> None:
    folder = home / "removed"
    cluster = use(folder, timedelta(seconds=1))
    until(lambda: is_watched(folder))
    shutil.rmtree(folder)
    until(lambda: has_ended(folder, cluster))
    assert not folder.exists()


def is_watched(home: Path) -> bool:
    """Return whether a watcher is waiting for the end of the idle time."""
    with try_hold_lock(home / "postgres" / idle_watcher.WATCHER) as is_free:
        return not is_free


def test_a_moved_home_is_shut_down_and_works_in_its_new_place(home: Path) -> None:
    cluster = use(home / "old", timedelta(seconds=1))
    ask(cluster, "CREATE TABLE kept AS SELECT 42 AS answer")
    until(lambda: is_watched(home / "old"))
    (home / "old").rename(home / "new")
    until(lambda: has_ended(home / "old", cluster))
    assert ask(ensure_postgres(home / "new"), "SELECT answer FROM kept") == [(42,)]


def test_killed_postgres_leaves_no_watcher_and_the_next_command_starts_both(home: Path) -> None:
    first = use(home, LONG)
    until(lambda: is_watched(home))
    os.kill(first.pid, signal.SIGKILL)
    until(lambda: not list_watchers(home))
    second = use(home, SHORT)
    assert second.pid != first.pid
    until(lambda: has_ended(home, second))


def test_kept_postgres_has_no_watcher_until_it_is_released(home: Path) -> None:
    cluster = use(home, SHORT)
    keep_postgres(home)
    until(lambda: not list_watchers(home))
    use(home, SHORT)
    assert list_watchers(home) == []
    assert find_running_postgres(home) == cluster

    user = start_user(home, SHORT)
    assert not release_postgres(home)  # the user still has it
    user.communicate("")
    until(lambda: has_ended(home, cluster))


def test_released_postgres_ends_after_its_last_user_was_killed(home: Path) -> None:
    cluster = keep_postgres(home)
    user = start_user(home, SHORT)
    assert list_watchers(home) == []
    assert not release_postgres(home)
    user.kill()
    user.communicate()
    until(lambda: has_ended(home, cluster))


def test_clock_set_back_does_not_keep_it(home: Path) -> None:
    cluster = use(home, SHORT)
    users = home / "postgres" / idle_watcher.USERS
    tomorrow = datetime.now(UTC).timestamp() + 86_400  # as the last command saw it
    os.utime(users, (tomorrow, tomorrow + SHORT.total_seconds()))
    until(lambda: has_ended(home, cluster))


def test_watcher_waits_without_polling(home: Path) -> None:
    use(home, LONG)
    until(lambda: is_watched(home))
    (watcher,) = list_watchers(home)
    until(lambda: psutil.Process(watcher).status() == psutil.STATUS_SLEEPING)
    switches = psutil.Process(watcher).num_ctx_switches().voluntary
    use(home, LONG)  # as long as some hundred polls
    assert psutil.Process(watcher).num_ctx_switches().voluntary - switches < 5
    use(home, timedelta(0))
