"""Parts of a text that make up another one, so that only the first needs to be stored."""

MAX_PARTS = 1000  # more would take as much space as the text and much time to join
CHUNK = 1024  # bytes compared at a time
SEARCHED_BYTES = 64 << 10  # after a line inside another one, for the same line on its own


def find_parts(text: bytes, chosen: bytes) -> list[int]:
    """Return the ranges of bytes of `text` which joined are `chosen`: first, end, first, end, and so on.

    The ranges ascend and do not overlap. Return none if there are no such ranges or more than MAX_PARTS.
    A range starts with a line of `chosen`, or with its line break, and is as long as possible.
    """
    ranges: list[int] = []
    first = done = 0  # the next byte of each
    while done < len(chosen) and len(ranges) < 2 * MAX_PARTS:
        line = chosen[done : chosen.find(b"\n", done) + 1 or None]
        first = _find_line(text, line, first)
        if first < 0:
            return []
        length = _count_common_bytes(text, first, chosen, done)
        ranges += (first, first + length)
        first, done = first + length, done + length
    return ranges if done == len(chosen) else []


def _find_line(text: bytes, line: bytes, start: int) -> int:
    """Return where a line is, if possible at the start of a line of the text; -1 if it is nowhere.

    If the line is only found without its line break, more text follows it, such as the permalink of a heading.
    """
    found = text.find(line, start)
    if found > 0 and not text.endswith(b"\n", 0, found) and line != b"\n":
        at_line = text.find(b"\n" + line, start, found + SEARCHED_BYTES)
        found = at_line + 1 if at_line >= 0 else found
    return found if found >= 0 or line == b"\n" else text.find(line.rstrip(b"\n"), start)


def _count_common_bytes(text: bytes, first: int, chosen: bytes, done: int) -> int:
    """Return how many bytes are equal from there on."""
    count = 0
    while True:
        one, other = (each[at + count : at + count + CHUNK] for each, at in ((text, first), (chosen, done)))
        if one != other or not one:
            break
        count += len(one)
    # The highest bit that differs shows the first byte that does.
    size = min(len(one), len(other))
    difference = int.from_bytes(one[:size], "big") ^ int.from_bytes(other[:size], "big")
    return count + size - (difference.bit_length() + 7) // 8
