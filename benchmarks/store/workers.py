"""Run several processes that start the same work at the same time, once all are ready."""

import multiprocessing
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from multiprocessing.synchronize import Barrier as AllReady
from typing import TypeVar

T = TypeVar("T")
PATIENCE_S = 300.0  # time limit until the slowest is ready


@dataclass(frozen=True, slots=True)
class Work:
    """The work of one process. seconds: elapsed time.  cpu_s: CPU time of the process."""

    pages: int
    seconds: float
    cpu_s: float


_ready: AllReady | None = None


def at_once(work: Callable[[T], Work], parts: Sequence[T]) -> list[Work]:
    """Return the work of each process on its part. work: calls `all_ready` before it starts."""
    context = multiprocessing.get_context("spawn")
    ready = context.Barrier(len(parts))
    with ProcessPoolExecutor(len(parts), mp_context=context, initializer=partial(_remember, ready)) as pool:
        return list(pool.map(work, parts))


def all_ready() -> None:
    """Wait until every process of this `at_once` is ready."""
    assert _ready is not None
    _ready.wait(PATIENCE_S)


def _remember(ready: AllReady) -> None:
    global _ready  # noqa: PLW0603  a barrier reaches a process of a pool only at its start
    _ready = ready
