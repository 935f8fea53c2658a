"""Limits of the memory for a domain's volatile blocks."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.core.change.difference import NO_DIFFERENCE
from crawler.core.noise.noise import MAX_CHARS, MAX_PATTERNS, VolatileContent, trim_volatile
from crawler.core.noise.words import keep_newest_within
from tests.core.pages import Domain


def page(n: int, shown: str, *, words: int) -> str:
    return f"<pre>{' '.join(f'log{n} says{word}' for word in range(words))} at {shown}"


@pytest.mark.soak
def test_patterns_of_long_texts_push_out_only_the_oldest() -> None:
    domain = Domain()
    for n in range(20):
        for again in ("ab", "cd"):
            domain.visit(page(n, "xx", words=2000 + n), *(page(n, said, words=2000 + n) for said in again), path=f"{n}")

    known = domain.mask.volatile.patterns
    assert 0 < sum(len(word) + 1 for same in known.values() for pattern in same for word in pattern) <= MAX_CHARS
    assert domain.visit(page(19, "ef", words=2019), page(19, "gh", words=2019)) == NO_DIFFERENCE
    assert domain.visit(page(0, "ef", words=2000), page(0, "gh", words=2000))


def test_one_long_text_does_not_push_out_all_others() -> None:
    domain = Domain()
    for shown in ("ab", "cd"):
        domain.visit("<p>seen at xx today", *(f"<p>seen at {said} today" for said in shown))
        domain.visit(page(1, "xx", words=13_000), *(page(1, said, words=13_000) for said in shown), path="long")

    assert domain.visit("<p>seen at ef today", "<p>seen at gh today") == NO_DIFFERENCE


def test_limit_counts_patterns_and_not_only_their_paths() -> None:
    many = {(path, 2): tuple((f"word{n}", "") for n in range(30)) for path in range(100)}

    kept = trim_volatile(VolatileContent(patterns=many)).patterns

    assert sum(map(len, kept.values())) == MAX_PATTERNS
    assert list(kept)[-1] == (99, 2)
    assert kept[99, 2] == many[99, 2]


@given(
    known=st.dictionaries(st.integers(0, 9), st.lists(st.text("ab", max_size=9), min_size=1, max_size=4).map(tuple)),
    most=st.integers(0, 9),
    chars=st.integers(0, 40),
)
def test_newest_values_that_fit_are_kept(known: dict[int, tuple[str, ...]], most: int, chars: int) -> None:
    kept = keep_newest_within(known, max_values=most, max_chars=chars, length=len)

    every, left = ([(key, text) for key, same in each.items() for text in same] for each in (known, kept))
    assert len(left) <= most
    assert sum(len(text) for _, text in left) <= chars
    if kept != known:
        short = [(key, text) for key, text in every if len(text) <= chars // 4]
        assert left == short[len(short) - len(left) :]
