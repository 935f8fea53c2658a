"""How a process that crawls, or shows pages, for long uses its machine: cores, and memory."""

import ctypes
import gc
import os
from collections.abc import Mapping
from pathlib import Path

# glibc takes larger pieces from the system and gives them back at once. Left alone it learns from the first bodies of
# some megabytes to keep such pieces, which small ones then break up: it stays as large as ever.
LARGE_BYTES = 256 << 10
# Environments of processes that are started. Nobody here multiplies matrices, and threads for that are started when
# numpy is loaded. Readers are bound in memory before they can be asked.
NO_THREADS = {"OPENBLAS_NUM_THREADS": "1"}
FOR_READERS = NO_THREADS | {"MALLOC_MMAP_THRESHOLD_": str(LARGE_BYTES)}
_M_MMAP_THRESHOLD, _M_ARENA_MAX = -3, -8
ARENAS = 2  # of memory for threads, each of which keeps what it was given; few of ours ask for any at the same time
_TRIM = getattr(ctypes.CDLL(None), "malloc_trim", None)  # of glibc


# This very package, installed or not, and what else the user has Python look for.
_PATHS = (str(Path(__file__).parents[2]), *filter(None, [os.environ.get("PYTHONPATH")]))


def child_environment(more: Mapping[str, str]) -> dict[str, str]:
    """The environment of a Python of ours that this process starts."""
    return {**os.environ, **more, "PYTHONPATH": os.pathsep.join(_PATHS)}


def usable_cores() -> int:
    """Cores that this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def settle_memory() -> None:
    """Get a process ready for its work, once all is loaded that stays until it ends.

    The garbage collector is spared what is loaded: to look through all of it takes longer than to hand out 500 pages,
    and happens while they are handed out. Nor is it looked through once before: of the hundred thousand objects that
    imports leave, some forty are garbage. What large bodies took is given back to the system.
    """
    gc.freeze()
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)  # of Linux
    if mallopt is not None:
        mallopt(_M_MMAP_THRESHOLD, LARGE_BYTES)
        mallopt(_M_ARENA_MAX, ARENAS)


def give_back() -> None:
    """Give free memory to the system, that of cycles first: some milliseconds, after `settle_memory`."""
    gc.collect()
    if _TRIM is not None:
        _TRIM(0)
