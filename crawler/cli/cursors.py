"""A cursor of the change feed that is older than what is kept, told to programs as well as to people."""

from collections.abc import Iterator
from contextlib import contextmanager

from crawler.cli.output import print_json_line
from crawler.errors import CursorTooOld


@contextmanager
def told_if_too_old(*, as_json: bool) -> Iterator[None]:
    """With --json, a document for a cursor that is too old; the complaint and the exit code are as without."""
    try:
        yield
    except CursorTooOld as error:
        if as_json:
            print_json_line(
                {
                    "error": "cursor_too_old",
                    "since": error.since,
                    "kept_from": error.kept_from,
                    "domain": error.domain,
                    "remedy": f"recrawl export {error.domain or 'DOMAIN'}",
                }
            )
        raise
