"""Where a long text of Markdown is cut: at places that the words around them choose, so that an edit moves few cuts.

Of the places that leave a part neither too small nor too large the one is taken whose surroundings have the lowest
digest. What stands far above decides about no cut: after a paragraph that was put in, the cuts are soon the same again.
Source: Muthitacharoen, Chen, Mazieres, "A Low-bandwidth Network File System", SOSP 2001; with the lowest digest of a
window in place of a mask, after Bjorner, Blass, Gurevich, "Content-dependent chunking for differential compression, the
local maximum approach", JCSS 2010.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b

# On each side of a place, what decides whether it is a cut: so many words of so many characters. Rows of a table are
# alike for a hundred characters of blanks.
AROUND_CHARS, AROUND_WORDS = 256, 12
RANK_BYTES = 8
FRAME_PART = 4  # of a chunk a fence or a table's header takes no more than a fourth, or it is not repeated

_FENCE = re.compile(r"[ \t]*(?:`{3,}(?!.*`)|~{3,})")
_RULE = re.compile(r"[ \t]*\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*$")  # below the header of a table
# Behind what a block is broken where it is too long: lines, else sentences, else words, else wherever it must.
_ENDS = tuple(map(re.compile, (r"(?<=\n)", r"(?<=[.!?]\s)|(?<=[\u3002\uff01\uff1f])", r"(?<=\s)")))


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a text. own: exactly what stands there.  text: Markdown that stands by itself.

    A fence that was cut is closed and opened again in `text`, and a table has its header.
    """

    own: str
    text: str


@dataclass(frozen=True, slots=True)
class _Piece:
    """What is not cut, with the blanks behind it. depth: 0 at the end of a block, more the worse a cut behind it is.

    before, after: what a part needs that begins, or ends, with this piece.
    """

    text: str
    depth: int = 0
    before: str = ""
    after: str = ""


@dataclass(frozen=True, slots=True)
class _Frame:
    """What makes a part of a block a block: its head, and what closes it. tail: the block's own end."""

    head: str = ""
    tail: str = ""
    close: str = ""

    @property
    def missing(self) -> str:
        """What the block itself lacks at its end."""
        return "" if self.tail else self.close


def cut(text: str, *, least: int, most: int) -> Iterator[Part]:
    """A text in parts of at most `most` characters, and of `least` where a place is; together all but blank lines.

    Cut between paragraphs, lists, tables and fenced code; within one that is longer, between lines, sentences, words.
    """
    pieces = list(_pieces(text, most))
    ranks = _ranks(pieces)
    begin = 0
    while begin < len(pieces):
        end = _end(pieces, ranks, begin, least=least, most=most)
        part = _part(pieces[begin:end])
        if part.own.strip():
            yield part
        begin = end


def fence_after(line: str, fence: str) -> str:
    """The fence that is open behind a line, with its indentation; empty for none. fence: the one open before it."""
    if not fence:
        mark = _FENCE.match(line)
        return mark[0] if mark else ""
    mark_only, bare = fence.strip(), line.strip()
    return "" if bare.startswith(mark_only) and not bare.strip(mark_only[0]) else fence


def _end(pieces: Sequence[_Piece], ranks: Sequence[tuple[int, bytes]], begin: int, *, least: int, most: int) -> int:
    """Where the part ends that begins at a piece: the index behind its last one."""
    best, found = begin + 1, None
    size = len(pieces[begin].before)
    for end in range(begin + 1, len(pieces) + 1):
        last = pieces[end - 1]
        if size + len(last.text.rstrip()) + len(last.after) > most:
            return best
        size += len(last.text)
        if end == len(pieces) or found is None:
            best = end
        if size >= least and (found is None or ranks[end - 1] <= found):
            best, found = end, ranks[end - 1]
    return len(pieces)


def _ranks(pieces: Sequence[_Piece]) -> list[tuple[int, bytes]]:
    """How little each piece's end is fit for a cut: by what it ends, then by a digest of what stands around it."""
    text = "".join(piece.text for piece in pieces)
    found, at = [], 0
    for piece in pieces:
        at += len(piece.text)
        above, below = text[max(0, at - AROUND_CHARS) : at].split(), text[at : at + AROUND_CHARS].split()
        around = " ".join((*above[-AROUND_WORDS:], *below[:AROUND_WORDS]))
        found.append((piece.depth, blake2b(around.encode(), digest_size=RANK_BYTES).digest()))
    return found


def _part(pieces: Sequence[_Piece]) -> Part:
    own = "".join(piece.text for piece in pieces)
    return Part(own=own, text=f"{pieces[0].before}{own}".strip("\n").rstrip() + pieces[-1].after)


def _pieces(text: str, most: int) -> Iterator[_Piece]:
    for block in _blocks(text):
        frame = _frame(block, most)
        if len(block.rstrip()) + len(frame.missing) <= most:
            yield _Piece(block, after=frame.missing)
            continue
        body = block[len(frame.head) : len(block) - len(frame.tail)]
        room = most - len(frame.head) - len(frame.close) - len(frame.tail.rstrip())
        *others, (last, _) = _broken(body, room)
        before, head = "", frame.head
        for part, depth in others:
            yield _Piece(head + part, depth, before, frame.close)
            before, head = frame.head, ""
        yield _Piece(head + last + frame.tail, 0, before, frame.missing)


def _blocks(text: str) -> Iterator[str]:
    """Paragraphs, lists, tables and fenced code, each with the blank lines behind it."""
    lines: list[str] = []
    fence, is_over = "", False
    for line in text.splitlines(keepends=True):
        then = fence_after(line, fence)
        is_blank = not fence and not line.strip()
        if lines and not is_blank and (is_over or (then and not fence)):
            yield "".join(lines)
            lines.clear()
        if lines or not is_blank:
            lines.append(line)
        is_over = is_blank or bool(fence and not then)
        fence = then
    if lines:
        yield "".join(lines)


def _frame(block: str, most: int) -> _Frame:
    """What is repeated where a block is cut: its fence, or the header of a table; nothing where that is long."""
    lines = block.splitlines(keepends=True)
    fence = fence_after(lines[0], "")
    if fence:
        end = next((n for n, line in enumerate(lines[1:], 1) if not fence_after(line, fence)), None)
        frame = _Frame(lines[0], "".join(lines[end:]) if end else "", f"\n{fence}")
    elif len(lines) > 2 and "|" in lines[0] and "|" in lines[1] and _RULE.match(lines[1].rstrip()):
        frame = _Frame("".join(lines[:2]))
    else:
        return _Frame()
    size = len(frame.head) + len(frame.close) + len(frame.tail.rstrip())
    return frame if size <= most // FRAME_PART else _Frame()


def _broken(text: str, room: int, depth: int = 1) -> list[tuple[str, int]]:
    """A text in pieces of at most so many characters, and how deep the cut behind each would go."""
    found: list[tuple[str, int]] = []
    for part in filter(None, _ENDS[depth - 1].split(text)):
        if len(part.rstrip()) <= room:
            found.append((part, depth))
            continue
        if depth < len(_ENDS):
            inner = _broken(part, room, depth + 1)
        else:
            inner = [(part[at : at + room], depth + 1) for at in range(0, len(part), room)]
        found += [*inner[:-1], (inner[-1][0], depth)]
    return found
