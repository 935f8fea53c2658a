"""The browser's processes as the system sees them: who they are, what they take, and their bound."""

import contextlib
import os
import resource
import signal
from pathlib import Path

PROC = Path("/proc")
_RESIDENT = 1  # column of statm, in pages


def tree_of(pid: int) -> list[int]:
    """A process and all that came of it; empty where it is gone, or the system does not tell."""
    found, left = [], [pid]
    while left:
        pid = left.pop()
        try:
            children = (PROC / str(pid) / "task" / str(pid) / "children").read_text(encoding="ascii")
        except OSError:
            continue
        found.append(pid)
        left += map(int, children.split())
    return found


def child_above(pid: int) -> int | None:
    """The child of ours from which this process came; None where it did not, or the system does not tell."""
    try:
        while (parent := int((PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()[1])) != os.getpid():
            if parent <= 1:
                return None
            pid = parent
    except OSError:
        return None
    return pid


def resident_bytes(pids: list[int]) -> int:
    """Memory of these processes, what they share counted for each."""
    total = 0
    for pid in pids:
        with contextlib.suppress(OSError):
            total += int((PROC / str(pid) / "statm").read_text(encoding="ascii").split()[_RESIDENT])
    return total * resource.getpagesize()


def bind_memory(pids: list[int], most_bytes: int) -> None:
    """Bound the private memory of these processes and of all that they will start."""
    if not hasattr(resource, "prlimit"):
        return
    for pid in pids:
        with contextlib.suppress(OSError):  # it is gone
            resource.prlimit(pid, resource.RLIMIT_DATA, (most_bytes, most_bytes))


def kill_tree(pid: int) -> None:
    """End a browser at once, with all its processes."""
    for each in tree_of(pid):
        with contextlib.suppress(ProcessLookupError):
            os.kill(each, signal.SIGKILL)
