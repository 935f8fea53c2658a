"""The blocks of a page: the unit of comparison."""

from enum import StrEnum

from msgspec import Struct


class BlockKind(StrEnum):
    """The kind of content of a block."""

    TEXT = "text"
    LINK = "link"  # target of a link in the text
    IMAGE = "image"  # name and alternative text of an image
    TITLE = "title"
    META = "meta"  # a description, keywords or an Open Graph property


class Block(Struct, frozen=True, eq=False):
    """One block of a page.

    css_path: a hash of the tags and classes of the enclosing block elements. Parts of classes that are numbers or codes
    (five or more characters with a digit) are left out, because they count rows or name builds.
    tag_path: a hash of the tags alone. Blocks that differ only in it are equal.
    """

    css_path: int
    text: str
    kind: BlockKind = BlockKind.TEXT
    tag_path: int = 0

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Block):
            return NotImplemented
        return (self.css_path, self.text, self.kind) == (other.css_path, other.text, other.kind)

    def __hash__(self) -> int:
        return hash((self.css_path, self.text, self.kind))


BlockList = tuple[Block, ...]
BlockPair = tuple[Block | None, Block | None]  # the old and the new block
