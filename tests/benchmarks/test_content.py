"""The content benchmark compares words, and knows the true content."""

import pytest

from benchmarks.content.bench import compare
from benchmarks.content.sets import PageSet, true_content


def test_words_are_compared_as_multisets() -> None:
    assert compare("a b b c", "A b d") == pytest.approx((0.5, 2 / 3, 4 / 7))


def test_content_is_what_the_selectors_of_a_set_say() -> None:
    page_set = PageSet("made-up", "", "main", ".menu")

    assert true_content(b"<main><p>One<p class=menu>Two</main><p>Three", page_set) == "One"
