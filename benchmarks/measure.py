"""What a command costs: its time, and the processor time of itself and everything that it started."""

import os
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from time import monotonic

import psutil


@dataclass(frozen=True, slots=True)
class Measured:
    """A command that has ended.

    began, ended: seconds of the machine's monotonic clock.  cpu_s: of the command and of all the processes below it
    that it waited for.
    """

    code: int
    began: float
    ended: float
    cpu_s: float
    output: str
    errors: str


def measured(command: Sequence[str], environment: Mapping[str, str]) -> Measured:
    """Run a command to its end."""
    with tempfile.TemporaryFile("w+") as output, tempfile.TemporaryFile("w+") as errors:
        began = monotonic()
        process = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=errors)
        # The system adds up a process and the children that it waited for; no sampling misses a short one.
        _, status, used = os.wait4(process.pid, 0)
        ended = monotonic()
        process.returncode = os.waitstatus_to_exitcode(status)
        said = []
        for file in (output, errors):
            file.seek(0)
            said.append(file.read())
    return Measured(process.returncode, began, ended, used.ru_utime + used.ru_stime, *said)


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
