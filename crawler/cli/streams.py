"""stdout and stderr that outlive their readers: what was begun is finished, and ends with its own exit code."""

import io
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from crawler.errors import CrawlerError

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer


class _SturdyFile(io.FileIO):
    """A file that goes silent when it cannot be written to any more.

    is_result: raises CrawlerError once where that is something to mend, such as a full disk; a reader that went away
    is none. What is only said beside the result is not worth ending a crawl for, and there is nowhere left to say so.
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
    """Make the process's own stdout and stderr sturdy; others, put in their place by whoever calls us, stay."""
    if sys.stdout is sys.__stdout__:
        sys.stdout = _make_sturdy(sys.stdout, 1)
    if sys.stderr is sys.__stderr__:
        sys.stderr = _make_sturdy(sys.stderr, 2)


def _make_sturdy(stream: TextIO | None, number: int) -> TextIO:
    if stream is None:  # closed before we began, as by >&-
        return Path(os.devnull).open("w", encoding="utf-8")
    return io.TextIOWrapper(
        io.BufferedWriter(_SturdyFile(number, is_result=number == 1)),
        encoding=stream.encoding,
        errors="backslashreplace",  # whatever the terminal's encoding, pages are in any script
        line_buffering=stream.isatty() or number == 2,
    )
