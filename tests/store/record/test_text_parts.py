"""Content texts that are stored as parts of the whole text."""

from hypothesis import given
from hypothesis import strategies as st

from crawler.store.database import Database
from crawler.store.record.text_parts import MAX_PARTS, find_parts
from crawler.store.rows import fetch_value

READ = "SELECT version_content(%s, NULL, %s::int[])"
WORDS = st.sampled_from(["", "a", "aé", "ab", "é¶", "ê", "  code", "long " * 400])
LINES = st.lists(WORDS, max_size=12)


def join(text: bytes, ranges: list[int]) -> bytes:
    return b"".join(text[first:end] for first, end in zip(ranges[::2], ranges[1::2], strict=True))


@given(LINES, LINES)
def test_parts_make_up_the_chosen_text_or_there_are_none(lines: list[str], others: list[str]) -> None:
    text, chosen = ("\n".join(each).encode() for each in (lines, others))
    ranges = find_parts(text, chosen)
    assert ranges == sorted(ranges)
    assert not ranges or join(text, ranges) == chosen


@given(st.lists(st.tuples(WORDS, st.booleans()), max_size=12))
def test_chosen_lines_are_always_found(lines: list[tuple[str, bool]]) -> None:
    text, chosen = "\n".join(line for line, _ in lines), "\n".join(line for line, is_chosen in lines if is_chosen)
    assert join(text.encode(), find_parts(text.encode(), chosen.encode())) == chosen.encode()


async def test_sql_reads_the_parts(db: Database) -> None:
    text = "Menü\nNext\nA heading¶\nThe first paragraph.\nThe second one: é.\nNext"
    chosen = "A heading\nThe first paragraph.\nThe second one: é."
    ranges = find_parts(text.encode(), chosen.encode())
    assert len(ranges) == 4
    assert await fetch_value(db, READ, (text, ranges)) == chosen
    assert await fetch_value(db, READ, (text, [])) == text


def test_texts_with_too_many_parts_have_none() -> None:
    lines = [f"line {n}" for n in range(2 * MAX_PARTS + 4)]
    text = "\n".join(lines).encode()
    assert find_parts(text, "\n".join(lines[::2]).encode()) == []
    assert find_parts(text, "\n".join(lines[:MAX_PARTS:2]).encode())
