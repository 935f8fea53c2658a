"""The lines that the pages of a domain share, for the choice of a page's content."""

from msgspec import Struct


class SharedLines(Struct, frozen=True):
    """The lines that nearly all pages of a domain have at the same place, by `hash_text`.

    pages: how many visits this was learned from.
    """

    hashes: frozenset[int] = frozenset()
    pages: int = 0


NO_SHARED_LINES = SharedLines()
