"""How long tests wait for others: until it has happened.

The limits are for what never happens, and so far above what a busy machine takes that they say nothing about speed.
"""

import time
from collections.abc import Callable

import pytest

PATIENCE_S = 300  # for anything that another process or thread does; nearly all of it takes less than a second
SLOW = pytest.mark.timeout(1800)  # for tests that wait many times, or for whole stacks
POLL_S = 0.05
COSTLY_POLL_S = 0.4  # for questions that take processor time, such as to Prefect, a database or a new process


def until(happens: Callable[[], object], *, poll_s: float = POLL_S) -> None:
    """Wait for something that happens elsewhere; a question may fail the test where it never will any more."""
    deadline = time.monotonic() + PATIENCE_S
    while not happens():
        assert time.monotonic() < deadline, f"it has not happened in {PATIENCE_S} s"
        time.sleep(poll_s)
