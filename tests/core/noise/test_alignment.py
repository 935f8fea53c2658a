"""Alignment of two sequences."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from crawler.core.noise.alignment import find_gaps, match_sequences

letters = st.text(alphabet="abcd", max_size=300)


def length_of_longest(one: str, other: str) -> int:
    """Compute the length with the textbook's table, row by row."""
    row = [0] * (len(other) + 1)
    for a in one:
        above, row = row, [0]
        for m, b in enumerate(other):
            row.append(above[m] + 1 if a == b else max(above[m + 1], row[m]))
    return row[-1]


@given(one=letters, other=letters)
def test_matches_are_equal_ordered_and_as_long_as_possible(one: str, other: str) -> None:
    found = match_sequences(one, other)

    assert all(one[n] == other[m] for n, m in found)
    assert all(n < after and m < beside for (n, m), (after, beside) in pairwise(found))
    assert len(found) == length_of_longest(one, other)


@given(one=letters, other=letters)
def test_gaps_cover_everything_unmatched(one: str, other: str) -> None:
    found = list(find_gaps(one, other))

    assert len(one) - sum(len(one[went]) for went, _ in found) == len(match_sequences(one, other))
    assert len(other) - sum(len(other[came]) for _, came in found) == len(match_sequences(one, other))


def test_find_gaps_examples() -> None:
    assert list(find_gaps(["a", "b", "c"], ["a", "new", "b", "c"])) == [(slice(1, 1), slice(1, 2))]
    assert list(find_gaps(["a", "b"], ["b"])) == [(slice(0, 1), slice(0, 0))]
    assert list(find_gaps([], [])) == []
