"""stdout and stderr that ignore a closed pipe, so the work finishes and the command returns its exit code."""

import io
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from crawler.errors import CrawlerError

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer


class _SturdyFile(io.FileIO):
    """A file that discards further output after a write failed.

    is_result: raise CrawlerError once if a write fails for a reason that the user can fix, such as a full disk, but not
    for a closed pipe. A failure of stderr must not end a crawl, and cannot be reported anywhere.
    """

    is_silent = False

    def __init__(self, number: int, *, is_result: bool) -> None:
        super().__init__(number, "w", closefd=False)
        self._is_result = is_result

    def write(self, data: "ReadableBuffer", /) -> int:
        if not self.is_silent:
            try:
                return super().write(data)
            except BrokenPipeError:
                self.is_silent = True
            except OSError as error:
                self.is_silent = True
                if self._is_result:
                    raise CrawlerError(f"the output cannot be written: {error.strerror}") from error
        return memoryview(data).nbytes


def make_streams_sturdy() -> None:
    """Replace the process's original stdout and stderr by sturdy ones. Streams that a caller put there stay."""
    if sys.stdout is sys.__stdout__:
        sys.stdout = _make_sturdy(sys.stdout, 1)
    if sys.stderr is sys.__stderr__:
        sys.stderr = _make_sturdy(sys.stderr, 2)


def _make_sturdy(stream: TextIO | None, number: int) -> TextIO:
    if stream is None:  # closed by the shell with >&-
        return Path(os.devnull).open("w", encoding="utf-8")
    return io.TextIOWrapper(
        io.BufferedWriter(_SturdyFile(number, is_result=number == 1)),
        encoding=stream.encoding,
        errors="backslashreplace",  # pages may contain characters that the terminal's encoding lacks
        line_buffering=stream.isatty() or number == 2,
    )
