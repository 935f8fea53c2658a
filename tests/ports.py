"""Ports for the servers of tests: for each test the same ones in every run.

The key of a page is drawn from its URL, and with it where the page stands in the queue and when its first gap ends. A
port that the system chooses makes every run another draw; one that the test chooses makes a run that passes pass again.
"""

import os
import zlib
from collections import Counter

from crawler.runtime.machine import is_port_free

RANGE = range(12_000, 19_000)  # beside those of local stacks, below those that the system gives to clients
_taken: Counter[str] = Counter()


def next_port() -> int:
    """A loopback port that nobody listens on: the first, second, ... of the test that runs now."""
    test = os.environ["PYTEST_CURRENT_TEST"].rsplit(" ", 1)[0]  # without its phase
    while True:
        _taken[test] += 1
        port = RANGE[zlib.crc32(f"{test} {_taken[test]}".encode()) % len(RANGE)]
        if is_port_free(port):
            return port
