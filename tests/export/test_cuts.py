"""Splitting of long texts: complete, small and self-contained parts, few of which change after an edit."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.core.http.urls import Url
from crawler.export.chunks import MAX_CHARS, chunk_markdown
from crawler.export.markdown_splitter import TextPart, find_open_fence, split_text

URL = Url("http://site.test/")
LEAST = MAX_CHARS // 4
MAX_CHANGED = 8  # chunks that may change by an inserted paragraph; on real documentation at most 5


def paragraphs(seed: int, many: int) -> list[str]:
    """Return paragraphs of 3 to 120 random words."""
    chance = random.Random(seed)
    letters = "abcdeghiklmnoprstu"
    return [
        " ".join("".join(chance.choices(letters, k=chance.randint(2, 9))) for _ in range(chance.randint(3, 120)))
        for _ in range(many)
    ]


def parts_of(text: str) -> list[TextPart]:
    return list(split_text(text, min_chars=LEAST, max_chars=MAX_CHARS))


def chunks(text: str) -> dict[str, str]:
    """Return the texts of a page's chunks by their ids."""
    found = list(chunk_markdown(text, url=URL))
    assert len({chunk.id for chunk in found}) == len(found)
    return {chunk.id: chunk.text for chunk in found}


def is_closed(text: str) -> bool:
    """Return whether no fence is open at the end of a text."""
    fence = ""
    for line in text.splitlines():
        fence = find_open_fence(line, fence)
    return not fence


def without_blanks(text: str) -> str:
    return "".join(text.split())


@given(st.text(alphabet="ab |-\n`~.>\x0c", max_size=300), st.integers(4, 60))
def test_parts_have_the_whole_text_and_none_is_too_large(text: str, most: int) -> None:
    parts = list(split_text(text, min_chars=most // 4, max_chars=most))

    assert without_blanks("".join(part.source for part in parts)) == without_blanks(text)
    assert all(part.text and len(part.text) <= most for part in parts)


@given(st.integers(), st.integers(1, 60))
def test_all_parts_but_the_last_have_the_minimum_size(seed: int, many: int) -> None:
    text = "\n\n".join(paragraphs(seed, many))
    parts = parts_of(text)

    assert "".join(part.source for part in parts) == text
    assert all(part.text == part.source.rstrip() for part in parts)
    assert all(len(part.text) + 2 >= LEAST and len(part.text) <= MAX_CHARS for part in parts[:-1])


@given(
    st.integers(), st.integers(1, 120), st.floats(0, 1), st.sampled_from(["", "# News\n\n", "# News\n\n## Today\n\n"])
)
def test_inserted_paragraph_changes_few_chunks(seed: int, many: int, where: float, head: str) -> None:
    before = paragraphs(seed, many)
    at = round(where * many)
    after = [*before[:at], "All that is new today is said in this one.", *before[at:]]

    was, now = chunks(head + "\n\n".join(before)), chunks(head + "\n\n".join(after))

    assert len(now.items() - was.items()) <= MAX_CHANGED
    assert len(was.items() - now.items()) <= MAX_CHANGED


@pytest.mark.soak
@given(st.integers(), st.integers(1, 40), st.integers(0, 3))
def test_inserted_rows_and_lines_of_code_change_few_chunks(seed: int, many: int, times: int) -> None:
    rows = [f"| {each[:40]} | {each[40:150]} |" for each in paragraphs(seed, many * 10)]
    code = [f"    {each[:60]}" for each in paragraphs(seed + 1, many * 10)]

    def page(more: int) -> str:
        table = "\n".join(["| name | said |", "| --- | --- |", *["| new | row |"] * more, *rows])
        return f"intro\n\n{table}\n\n```py\n" + "\n".join(["new()"] * more + code) + "\n```\n"

    was, now = chunks(page(0)), chunks(page(times))

    assert len(now.items() - was.items()) <= 2 * MAX_CHANGED


def test_edit_in_a_paragraph_mostly_changes_one_chunk_and_no_id() -> None:
    before = paragraphs(3, 80)
    text = "\n\n".join(before)
    was = chunks(text)
    alike = 0
    for paragraph in before:
        words = paragraph.split()
        words[len(words) // 2] = "edited"
        now = chunks(text.replace(paragraph, " ".join(words)))
        assert len(now.items() - was.items()) <= MAX_CHANGED
        alike += was.keys() == now.keys() and len(now.items() - was.items()) == 1

    assert len(was) > 6
    assert alike >= 60  # of 80; the other edits are near a cut or at the beginning of a chunk


def test_section_with_one_chunk_keeps_its_id() -> None:
    was, now = chunks("# One\n\nthis\n\n# Two\n\nthat\n"), chunks("# New\n\nx\n\n# One\n\nother\n\n# Two\n\nthat\n")

    assert was.keys() < now.keys()


def test_sections_with_equal_headings_have_different_ids() -> None:
    was = chunks("# All\n\n## See\n\na\n\n## See\n\nb\n\n## See\n\nc\n")
    now = chunks("# All\n\n## See\n\na\n\n## See\n\nnew\n\n## See\n\nb\n\n## See\n\nc\n")

    assert was.items() < now.items()


def test_split_code_is_fenced_in_each_part() -> None:
    lines = [f"value_{n} = {'x' * (n % 70)}" if n % 9 else "" for n in range(400)]
    text = "Before it.\n\n  ````py\n" + "\n".join(lines) + "\n  ````\n\nAfter it.\n"
    parts = parts_of(text)

    assert len(parts) > 3
    assert "".join(part.source for part in parts) == text
    assert all(is_closed(part.text) and len(part.text) <= MAX_CHARS for part in parts)
    assert all(part.text.startswith("  ````py\n") for part in parts[1:])
    assert all(part.text.endswith("\n  ````") for part in parts[:-1])
    found = [line for part in parts for line in part.text.splitlines() if line.startswith("value_")]
    assert found == [line for line in lines if line]


@pytest.mark.parametrize(("start", "indentation"), [("- ", "  "), ("12. ", "    "), ("> ", "> "), ("> - ", ">   ")])
def test_code_in_lists_and_quotes_is_fenced_in_each_part(start: str, indentation: str) -> None:
    lines = [f"{indentation}value_{n} = {'x' * 60}" for n in range(200)]
    parts = parts_of(f"{start}```py\n" + "\n".join(lines) + f"\n{indentation}```\n\nAfter it.\n")

    assert len(parts) > 3
    assert all(is_closed(part.text) and len(part.text) <= MAX_CHARS for part in parts)
    assert all(part.text.startswith(f"{start}```py\n") for part in parts)
    assert all(part.text.endswith(f"\n{indentation}```") for part in parts[:-1])


def test_code_and_tables_that_fit_are_whole() -> None:
    code = "```\n" + "\n\n".join(f"call({n})" for n in range(150)) + "\n```"
    table = "| name | value |\n| --- | --- |\n" + "\n".join(f"| n{n} | {n} |" for n in range(150))
    text = "\n\n".join([*paragraphs(1, 20), code, *paragraphs(2, 20), table, *paragraphs(3, 20)])
    found = [part.text for part in parts_of(text)]

    assert len(found) > 5
    assert [sum(block in part for part in found) for block in (code, table)] == [1, 1]


def test_unclosed_fence_is_closed() -> None:
    for lines in (3, 300):
        parts = parts_of("```\n" + "a line of code that goes on\n" * lines)
        assert all(is_closed(part.text) for part in parts)


def test_split_table_has_its_header_in_each_part() -> None:
    header = "| name | what it is |\n| --- | --- |\n"
    text = header + "".join(f"| n{n} | {'word ' * (n % 20)}|\n" for n in range(300)) + "\nAfter it.\n"
    parts = parts_of(text)

    assert len(parts) > 3
    assert "".join(part.source for part in parts) == text
    assert all(part.text.startswith(header) and len(part.text) <= MAX_CHARS for part in parts)


def test_long_line_is_split_between_sentences_and_long_word_anywhere() -> None:
    sentences = [f"{each}." for each in paragraphs(5, 90)]
    parts = parts_of(" ".join(sentences))
    assert all(part.text.endswith(".") for part in parts)

    words = parts_of("x" * 10_000)
    assert "".join(part.source for part in words) == "x" * 10_000
    assert [len(part.text) for part in words] == [MAX_CHARS, MAX_CHARS, 2000]
