"""A cursor of the change feed from which nobody can read on, told to programs as well as to people."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from crawler.cli.output import print_json_line
from crawler.errors import CursorAhead, CursorTooOld


@contextmanager
def told_if_useless(*, as_json: bool) -> Iterator[None]:
    """With --json, a document for a cursor that is too old, or beyond the end.

    The complaint and the exit code are as without.
    """
    try:
        yield
    except (CursorTooOld, CursorAhead) as error:
        if as_json:
            print_json_line(_document(error))
        raise


def _document(error: CursorTooOld | CursorAhead) -> Mapping[str, object]:
    if isinstance(error, CursorAhead):
        return {
            "error": "cursor_ahead",
            "since": error.since,
            "ends_at": error.end,
            "remedy": "recrawl export DOMAIN",
        }
    return {
        "error": "cursor_too_old",
        "since": error.since,
        "kept_from": error.kept_from,
        "domain": error.domain,
        "remedy": f"recrawl export {error.domain or 'DOMAIN'}",
    }
