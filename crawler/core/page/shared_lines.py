"""The lines that the pages of a domain share, for the choice of a page's content."""

from array import array
from collections.abc import Iterable
from typing import Self

from msgspec import Struct


class SharedLines(Struct, frozen=True):
    """The lines that nearly all pages of a domain have at the same place, by `hash_text`.

    packed: the hashes in ascending order, 8 bytes each, as the compiled reader takes them.
    pages: how many visits this was learned from.
    """

    packed: bytes = b""
    pages: int = 0

    @classmethod
    def build(cls, hashes: Iterable[int], *, pages: int) -> Self:
        return cls(array("Q", sorted(set(hashes))).tobytes(), pages)

    @property
    def hashes(self) -> frozenset[int]:
        return frozenset(array("Q", self.packed))


NO_SHARED_LINES = SharedLines()
