"""A parser process: it receives calls through a socket at stdin and sends back their results.

The process is started by the path of this file: starting it by module name would import all of the engine. It ends
when its input ends, and thus with its parent; by a signal when a body takes too much CPU time, because C parsers cannot
be interrupted; and when its parent kills it.
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

import crawler.core.change.boilerplate  # noqa: F401  import all that calls need before memory is limited
from crawler.core.page.main_content.compiled_scores import load_scoring_library
from crawler.core.page.reader_choice import VARIABLE, choose_reader

LENGTH = struct.Struct(">I")
MAX_REPLY_BYTES = 64 << 20  # text, links and blocks of 10 MB take half of that
READ_BYTES = 1 << 18  # at once; most requests need one read
LARGE_BYTES = 16 << 20  # memory growth that justifies the 10 to 40 ms for returning memory to the system
MALLOC_TRIM = getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc only
STATM = Path("/proc/self/statm")  # in pages; the second number is resident, the sixth counts against RLIMIT_DATA


# Messages are tuples: classes of this script would be pickled as `__main__`, which differs in the parent.
# Request: a call, the CPU seconds after which SIGPROF ends the process, and the bytes that the call may use.
Request = tuple[Callable[[], object], float, int]
# Reply: the result of the call; why there is none, or ""; whether more memory might help; resident bytes after parsing.
Reply = tuple[object, str, bool, int]


def pack_message(message: object) -> bytes:
    """Serialize a message."""
    return pickle.dumps(message, protocol=pickle.HIGHEST_PROTOCOL)


def read_memory_bytes() -> tuple[int, int]:
    """Return the resident bytes of this process, and those that count against its limit; (0, 0) if not available."""
    statm = _open_statm()
    if statm is None:
        return 0, 0
    pages = os.pread(statm, 256, 0).split()
    return int(pages[1]) * resource.getpagesize(), int(pages[5]) * resource.getpagesize()


@cache
def _open_statm() -> int | None:
    """Open STATM and keep it open, since it is read twice for each body. Return None if it does not exist."""
    return os.open(STATM, os.O_RDONLY | os.O_CLOEXEC) if STATM.exists() else None


def build_reply(request: Request) -> bytes:
    """Run a request's call and return the serialized Reply, also when the call raises."""
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
        problem = f"its result is too large ({len(reply):,} bytes)"
    except MemoryError:
        problem, is_out_of_memory = "parsing takes too much memory", True
    except Exception as error:  # noqa: BLE001  an untrusted page may raise anything in a parser; it is reported
        problem = repr(error)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        resource.setrlimit(resource.RLIMIT_DATA, (hard, hard))
    return pack_message((None, problem, is_out_of_memory, read_memory_bytes()[0]))


def trim_memory() -> None:
    """Return free memory to the system, before the parent process needs memory for the reply."""
    if MALLOC_TRIM is not None:
        MALLOC_TRIM(0)


def serve_requests(requests: BinaryIO, replies: BinaryIO) -> None:
    """Report readiness, then handle one request after the other until the input ends."""
    _write_reply(replies, pack_message((None, "", False, read_memory_bytes()[0])))
    while header := requests.read(LENGTH.size):
        request: Request = pickle.loads(requests.read(*LENGTH.unpack(header)))  # noqa: S301  from the parent
        _write_reply(replies, build_reply(request))


def open_streams() -> tuple[BinaryIO, BinaryIO]:
    """Return the socket at stdin as two streams, and point stdin to /dev/null so that plugins cannot use it."""
    requests = os.fdopen(os.dup(0), "rb", buffering=READ_BYTES)
    replies = os.fdopen(os.dup(0), "wb")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    return requests, replies


def _write_reply(replies: BinaryIO, reply: bytes) -> None:
    replies.write(LENGTH.pack(len(reply)) + reply)  # together, since each write wakes the parent
    replies.flush()


if __name__ == "__main__":
    streams = open_streams()
    choose_reader(os.environ.get(VARIABLE, ""))
    load_scoring_library()  # now: its memory would count against the limit of a body
    if len(sys.argv) > 1:  # load plugins now: their imports would count against the limit of a body
        from crawler.plugins import load_reader  # not needed without plugins

        for name in sys.argv[1:]:
            load_reader(name)
    serve_requests(*streams)
