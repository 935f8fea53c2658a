"""A process that reads bodies for another one: python -m crawler.reader, requests on stdin, what was read on stdout.

It ends when its input does, and so with whoever started it, however that ended.
"""

import pickle
import resource
import struct
import sys
from pathlib import Path
from typing import BinaryIO

from crawler.core.change import Understood, understand
from crawler.core.urls import Url

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


def serve(requests: BinaryIO, answers: BinaryIO) -> None:
    """Read one body after the other until the input ends."""
    while header := requests.read(LENGTH.size):
        request = pickle.loads(requests.read(*LENGTH.unpack(header)))  # noqa: S301  ours
        body, url, content_type, robots_tag, outlined, view = request
        understood: Understood = understand(
            body, url=Url(url), content_type=content_type, robots_tag=robots_tag, outlined=outlined, view=view
        )
        answers.write(pack(understood))
        answers.flush()


if __name__ == "__main__":
    bound_memory()
    serve(sys.stdin.buffer, sys.stdout.buffer)
