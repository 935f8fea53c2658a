"""Content-defined splitting of long Markdown: the words around a position decide on a cut, so an edit moves few cuts.

Of the positions that leave a part neither too small nor too large, those between blocks are preferred, then the one
whose context has the lowest digest. Text far above has no influence: a few parts after an insertion, the cuts are the
same as before.
Source: Muthitacharoen, Chen, Mazieres, "A Low-bandwidth Network File System", SOSP 2001; with the lowest digest of a
window in place of a mask, after Bjorner, Blass, Gurevich, "Content-dependent chunking for differential compression, the
local maximum approach", JCSS 2010.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b

# The context on each side of a position: at most 12 words within 256 characters. Padded cells of a table may have a
# hundred spaces.
CONTEXT_CHARS, CONTEXT_WORDS = 256, 12
WRAPPER_DIVISOR = 4  # a fence or table header is repeated only if it takes at most a fourth of a chunk

# Only what render_markdown (crawler/core/page/markdown_text.py) writes: a fence may be in items and quotes.
_FENCE = re.compile(r"((?:[ >]|- |[0-9]+\. )*)(`{3,})(?!.*`)")
_NO_INDENTATION = re.compile("[^ >]")
_RULE = re.compile(r" *\|(?: -+ \|)+")  # below the header of a table
# A block that is too long is broken after lines, else after sentences, else after words, else anywhere.
_ENDS = tuple(map(re.compile, (r"(?<=\n)", r"(?<=[.!?]\s)|(?<=[\u3002\uff01\uff1f])", r"(?<=\s)")))


@dataclass(frozen=True, slots=True)
class TextPart:
    """A part of a text. source: the exact original.  text: self-contained Markdown.

    In `text`, a split fence is closed and reopened, and a split table repeats its header.
    """

    source: str
    text: str


@dataclass(frozen=True, slots=True)
class _Segment:
    """An unbreakable segment with the whitespace after it. depth: 0 at the end of a block; higher for worse cuts.

    prefix, suffix: the text to add to a part that begins, or ends, with this segment.
    """

    text: str
    depth: int = 0
    prefix: str = ""
    suffix: str = ""


@dataclass(frozen=True, slots=True)
class _Wrapper:
    """The text that makes each part of a split block a block of its own.

    head: the start of the block, such as a table header, which parts repeat.  tail: the end of the block.
    close: the end of all other parts.
    """

    head: str = ""
    tail: str = ""
    close: str = ""

    @property
    def missing_close(self) -> str:
        """The closing text that the block itself lacks."""
        return "" if self.tail else self.close


def split_text(text: str, *, min_chars: int, max_chars: int) -> Iterator[TextPart]:
    """Split a text into parts of `min_chars`, if possible, to `max_chars` characters; only blank lines are dropped.

    It is cut between paragraphs, lists, tables and fenced code; in a longer block, between lines, sentences or words if
    possible.
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
    """Return the code fence that is open after a line, with its indentation, or an empty string.

    fence: the fence that is open before the line, or an empty string.
    """
    if not fence:
        match = _FENCE.match(line)
        return _NO_INDENTATION.sub(" ", match[1]) + match[2] if match else ""
    mark = fence.lstrip(" >")
    bare = line.removeprefix(fence[: -len(mark)]).strip()
    return "" if bare.startswith(mark) and not bare.strip("`") else fence


def _find_end(
    segments: Sequence[_Segment], ranks: Sequence[tuple[int, bytes]], begin: int, *, min_chars: int, max_chars: int
) -> int:
    """Return the end of the part that begins at a segment, as the index after its last segment."""
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
    """Return the rank of a cut after each segment: its depth, then a digest of its context. Lower is better."""
    text = "".join(segment.text for segment in segments)
    ranks, offset = [], 0
    for segment in segments:
        offset += len(segment.text)
        above = text[max(0, offset - CONTEXT_CHARS) : offset].split()
        below = text[offset : offset + CONTEXT_CHARS].split()
        context = " ".join((*above[-CONTEXT_WORDS:], *below[:CONTEXT_WORDS]))
        ranks.append((segment.depth, blake2b(context.encode(), digest_size=8).digest()))
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
    """Yield paragraphs, lists, tables and fenced code, each with the blank lines after it."""
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
    """Return what each part of a block repeats: its fence or table header, or nothing if that is long."""
    lines = block.splitlines(keepends=True)
    fence = find_open_fence(lines[0], "")
    if fence:
        end = next((n for n, line in enumerate(lines[1:], 1) if not find_open_fence(line, fence)), None)
        wrapper = _Wrapper(lines[0], "".join(lines[end:]) if end else "", f"\n{fence}")
    elif len(lines) > 2 and "|" in lines[0] and _RULE.fullmatch(lines[1].rstrip()):
        wrapper = _Wrapper("".join(lines[:2]))
    else:
        return _Wrapper()
    size = len(wrapper.head) + len(wrapper.close) + len(wrapper.tail.rstrip())
    return wrapper if size <= max_chars // WRAPPER_DIVISOR else _Wrapper()


def _break_text(text: str, max_chars: int, depth: int = 1) -> list[tuple[str, int]]:
    """Break a text into segments of at most `max_chars` characters, each with the depth of a cut after it."""
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
