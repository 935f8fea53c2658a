"""A cursor of the change feed from which nobody can read on, told to programs as well as to people."""

from collections.abc import Iterator
from contextlib import contextmanager

from crawler.cli.output import pick, print_json_line
from crawler.errors import CursorAhead, CursorTooOld


@contextmanager
def told_if_useless(*, as_json: bool) -> Iterator[None]:
    """With --json, a document for a cursor that is too old, or beyond the end.

    The complaint and the exit code are as without.
    """
    try:
        yield
    except CursorAhead as error:
        if as_json:
            document = {"error": "cursor_ahead", "since": error.since, "ends_at": error.end}
            print_json_line(document | {"remedy": "recrawl export DOMAIN"})
        raise
    except CursorTooOld as error:
        if as_json:
            document = {"error": "cursor_too_old", **pick(error, "since", "kept_from", "domain")}
            print_json_line(document | {"remedy": f"recrawl export {error.domain or 'DOMAIN'}"})
        raise
