"""A process that reads bodies for another one: python -m crawler.reader, requests on stdin, what was read on stdout.

It ends when its input does, and so with whoever started it, however that ended.
"""

import pickle
import struct
import sys
from typing import BinaryIO

from crawler.core.change import Understood, understand
from crawler.core.urls import Url

LENGTH = struct.Struct(">I")


def pack(message: object) -> bytes:
    """A message as it goes through the pipe."""
    data = pickle.dumps(message, protocol=pickle.HIGHEST_PROTOCOL)
    return LENGTH.pack(len(data)) + data


def serve(requests: BinaryIO, answers: BinaryIO) -> None:
    """Read one body after the other until the input ends."""
    while header := requests.read(LENGTH.size):
        body, url, content_type, robots_tag = pickle.loads(requests.read(*LENGTH.unpack(header)))  # noqa: S301  ours
        understood: Understood = understand(body, url=Url(url), content_type=content_type, robots_tag=robots_tag)
        answers.write(pack(understood))
        answers.flush()


if __name__ == "__main__":
    serve(sys.stdin.buffer, sys.stdout.buffer)
