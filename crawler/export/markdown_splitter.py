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
CONTEXT_CHARS, CONTEXT_WORDS = 256, 12
RANK_BYTES = 8
WRAPPER_DIVISOR = 4  # of a chunk a fence or a table's header takes no more than a fourth, or it is not repeated

_FENCE = re.compile(r"[ \t]*(?:`{3,}(?!.*`)|~{3,})")
_RULE = re.compile(r"[ \t]*\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*$")  # below the header of a table
# Behind what a block is broken where it is too long: lines, else sentences, else words, else wherever it must.
_ENDS = tuple(map(re.compile, (r"(?<=\n)", r"(?<=[.!?]\s)|(?<=[\u3002\uff01\uff1f])", r"(?<=\s)")))


@dataclass(frozen=True, slots=True)
class TextPart:
    """A part of a text. source: exactly what stands there.  text: Markdown that stands by itself.

    A fence that was cut is closed and opened again in `text`, and a table has its header.
    """

    source: str
    text: str


@dataclass(frozen=True, slots=True)
class _Segment:
    """What is not cut, with the blanks behind it. depth: 0 at the end of a block, more the worse a cut behind it is.

    prefix, suffix: what a part needs that begins, or ends, with this piece.
    """

    text: str
    depth: int = 0
    prefix: str = ""
    suffix: str = ""


@dataclass(frozen=True, slots=True)
class _Wrapper:
    """What makes a part of a block a block: its head, and what closes it. tail: the block's own end."""

    head: str = ""
    tail: str = ""
    close: str = ""

    @property
    def missing_close(self) -> str:
        """What the block itself lacks at its end."""
        return "" if self.tail else self.close


def split_text(text: str, *, min_chars: int, max_chars: int) -> Iterator[TextPart]:
    """A text in parts of at most `most` characters, and of `least` where a place is; together all but blank lines.

    Cut between paragraphs, lists, tables and fenced code; within one that is longer, between lines, sentences, words.
    """
    segments = list(_split_segments(text, max_chars))
    ranks = _compute_ranks(segments)
    begin = 0
    while begin < len(segments):
        end = _find_end(segments, ranks, begin, min_chars=min_chars, max_chars=max_chars)
        part = _join_segments(segments[begin:end])
        if part.source.strip():
            yield part
        begin = end


def find_open_fence(line: str, fence: str) -> str:
    """The fence that is open behind a line, with its indentation; empty for none. fence: the one open before it."""
    if not fence:
        mark = _FENCE.match(line)
        return mark[0] if mark else ""
    mark_only, bare = fence.strip(), line.strip()
    return "" if bare.startswith(mark_only) and not bare.strip(mark_only[0]) else fence


def _find_end(
    segments: Sequence[_Segment], ranks: Sequence[tuple[int, bytes]], begin: int, *, min_chars: int, max_chars: int
) -> int:
    """Where the part ends that begins at a piece: the index behind its last one."""
    best, best_rank = begin + 1, None
    size = len(segments[begin].prefix)
    for end in range(begin + 1, len(segments) + 1):
        last = segments[end - 1]
        if size + len(last.text.rstrip()) + len(last.suffix) > max_chars:
            return best
        size += len(last.text)
        if end == len(segments) or best_rank is None:
            best = end
        if size >= min_chars and (best_rank is None or ranks[end - 1] <= best_rank):
            best, best_rank = end, ranks[end - 1]
    return len(segments)


def _compute_ranks(segments: Sequence[_Segment]) -> list[tuple[int, bytes]]:
    """How little each piece's end is fit for a cut: by what it ends, then by a digest of what stands around it."""
    text = "".join(segment.text for segment in segments)
    ranks, offset = [], 0
    for segment in segments:
        offset += len(segment.text)
        above, below = (
            text[max(0, offset - CONTEXT_CHARS) : offset].split(),
            text[offset : offset + CONTEXT_CHARS].split(),
        )
        context = " ".join((*above[-CONTEXT_WORDS:], *below[:CONTEXT_WORDS]))
        ranks.append((segment.depth, blake2b(context.encode(), digest_size=RANK_BYTES).digest()))
    return ranks


def _join_segments(segments: Sequence[_Segment]) -> TextPart:
    source = "".join(segment.text for segment in segments)
    return TextPart(source=source, text=f"{segments[0].prefix}{source}".strip("\n").rstrip() + segments[-1].suffix)


def _split_segments(text: str, max_chars: int) -> Iterator[_Segment]:
    for block in _split_blocks(text):
        wrapper = _find_wrapper(block, max_chars)
        if len(block.rstrip()) + len(wrapper.missing_close) <= max_chars:
            yield _Segment(block, suffix=wrapper.missing_close)
            continue
        body = block[len(wrapper.head) : len(block) - len(wrapper.tail)]
        available_chars = max_chars - len(wrapper.head) - len(wrapper.close) - len(wrapper.tail.rstrip())
        *others, (last, _) = _break_text(body, available_chars)
        before, head = "", wrapper.head
        for part, depth in others:
            yield _Segment(head + part, depth, before, wrapper.close)
            before, head = wrapper.head, ""
        yield _Segment(head + last + wrapper.tail, 0, before, wrapper.missing_close)


def _split_blocks(text: str) -> Iterator[str]:
    """Paragraphs, lists, tables and fenced code, each with the blank lines behind it."""
    lines: list[str] = []
    fence, is_over = "", False
    for line in text.splitlines(keepends=True):
        next_fence = find_open_fence(line, fence)
        is_blank = not fence and not line.strip()
        if lines and not is_blank and (is_over or (next_fence and not fence)):
            yield "".join(lines)
            lines.clear()
        if lines or not is_blank:
            lines.append(line)
        is_over = is_blank or bool(fence and not next_fence)
        fence = next_fence
    if lines:
        yield "".join(lines)


def _find_wrapper(block: str, max_chars: int) -> _Wrapper:
    """What is repeated where a block is cut: its fence, or the header of a table; nothing where that is long."""
    lines = block.splitlines(keepends=True)
    fence = find_open_fence(lines[0], "")
    if fence:
        end = next((n for n, line in enumerate(lines[1:], 1) if not find_open_fence(line, fence)), None)
        wrapper = _Wrapper(lines[0], "".join(lines[end:]) if end else "", f"\n{fence}")
    elif len(lines) > 2 and "|" in lines[0] and "|" in lines[1] and _RULE.match(lines[1].rstrip()):
        wrapper = _Wrapper("".join(lines[:2]))
    else:
        return _Wrapper()
    size = len(wrapper.head) + len(wrapper.close) + len(wrapper.tail.rstrip())
    return wrapper if size <= max_chars // WRAPPER_DIVISOR else _Wrapper()


def _break_text(text: str, max_chars: int, depth: int = 1) -> list[tuple[str, int]]:
    """A text in pieces of at most so many characters, and how deep the cut behind each would go."""
    parts: list[tuple[str, int]] = []
    for part in filter(None, _ENDS[depth - 1].split(text)):
        if len(part.rstrip()) <= max_chars:
            parts.append((part, depth))
            continue
        if depth < len(_ENDS):
            inner = _break_text(part, max_chars, depth + 1)
        else:
            inner = [(part[at : at + max_chars], depth + 1) for at in range(0, len(part), max_chars)]
        parts += [*inner[:-1], (inner[-1][0], depth)]
    return parts
