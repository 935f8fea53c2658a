"""How a process that crawls, or shows pages, for long uses its machine: cores, memory, and processes that it starts."""

import asyncio
import ctypes
import gc
import math
import os
import socket
import sys
from asyncio.subprocess import DEVNULL, Process
from collections.abc import Mapping, Sequence
from pathlib import Path

# glibc takes larger pieces from the system and gives them back at once. Left alone it learns from the first bodies of
# some megabytes to keep such pieces, which small ones then break up: it stays as large as ever.
LARGE_BYTES = 256 << 10
# Environments of processes that are started. Nobody here multiplies matrices, and threads for that are started when
# numpy is loaded. Readers are bound in memory before they can be asked.
SINGLE_THREAD_ENVIRONMENT = {"OPENBLAS_NUM_THREADS": "1"}
READER_ENVIRONMENT = SINGLE_THREAD_ENVIRONMENT | {"MALLOC_MMAP_THRESHOLD_": str(LARGE_BYTES)}
_M_MMAP_THRESHOLD, _M_ARENA_MAX = -3, -8
MAX_ARENAS = 2  # of memory for threads, each of which keeps what it was given; few of ours ask for any at the same time
BUFFER_BYTES = 4 << 20  # of messages from a child
_MALLOC_TRIM = getattr(ctypes.CDLL(None), "malloc_trim", None)  # of glibc


# Where a process sees its control groups, and which are its own.
CGROUPS, PROCESS_CGROUPS = Path("/sys/fs/cgroup"), Path("/proc/self/cgroup")

# This very package, installed or not, and what else the user has Python look for.
_PATHS = (str(Path(__file__).parents[2]), *filter(None, [os.environ.get("PYTHONPATH")]))


def build_child_environment(extra: Mapping[str, str]) -> dict[str, str]:
    """The environment of a Python of ours that this process starts."""
    return {**os.environ, **extra, "PYTHONPATH": os.pathsep.join(_PATHS)}


async def start_child(
    *arguments: str, extra: Mapping[str, str], stderr: int | None = None
) -> tuple[Process, asyncio.StreamReader, asyncio.StreamWriter]:
    """Start a Python of ours, and return it with the two directions of the socket at its stdin. OSError if it cannot.

    extra: see child_environment.  stderr: as in asyncio.create_subprocess_exec.
    """
    ours, theirs = socket.socketpair()
    try:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-P",
            *arguments,
            stdin=theirs.fileno(),
            stdout=DEVNULL,
            stderr=stderr,
            start_new_session=True,  # Ctrl-C is for the crawl, which still wants to record what it has
            env=build_child_environment(extra),
        )
    except BaseException:
        ours.close()
        raise
    finally:
        theirs.close()
    return process, *await asyncio.open_connection(sock=ours, limit=BUFFER_BYTES)


def count_usable_cores() -> int:
    """Cores that this process may run on, or fewer where a container or a service has a quota of processor time."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, math.ceil(min(cores, read_cpu_quota(CGROUPS, PROCESS_CGROUPS))))


def read_cpu_quota(root: Path, cgroup_file: Path) -> float:
    """How many cores' worth of time the control groups of a process leave it; infinite where none of them has a bound.

    root: where they are mounted.  cgroup_file: the file that names the process's own; the bounds of all groups around
    it hold, too. A container of 2 cores on a machine of 64 may run on all 64, and has a quota of 2. Source: the
    kernel's documentation, `cpu.max` of cgroup v2 and `cpu.cfs_quota_us` of v1, which may be mounted both.
    """
    try:
        lines = cgroup_file.read_text(encoding="utf-8").splitlines()
    except OSError:  # not Linux
        return math.inf
    quota = math.inf
    for line in lines:
        number, controllers, path = line.split(":", 2)
        if number == "0":
            mount, files = root, ["cpu.max"]
        elif "cpu" in controllers.split(","):
            mount, files = root / controllers, ["cpu.cfs_quota_us", "cpu.cfs_period_us"]
        else:
            continue
        innermost = mount / path.lstrip("/")
        groups = [each for each in (innermost, *innermost.parents) if each.is_relative_to(mount)]
        quota = min(quota, *(_read_quota([group / file for file in files]) for group in groups))
    return quota


def _read_quota(files: Sequence[Path]) -> float:
    """Microseconds over the period that they are for, which stand in one file or in two."""
    try:
        microseconds, period = (word for file in files for word in file.read_text(encoding="ascii").split())
    except (OSError, ValueError):  # a root has none, and neither has what a container does not see
        return math.inf
    return math.inf if microseconds in {"max", "-1"} else int(microseconds) / int(period)


def prepare_memory() -> None:
    """Get a process ready for its work, once all is loaded that stays until it ends.

    The garbage collector is spared what is loaded: to look through all of it takes longer than to hand out 500 pages,
    and happens while they are handed out. Nor is it looked through once before: of the hundred thousand objects that
    imports leave, some forty are garbage. What large bodies took is given back to the system.
    """
    gc.freeze()
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)  # of Linux
    if mallopt is not None:
        mallopt(_M_MMAP_THRESHOLD, LARGE_BYTES)
        mallopt(_M_ARENA_MAX, MAX_ARENAS)


def trim_memory() -> None:
    """Give free memory to the system, that of cycles first: some milliseconds, after `prepare_memory`."""
    gc.collect()
    if _MALLOC_TRIM is not None:
        _MALLOC_TRIM(0)
