"""Measure a command: its time, and the CPU time and memory of all its processes."""

import os
import subprocess
import tempfile
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from time import monotonic

import psutil

from crawler.fetch.browser.process import list_process_tree

SAMPLE_S = 0.2  # time between two memory samples; a sample takes well under a millisecond


@dataclass(frozen=True, slots=True)
class Resident:
    """The memory of the processes of a command; shared memory counts once for each.

    at: seconds of the machine's monotonic clock.
    """

    at: float
    bytes: int


@dataclass(frozen=True, slots=True)
class Measured:
    """A finished command.

    began, ended: seconds of the machine's monotonic clock.
    cpu_s: CPU time of the command and of the children it waited for.
    memory: a sample every SAMPLE_S; empty if the system does not report it.
    """

    code: int
    began: float
    ended: float
    cpu_s: float
    memory: Sequence[Resident]
    output: str
    errors: str

    @property
    def seconds(self) -> float:
        return self.ended - self.began

    @property
    def peak_bytes(self) -> int:
        return max((each.bytes for each in self.memory), default=0)


class CommandFailed(Exception):
    """A measured command failed. The message is the end of its stderr."""


def succeeded(command: Sequence[str], environment: Mapping[str, str], *, folder: Path | None = None) -> Measured:
    """Run a command to its end. Raise CommandFailed unless it returns 0."""
    done = measured(command, environment, folder=folder)
    if done.code != 0:
        raise CommandFailed(f"{' '.join(command)} ended with {done.code}:\n{done.errors[-2000:]}")
    return done


def measured(command: Sequence[str], environment: Mapping[str, str], *, folder: Path | None = None) -> Measured:
    """Run a command to its end, whatever its exit code."""
    with tempfile.TemporaryFile("w+") as output, tempfile.TemporaryFile("w+") as errors:
        began = monotonic()
        process = subprocess.Popen(
            command, env=environment, cwd=folder, stdin=subprocess.DEVNULL, stdout=output, stderr=errors
        )
        with sampled(process.pid) as memory:
            # The system sums a process and the children it waited for, which includes short ones that sampling misses.
            _, status, used = os.wait4(process.pid, 0)
            ended = monotonic()
        process.returncode = os.waitstatus_to_exitcode(status)
        said = []
        for file in (output, errors):
            file.seek(0)
            said.append(file.read())
    return Measured(process.returncode, began, ended, used.ru_utime + used.ru_stime, memory, *said)


def resident_bytes(pids: Iterable[int]) -> int:
    """Return the memory of these processes; shared memory counts once for each."""
    total = 0
    for pid in pids:
        with suppress(psutil.Error):  # it has ended
            total += psutil.Process(pid).memory_info().rss
    return total


@contextmanager
def sampled(pid: int) -> Iterator[Sequence[Resident]]:
    """Sample the memory of a process and its descendants until the block ends."""
    samples: list[Resident] = []
    is_over = threading.Event()

    def sample() -> None:
        while not is_over.wait(SAMPLE_S):
            if tree := list_process_tree(pid):
                samples.append(Resident(monotonic(), resident_bytes(tree)))

    thread = threading.Thread(target=sample, name="memory")
    thread.start()
    try:
        yield samples
    finally:
        is_over.set()
        thread.join()


def cpu_of_tree(pid: int) -> float:
    """Return the CPU seconds used so far by a running process, its children, and those it waited for."""
    root = psutil.Process(pid)
    total = 0.0
    for process in (root, *root.children(recursive=True)):
        try:
            used = process.cpu_times()
        except psutil.NoSuchProcess:
            continue  # it has ended, and its parent counts its time once it has waited for it
        total += used.user + used.system + used.children_user + used.children_system
    return total
