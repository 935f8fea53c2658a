"""How long tests wait for others: until it has happened.

The limits are for what never happens, and so far above what a busy machine takes that they say nothing about speed.
"""

import time
from collections.abc import Callable

import pytest

PATIENCE_S = 300  # for anything that another process or thread does; nearly all of it takes less than a second
SLOW = pytest.mark.timeout(1800)  # for tests that wait many times, or for whole stacks
POLL_S = 0.05


def until(happens: Callable[[], object]) -> None:
    """Wait for something that happens elsewhere; a question may fail the test where it never will any more."""
    deadline = time.monotonic() + PATIENCE_S
    while not happens():
        assert time.monotonic() < deadline, f"it has not happened in {PATIENCE_S} s"
        time.sleep(POLL_S)
