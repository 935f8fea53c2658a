"""JSON as lines: one for each value, under the names that lead to it."""

import json
from collections.abc import Iterator
from operator import itemgetter

from crawler.core.page.document import Document, collapsed

MOST_CHARS = 4_000_000  # of the source; it becomes a million values at most, in four seconds
MOST_LINE_CHARS = 16_000_000  # of all lines; long names around many values would multiply
MAX_DEPTH = 100  # Python's own parser ends at a thousand, or later

# Objects become pairs, so that a name that comes twice hides nothing; numbers stay as they are written, to the digit.
_PARSER = json.JSONDecoder(object_pairs_hook=tuple, parse_int=str, parse_float=str, parse_constant=str, strict=False)


def read_json(source: str) -> Document:
    """Read JSON as one line for each value, "path: value", in the order of the names. Never raises.

    The elements of a list have no numbers, so that a new first element changes no other line; the first line of each
    begins with a dash, as in YAML. A source that is no JSON, or exceeds the bounds above, is read line by line.
    """
    try:
        value = _PARSER.decode(source if len(source) <= MOST_CHARS else "")  # which is no JSON
        text = collapsed(_bounded(_leaves(value, "", MAX_DEPTH)))
    except (ValueError, RecursionError):
        return Document(text=collapsed(source.splitlines()))
    return Document(text=text.encode("utf-8", "replace").decode())  # an escape can name half a character


def _bounded(lines: Iterator[str]) -> Iterator[str]:
    chars = 0
    for line in lines:
        chars += len(line)
        if chars > MOST_LINE_CHARS:
            raise ValueError("too long")
        yield line


def _leaves(value: object, path: str, depth: int) -> Iterator[str]:
    if depth == 0:
        raise ValueError("too deep")
    if isinstance(value, tuple) and value:
        for name, inner in sorted(value, key=itemgetter(0)):
            yield from _leaves(inner, f"{path}.{name}" if path else name, depth - 1)
    elif isinstance(value, list) and value:
        for inner in value:
            lines = _leaves(inner, f"{path}[]", depth - 1)
            yield f"- {next(lines)}"
            yield from lines
    else:
        shown = value if isinstance(value, str) else "{}" if value == () else json.dumps(value)
        yield f"{path}: {shown}" if path else shown
