"""A run of these tests that is interrupted or killed leaves nothing behind: no process, no folder."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from crawler.runtime.machine import find_process
from tests.interrupted import BEGUN
from tests.patience import until
from tests.watchdog import processes_of

ROOT = Path(__file__).parent.parent

WAYS: dict[str, Callable[[dict[str, int]], None]] = {
    "Ctrl-C": lambda pids: os.killpg(pids["controller"], signal.SIGINT),
    "kill -9": lambda pids: os.kill(pids["controller"], signal.SIGKILL),
    "kill -9 of a worker": lambda pids: os.kill(pids["worker"], signal.SIGKILL),
}


@pytest.mark.soak
@pytest.mark.parametrize("way", [pytest.param(way, marks=[] if way == "kill -9" else pytest.mark.soak) for way in WAYS])
def test_however_a_run_ends_nothing_of_it_is_left(way: str, tmp_path: Path) -> None:
    begun = tmp_path / "begun"
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "RECRAWL_"))}
    command = [sys.executable, "-m", "pytest", "-n", "1", "-p", "no:cacheprovider", "tests/interrupted.py"]
    with (tmp_path / "log").open("w", encoding="utf-8") as log:
        tests = subprocess.Popen(
            command,
            cwd=ROOT,
            env=inherited | {BEGUN: str(begun)},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )

    def has_begun() -> bool:
        assert tests.poll() is None, (tmp_path / "log").read_text()
        return begun.exists()

    until(has_begun)
    said = json.loads(begun.read_text())
    run = Path(said["run"])
    theirs = [known for each in processes_of(run) if (known := find_process(each.pid)) is not None]
    assert {said["worker"], *said["started"]} <= {each.pid for each in theirs}

    WAYS[way]({"controller": tests.pid, "worker": said["worker"]})
    assert tests.wait() != 0

    until(lambda: not run.exists())
    assert [each for each in theirs if each.is_running()] == []
    assert processes_of(run) == []
