"""A process that reads bodies for another one: calls come through a socket at stdin, what they give goes back.

The process is started by its path, since by its name all of the crawling room would be imported first. It ends when
its input does, and so with whoever started it, however that ended; by a body that takes too much processor time, which
no parser in C can be asked to give up; and after a body that has left it large.
"""

import ctypes
import os
import pickle
import resource
import signal
import struct
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import BinaryIO

import crawler.core.novelty
import crawler.core.page  # noqa: F401  what it will be asked for, before its memory is bound

LENGTH = struct.Struct(">I")
MAX_REPLY_BYTES = 64 << 20  # the text, links and blocks of ten megabytes take half of that
LARGE_BYTES = 16 << 20  # that a body took: worth the 10 to 40 ms of giving them back
MALLOC_TRIM = getattr(ctypes.CDLL(None), "malloc_trim", None)  # of glibc
STATM = Path("/proc/self/statm")  # in pages; the second number is resident, the sixth counts against RLIMIT_DATA


# What goes to the process, and what comes back. The names of classes would be others at each end.
# Request: a call, the processor seconds after which SIGPROF ends the process, and bytes beside what the process has.
Request = tuple[Callable[[], object], float, int]
# Answer: what the call gave; why it gave nothing, or ""; whether more memory might help; bytes that were resident with
# all that was parsed.
Reply = tuple[object, str, bool, int]


def pack_message(message: object) -> bytes:
    """A message as it goes through the socket, behind its length."""
    return pickle.dumps(message, protocol=pickle.HIGHEST_PROTOCOL)


def read_memory_bytes() -> tuple[int, int]:
    """What of this process is resident, and what of it counts against the bound; (0, 0) where that is not told."""
    statm = _open_statm()
    if statm is None:
        return 0, 0
    pages = os.pread(statm, 256, 0).split()
    return int(pages[1]) * resource.getpagesize(), int(pages[5]) * resource.getpagesize()


@cache
def _open_statm() -> int | None:
    """STATM, open as long as the process runs: it is asked twice for each body. None where there is none."""
    return os.open(STATM, os.O_RDONLY | os.O_CLOEXEC) if STATM.exists() else None


def build_reply(request: Request) -> bytes:
    """The packed Answer to a request, whatever its call does short of ending the process."""
    call, cpu_seconds, max_bytes = request
    before_bytes, counted_bytes = read_memory_bytes()
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    if counted_bytes:
        resource.setrlimit(resource.RLIMIT_DATA, (counted_bytes + max_bytes, hard))
    signal.setitimer(signal.ITIMER_PROF, cpu_seconds)
    problem, is_out_of_memory = "", False
    try:
        value = call()
        resident = read_memory_bytes()[0]
        if resident > before_bytes + LARGE_BYTES:
            trim_memory()
        reply = pack_message((value, "", False, resident))
        if len(reply) <= MAX_REPLY_BYTES:
            return reply
        problem = f"it gives {len(reply):,} bytes"
    except MemoryError:
        problem, is_out_of_memory = "it takes too much memory", True
    except Exception as error:  # noqa: BLE001  whatever a stranger's page does to a parser is an answer, told once
        problem = repr(error)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        resource.setrlimit(resource.RLIMIT_DATA, (hard, hard))
    return pack_message((None, problem, is_out_of_memory, read_memory_bytes()[0]))


def trim_memory() -> None:
    """Give free memory to the system: what was parsed goes before the answer needs room at the other end."""
    if MALLOC_TRIM is not None:
        MALLOC_TRIM(0)


def serve_requests(requests: BinaryIO, replies: BinaryIO) -> None:
    """Say that all is ready, then answer one request after the other until there are no more."""
    _write_reply(replies, pack_message((None, "", False, read_memory_bytes()[0])))
    while header := requests.read(LENGTH.size):
        request: Request = pickle.loads(requests.read(*LENGTH.unpack(header)))  # noqa: S301  ours
        _write_reply(replies, build_reply(request))


def open_streams() -> tuple[BinaryIO, BinaryIO]:
    """The socket of requests and answers, out of the way of whatever a plugin asks for."""
    requests, replies = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(0), "wb")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    return requests, replies


def _write_reply(replies: BinaryIO, reply: bytes) -> None:
    replies.write(LENGTH.pack(len(reply)))
    replies.write(reply)
    replies.flush()


if __name__ == "__main__":
    streams = open_streams()
    if len(sys.argv) > 1:  # now, since what they import would count against the bound of a body
        from crawler.plugins import load_reader  # without plugins, a process has no use for it

        for name in sys.argv[1:]:
            load_reader(name)
    serve_requests(*streams)
