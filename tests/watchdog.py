"""The end of a test run, however it ends: every process that it started is ended, and its folder removed.

A run may be interrupted, killed or cut off by a time limit at any moment, and what it has started (Postgres, Prefect
servers, workers, crawlers) is made to outlive whoever starts it. So a process outside the run waits for its end:

    python -m tests.watchdog PID BIRTH FOLDER     PID, BIRTH: pytest's main process. Standard input ends with the run.
"""

import os
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Collection
from pathlib import Path

import psutil

from crawler.runtime.background_processes import send_signal, wait_for_end
from crawler.runtime.machine import Process, find_process

# The run's folder, in the environment of all that the run starts. No RECRAWL_ in front: some tests take those away.
RUN = "TEST_RUN_FOLDER"
PYTESTS = "pytest"  # in the run's folder: a link to where pytest keeps its temporary folders, which outlive the run
POSTGRES = {"postgres", "initdb", "pg_ctl"}  # have an environment of their own, and work in a folder of the run
POLL_SECONDS = 0.2
POLITE_SECONDS = 5
SETTLED_SECONDS = 5  # what a process of the run was just starting when it was killed shows itself within that
CLEAR_SECONDS = 60  # for the folder, where a program that has just been ended may still be writing


def main(pid: str, start_id: str, folder: str) -> None:
    run, controller = Path(folder), Process(int(pid), start_id)
    while controller.is_running():
        if select.select([sys.stdin], [], [], 1)[0]:
            break
    # One that still runs waits for this, and has ended its workers before.
    end_run(run, spare=controller.pid, settled_seconds=2 * POLL_SECONDS if controller.is_running() else SETTLED_SECONDS)


def end_run(run: Path, *, spare: int | None = None, settled_seconds: float = SETTLED_SECONDS) -> None:
    """End all processes of a run until no more show themselves, and remove its folder. spare: is left alone."""
    quiet_since = time.monotonic()
    while time.monotonic() - quiet_since < settled_seconds:
        found = processes_of(run, spare=spare)
        if found:
            end(found)
            quiet_since = time.monotonic()
        time.sleep(POLL_SECONDS)
    unmount(run)
    deadline = time.monotonic() + CLEAR_SECONDS
    while run.exists() and time.monotonic() < deadline:
        shutil.rmtree(run, ignore_errors=True)
        time.sleep(0 if not run.exists() else POLL_SECONDS)


def processes_of(run: Path, *, spare: int | None = None) -> list[psutil.Process]:
    """What a run has started: all that has its name in the environment, its Postgres, and all that these started."""
    places = [run, (run / PYTESTS).resolve()]
    found = set()
    for each in psutil.process_iter():
        if belongs(each, run, places):
            found.add(each)
            try:
                found.update(each.children(recursive=True))
            except psutil.Error:
                continue  # it ended in between
    return [each for each in found if each.pid not in {os.getpid(), spare}]


def belongs(candidate: psutil.Process, run: Path, places: Collection[Path]) -> bool:
    try:
        if candidate.status() == psutil.STATUS_ZOMBIE:
            return False
        if candidate.name() not in POSTGRES:
            return candidate.environ().get(RUN) == str(run)
        words = " ".join(candidate.cmdline())
        return any(Path(candidate.cwd()).is_relative_to(place) or f"{place}/" in words for place in places)
    except (psutil.Error, OSError):  # somebody else's, or gone
        return False


def end(found: Collection[psutil.Process]) -> None:
    """Ask processes to end, each in its own way, and end those that have not done so in time."""
    asked = [(known, way_to_end(each)) for each in found if (known := find_process(each.pid)) is not None]
    for known, way in asked:
        if way is not None:
            send_signal([known], way)
    everybody = [known for known, _ in asked]
    if not wait_for_end(everybody, seconds=POLITE_SECONDS):
        send_signal(everybody, signal.SIGKILL)
        wait_for_end(everybody, seconds=POLITE_SECONDS)


def way_to_end(candidate: psutil.Process) -> signal.Signals | None:
    """How to ask it: a Postgres to end whoever is connected, and its own processes not at all, since it asks them."""
    try:
        if candidate.name() != "postgres":
            return signal.SIGTERM
        parent = candidate.parent()
        return signal.SIGINT if parent is None or parent.name() != "postgres" else None
    except psutil.Error:
        return None


def unmount(run: Path) -> None:
    for each in psutil.disk_partitions(all=True):
        if Path(each.mountpoint).is_relative_to(run):
            subprocess.run(["umount", "--lazy", each.mountpoint], check=False, capture_output=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
