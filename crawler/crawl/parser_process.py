"""A process that reads bodies for another one: calls come on stdin, what they give goes to stdout.

The process is started by its path, since by its name all of the crawling room would be imported first. It ends when
its input does, and so with whoever started it, however that ended.
"""

import pickle
import resource
import struct
import sys
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

import crawler.core.page  # noqa: F401  what it will be asked for, before its memory is bound

LENGTH = struct.Struct(">I")
MEMORY_BYTES = 1 << 30  # for one body, beside what the process has when it begins; a page takes 0.4 GB at most
STATM = Path("/proc/self/statm")  # in pages; the sixth number is what counts against RLIMIT_DATA


def pack(message: object) -> bytes:
    """A message as it goes through the pipe."""
    data = pickle.dumps(message, protocol=pickle.HIGHEST_PROTOCOL)
    return LENGTH.pack(len(data)) + data


def bound_memory() -> None:
    """Let a body that takes more than its share cost this process, not the machine. Only Linux can."""
    if STATM.exists():
        own_bytes = int(STATM.read_text(encoding="ascii").split()[5]) * resource.getpagesize()
        _, hard = resource.getrlimit(resource.RLIMIT_DATA)
        resource.setrlimit(resource.RLIMIT_DATA, (own_bytes + MEMORY_BYTES, hard))


def serve(calls: BinaryIO, answers: BinaryIO) -> None:
    """Make one call after the other until the input ends."""
    while header := calls.read(LENGTH.size):
        call: Callable[[], object] = pickle.loads(calls.read(*LENGTH.unpack(header)))  # noqa: S301  ours
        answers.write(pack(call()))
        answers.flush()


if __name__ == "__main__":
    bound_memory()
    serve(sys.stdin.buffer, sys.stdout.buffer)
