"""Text as everything here compares it: one line for each piece, white space collapsed."""

from collections.abc import Iterable


def collapsed(lines: Iterable[str]) -> str:
    """One line for each that holds anything, white space collapsed; no NUL."""
    text = "\n".join([line for line in [" ".join(line.split()) for line in lines] if line])
    return text.replace("\0", "") if "\0" in text else text
