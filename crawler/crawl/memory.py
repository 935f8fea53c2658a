"""How a process that crawls, or shows pages, for long handles its memory."""

import ctypes
import gc

# glibc takes larger pieces from the system and gives them back at once. Left alone it learns from the first bodies of
# some megabytes to keep such pieces, which small ones then break up: it stays as large as ever.
LARGE_BYTES = 256 << 10
FOR_READERS = {"MALLOC_MMAP_THRESHOLD_": str(LARGE_BYTES)}  # environment, since they are bound before they can be asked
_M_MMAP_THRESHOLD = -3
_TRIM = getattr(ctypes.CDLL(None), "malloc_trim", None)  # of glibc


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


def give_back() -> None:
    """Give free memory to the system, that of cycles first: some milliseconds, after `settle_memory`."""
    gc.collect()
    if _TRIM is not None:
        _TRIM(0)
