"""The local stack, up, down, and after each of its parts was killed with -9."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from crawler.errors import StackFailed
from crawler.local.children import tagged
from crawler.local.machine import free_port
from crawler.local.parts import home_of_server, stack_tag
from crawler.local.postgres import running_postgres
from crawler.local.stack import Stack, crawl_database, down, running_stack, status, up
from crawler.settings import Settings
from tests.flows.stage import ENDED, STAGE, ask, cancel_run, complaints, run_state, start_run
from tests.patience import SLOW, until

pytestmark = [pytest.mark.xdist_group("stack"), SLOW]


@pytest.fixture(scope="module")
def home() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="recrawl-stack-"))
    folder.chmod(0o755)
    yield folder
    down(settings_of(folder), report=print)
    assert tagged(stack_tag(folder)) == []
    assert running_postgres(folder) is None
    shutil.rmtree(folder)


@pytest.fixture
def stack(home: Path) -> Stack:
    """The running stack; what an earlier test has killed is started again."""
    return up(settings_of(home), report=print, deployments=STAGE)


def settings_of(home: Path, **others: object) -> Settings:
    return Settings(home=home, database_url=None, PREFECT_API_URL=None, **others)  # type: ignore[arg-type]


def hold_on(stack: Stack, place: Path) -> str:
    """Start a run that ends only when it is told to, and wait until it has begun."""
    run = start_run(stack.api_url, "hold/hold", place=str(place))

    def has_begun() -> bool:
        assert run_state(stack.api_url, run) not in ENDED
        return (place / "begun").exists()

    until(has_begun)
    return run


def again(stack: Stack) -> Stack:
    return up(settings_of(stack.home), report=print, deployments=STAGE)


def test_up_gives_a_stack_that_status_shows_and_a_second_up_finds(stack: Stack) -> None:
    assert all(part.is_running for part in status(settings_of(stack.home)))
    assert running_stack(settings_of(stack.home)) == stack
    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(again, [stack, stack])) == [stack, stack]


def test_the_user_interface_is_there_and_advertises_nothing(stack: Stack) -> None:
    settings = ask(stack.api_url, "/admin/settings")
    assert settings["server"]["analytics_enabled"] is False
    assert settings["server"]["ui"]["show_promotional_content"] is False
    assert ask(stack.ui_url, "/ui-settings")["api_url"] == stack.api_url


def test_a_scheduled_run_appears_and_starts_and_the_scheduler_is_content(stack: Stack) -> None:
    def states() -> set[str]:
        runs = ask(stack.api_url, "/flow_runs/filter", {})
        return {run["state_name"] for run in runs if run["auto_scheduled"]}

    until(lambda: {"Scheduled", "Completed"} <= states())
    assert complaints(stack.home) == []


def test_a_cancelled_run_releases_what_it_holds(stack: Stack, tmp_path: Path) -> None:
    run = hold_on(stack, tmp_path)
    cancel_run(stack.api_url, run)
    assert (tmp_path / "released").exists()


def test_after_the_worker_and_its_runs_were_killed_the_run_counts_as_crashed(stack: Stack, tmp_path: Path) -> None:
    run = hold_on(stack, tmp_path)
    for process in tagged(stack_tag(stack.home)):
        if process != stack.server:
            os.kill(process.pid, signal.SIGKILL)
    restarted = again(stack)
    assert restarted.server == stack.server
    assert restarted.worker != stack.worker
    assert run_state(stack.api_url, run) == "Crashed"


def test_a_run_whose_worker_was_killed_does_not_live_on(stack: Stack, tmp_path: Path) -> None:
    run = hold_on(stack, tmp_path)
    os.kill(stack.worker.pid, signal.SIGKILL)
    restarted = again(stack)
    assert {process.pid for process in tagged(stack_tag(stack.home))} <= {
        restarted.worker.pid,
        *([restarted.server.pid] if restarted.server else []),
        *children_of(restarted.worker.pid),
    }
    assert run_state(stack.api_url, run) in {"Crashed", "Cancelled"}


def children_of(pid: int) -> set[int]:
    found = subprocess.run(["pgrep", "-P", str(pid)], capture_output=True, text=True, check=False).stdout
    return {int(line) for line in found.split()}


def test_a_run_survives_the_death_of_postgres_and_of_the_server(stack: Stack, tmp_path: Path) -> None:
    run = hold_on(stack, tmp_path)
    cluster = running_postgres(stack.home)
    assert cluster is not None
    assert stack.server is not None
    os.kill(cluster.pid, signal.SIGKILL)
    os.kill(stack.server.pid, signal.SIGKILL)
    restarted = again(stack)
    assert restarted.worker == stack.worker
    assert restarted.api_url == stack.api_url
    assert run_state(stack.api_url, run) == "Running"
    cancel_run(stack.api_url, run)
    assert (tmp_path / "released").exists()


def test_down_ends_runs_properly_and_leaves_nothing(stack: Stack, tmp_path: Path) -> None:
    run = hold_on(stack, tmp_path)
    assert down(settings_of(stack.home), report=print)
    assert (tmp_path / "released").exists()
    assert tagged(stack_tag(stack.home)) == []
    assert running_postgres(stack.home) is None
    assert not any(part.is_running for part in status(settings_of(stack.home)))
    assert not down(settings_of(stack.home), report=print)
    assert run_state(again(stack).api_url, run) == "Cancelled"


def test_a_killed_up_is_finished_by_the_next(home: Path) -> None:
    down(settings_of(home), report=print)
    command = (
        "import sys, pathlib; from crawler.settings import Settings; from crawler.local.stack import up\n"
        "up(Settings(home=pathlib.Path(sys.argv[1])), report=lambda line: print(line, flush=True))"
    )
    starting = subprocess.Popen([sys.executable, "-c", command, home], stdout=subprocess.PIPE, text=True)
    assert starting.stdout is not None
    for line in starting.stdout:
        if "Prefect server" in line:
            starting.kill()
    starting.wait()
    stack = up(settings_of(home), report=print, deployments=STAGE)
    assert all(part.is_running for part in status(settings_of(home)))
    others = {process.pid for process in tagged(stack_tag(home))} - {stack.worker.pid}
    assert stack.server is not None
    assert others - children_of(stack.worker.pid) == {stack.server.pid}


def test_when_the_usual_port_is_taken_another_is_chosen_but_not_instead_of_a_named_one(home: Path) -> None:
    down(settings_of(home), report=print)
    port = int((home / "run" / "port").read_text())
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        other.bind(("127.0.0.1", port))
        other.listen()
        with pytest.raises(StackFailed, match=rf"port {port} \(RECRAWL_PREFECT_PORT\) is taken by another program"):
            up(settings_of(home, prefect_port=port), report=print, deployments=STAGE)
        assert running_postgres(home) is None  # what had been started for it is stopped again
        lines: list[str] = []
        stack = up(settings_of(home), report=lines.append, deployments=STAGE)
        assert not stack.api_url.startswith(f"http://127.0.0.1:{port}/")
        assert any(f"Port {port} is taken" in line for line in lines)


def test_two_stacks_that_start_at_once_and_want_the_same_port_do_not_take_each_other_for_their_own() -> None:
    command = (
        "import sys, pathlib; from crawler.settings import Settings; from crawler.local.stack import down, up\n"
        "settings = Settings(home=pathlib.Path(sys.argv[1]), database_url=None, PREFECT_API_URL=None)\n"
        "print('UP', up(settings, report=print).api_url, flush=True); input(); down(settings, report=print)"
    )
    port = free_port("two stacks")
    homes = [Path(tempfile.mkdtemp(prefix="recrawl-stack-twin-")) for _ in range(2)]
    started = []
    for home in homes:
        home.chmod(0o755)
        (home / "run").mkdir()
        (home / "run" / "port").write_text(str(port), encoding="ascii")
        started.append(
            subprocess.Popen(
                [sys.executable, "-c", command, home], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            )
        )
    urls = [
        next((line.split()[1] for line in process.stdout or () if line.startswith("UP")), "") for process in started
    ]
    assert {home_of_server(url) for url in urls} == {home / "prefect" for home in homes}
    for process, home in zip(started, homes, strict=True):
        process.communicate("\n")
        assert process.returncode == 0
        shutil.rmtree(home)


def test_a_server_of_somebody_else_is_used_and_left_alone(stack: Stack, tmp_path: Path) -> None:
    guest_home = Path(tempfile.mkdtemp(prefix="recrawl-stack-guest-"))
    guest_home.chmod(0o755)
    guest = settings_of(guest_home).model_copy(update={"prefect_api_url": stack.api_url})
    theirs = hold_on(stack, tmp_path)
    started = up(guest, report=print, deployments=STAGE)
    assert started.server is None
    assert started.api_url == stack.api_url
    assert down(guest, report=print)
    assert running_stack(settings_of(stack.home)) == stack
    assert run_state(stack.api_url, theirs) == "Running"
    shutil.rmtree(guest_home)


def test_a_server_that_is_not_there_is_told_in_one_clear_line(home: Path) -> None:
    nowhere = settings_of(home).model_copy(update={"prefect_api_url": "http://127.0.0.1:1/api"})
    with pytest.raises(StackFailed, match=r"no Prefect server answers at .* \(PREFECT_API_URL\)"):
        up(nowhere, report=print, deployments=STAGE)


def test_a_borrowed_database_is_stopped_by_the_last_borrower_and_not_while_the_stack_is_up(home: Path) -> None:
    down(settings_of(home), report=print)
    with crawl_database(settings_of(home)) as url:
        with crawl_database(settings_of(home)) as same:
            assert same == url
        assert running_postgres(home) is not None
    assert running_postgres(home) is None
    up(settings_of(home), report=print, deployments=STAGE)
    with crawl_database(settings_of(home)):
        pass
    assert running_postgres(home) is not None
