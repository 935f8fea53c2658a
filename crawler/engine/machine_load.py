"""Use of the machine by long-running processes: cores, memory and child processes."""

import asyncio
import ctypes
import gc
import math
import os
import socket
import sys
import time
from asyncio.subprocess import DEVNULL, Process
from collections.abc import Mapping, Sequence
from pathlib import Path

# glibc maps allocations above this threshold separately and returns them to the system at once. By default it raises
# the threshold after the first bodies of several megabytes; then fragmentation keeps the process large.
LARGE_BYTES = 256 << 10
# Environments of child processes. Importing numpy starts OpenBLAS threads, which are not needed here. Parser processes
# get the threshold as a variable, because they do not call `prepare_memory`.
SINGLE_THREAD_ENVIRONMENT = {"OPENBLAS_NUM_THREADS": "1"}
PARSER_ENVIRONMENT = SINGLE_THREAD_ENVIRONMENT | {"MALLOC_MMAP_THRESHOLD_": str(LARGE_BYTES)}
LOAD_INTERVAL = 1.0  # seconds
BUSY_SHARE = 0.8  # of a core's time
_M_MMAP_THRESHOLD, _M_ARENA_MAX = -3, -8
_MALLOC_TRIM = getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc only

# Where control groups are mounted, and the file that names those of this process.
CGROUPS, PROCESS_CGROUPS = Path("/sys/fs/cgroup"), Path("/proc/self/cgroup")

# Child processes import this copy of the package, installed or not.
_PATHS = (str(Path(__file__).parents[2]), *filter(None, [os.environ.get("PYTHONPATH")]))


class LoadMeter:
    """A meter of this process: it is busy if it used BUSY_SHARE of a core during the last whole LOAD_INTERVAL."""

    def __init__(self) -> None:
        self._began, self._cpu_before, self._is_busy = time.monotonic(), time.process_time(), False

    def is_busy(self) -> bool:
        """Return whether the process was busy during the last interval that ended; False before the first one ends."""
        elapsed = time.monotonic() - self._began
        if elapsed >= LOAD_INTERVAL:
            self._is_busy = time.process_time() - self._cpu_before >= BUSY_SHARE * elapsed
            self._began, self._cpu_before = time.monotonic(), time.process_time()
        return self._is_busy

    async def measure_interval(self) -> bool:
        """Wait for an interval and return whether the process was busy in it."""
        await asyncio.sleep(LOAD_INTERVAL)
        return self.is_busy()


def build_child_environment(extra: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a Python child process. extra: additional variables."""
    return {**os.environ, **extra, "PYTHONPATH": os.pathsep.join(_PATHS)}


async def start_child(
    *arguments: str, extra: Mapping[str, str], stderr: int | None = None
) -> tuple[Process, asyncio.StreamReader, asyncio.StreamWriter]:
    """Start a Python child process and return it with a reader and a writer for the socket at its stdin.

    extra: additional environment variables.  stderr: as in asyncio.create_subprocess_exec.
    Raise OSError if it cannot be started.
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
            start_new_session=True,  # Ctrl-C must reach only the crawl, which still records its visits
            env=build_child_environment(extra),
        )
    except BaseException:
        ours.close()
        raise
    finally:
        theirs.close()
    return process, *await asyncio.open_connection(sock=ours, limit=4 << 20)


def count_usable_cores() -> int:
    """Return the number of cores that this process may use, considering CPU affinity and cgroup quotas."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, math.ceil(min(cores, read_cpu_quota(CGROUPS, PROCESS_CGROUPS))))


def read_cpu_quota(root: Path, cgroup_file: Path) -> float:
    """Return the CPU quota of a process in cores: the lowest of all its control groups; infinity if none has a quota.

    root: the folder where control groups are mounted.  cgroup_file: the file that names the groups of the process.
    A container with 2 of 64 cores may run on all 64 and has a quota of 2. Source: the kernel's documentation of
    `cpu.max` (cgroup v2) and `cpu.cfs_quota_us` (v1); both versions may be mounted at once.
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
    """Return the quota in cores, from one file (cgroup v2) or two (v1); infinity if there is none."""
    try:
        microseconds, period = (word for file in files for word in file.read_text(encoding="ascii").split())
    except (OSError, ValueError):  # root groups have no such files, and a container does not see outer groups
        return math.inf
    return math.inf if microseconds in {"max", "-1"} else int(microseconds) / int(period)


def prepare_memory() -> None:
    """Tune garbage collection and malloc. Call it once, after all imports.

    Exclude imported objects from garbage collection: scanning them takes longer than selecting 500 pages. No
    collection runs before, because only about forty of the hundred thousand objects are garbage. Make glibc return the
    memory of large bodies to the system.
    """
    gc.freeze()
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)  # Linux only
    if mallopt is not None:
        mallopt(_M_MMAP_THRESHOLD, LARGE_BYTES)
        # Memory arenas of threads: each keeps its free memory, and few threads allocate at the same time.
        mallopt(_M_ARENA_MAX, 2)


def trim_memory() -> None:
    """Collect garbage and return free memory to the system. If `prepare_memory` was called, it takes milliseconds."""
    gc.collect()
    if _MALLOC_TRIM is not None:
        _MALLOC_TRIM(0)
