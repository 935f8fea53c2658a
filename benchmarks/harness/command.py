"""What a command costs: its time, the processor time and the memory of itself and everything that it started."""

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

SAMPLE_S = 0.2  # between two looks at the memory; a look takes well under a millisecond


@dataclass(frozen=True, slots=True)
class Resident:
    """Memory that the processes of a command hold together, what they share counted for each.

    at: seconds of the machine's monotonic clock.
    """

    at: float
    bytes: int


@dataclass(frozen=True, slots=True)
class Measured:
    """A command that has ended.

    began, ended: seconds of the machine's monotonic clock.  cpu_s: of the command and of all the processes below it
    that it waited for.  memory: every SAMPLE_S; empty where the system does not tell.
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
    """A measured command has ended with another code than 0; the message is the end of what it said."""


def succeeded(command: Sequence[str], environment: Mapping[str, str], *, folder: Path | None = None) -> Measured:
    """Run a command to its end. Raises CommandFailed."""
    done = measured(command, environment, folder=folder)
    if done.code != 0:
        raise CommandFailed(f"{' '.join(command)} ended with {done.code}:\n{done.errors[-2000:]}")
    return done


def measured(command: Sequence[str], environment: Mapping[str, str], *, folder: Path | None = None) -> Measured:
    """Run a command to its end, in a folder if one is given, however it ends."""
    with tempfile.TemporaryFile("w+") as output, tempfile.TemporaryFile("w+") as errors:
        began = monotonic()
        process = subprocess.Popen(
            command, env=environment, cwd=folder, stdin=subprocess.DEVNULL, stdout=output, stderr=errors
        )
        with sampled(process.pid) as memory:
            # The system adds up a process and the children that it waited for; no sampling misses a short one.
            _, status, used = os.wait4(process.pid, 0)
            ended = monotonic()
        process.returncode = os.waitstatus_to_exitcode(status)
        said = []
        for file in (output, errors):
            file.seek(0)
            said.append(file.read())
    return Measured(process.returncode, began, ended, used.ru_utime + used.ru_stime, memory, *said)


def resident_bytes(pids: Iterable[int]) -> int:
    """Return the memory of these processes, what they share counted for each."""
    total = 0
    for pid in pids:
        with suppress(psutil.Error):  # it is gone
            total += psutil.Process(pid).memory_info().rss
    return total


@contextmanager
def sampled(pid: int) -> Iterator[Sequence[Resident]]:
    """What a process and all below it hold, looked at again and again until the block ends."""
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
    """Seconds of processor time that a running process, its children and those it has waited for have used so far."""
    root = psutil.Process(pid)
    total = 0.0
    for process in (root, *root.children(recursive=True)):
        try:
            used = process.cpu_times()
        except psutil.NoSuchProcess:
            continue  # its parent has waited for it meanwhile, or will have at the next reading
        total += used.user + used.system + used.children_user + used.children_system
    return total
