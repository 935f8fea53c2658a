"""The content benchmark finds the boilerplate that the pages of a domain share, and compares words."""

import pytest
from selectolax.lexbor import LexborHTMLParser

from benchmarks.content.bench import compare
from benchmarks.content.learned import NOTHING_LEARNED, learn, select_own
from benchmarks.content.sets import PageSet, true_content
from crawler.core.page.scan import PageScan, scan_tree

PROSE = "There is so much to say about the number that each page needs more than twenty words of its own, as one would "


def scan(number: int) -> PageScan:
    return scan_tree(
        LexborHTMLParser(
            f"<body><div class=top><p>The site</p><p><a href=/{number}>Page {number - 1}</a></p></div>"
            f"<h1>Number {number}</h1><p>{PROSE} expect of number {number}.</p><h2>Notes</h2><p>None on {number}.</p>"
            "<div class=end><p>All rights reserved</p></div></body>"
        )
    )


def own_texts(page: PageScan, known: list[PageScan]) -> list[str]:
    return [page.texts[line] for line in select_own(page, learn(known))]


def test_shared_lines_and_slots_of_links_are_not_content_but_headings_between_own_lines_are() -> None:
    assert own_texts(scan(1), [scan(2), scan(3), scan(4)]) == [
        "Number 1",
        f"{PROSE}expect of number 1.",
        "Notes",
        "None on 1.",
    ]


def test_nothing_is_left_out_without_other_pages() -> None:
    page = scan(1)

    assert len(select_own(page, NOTHING_LEARNED)) == len(page.texts)


def test_words_are_compared_as_multisets() -> None:
    assert compare("a b b c", "A b d") == pytest.approx((0.5, 2 / 3, 4 / 7))


def test_content_is_what_the_selectors_of_a_set_say() -> None:
    page_set = PageSet("made-up", "", "main", ".menu")

    assert true_content(b"<main><p>One<p class=menu>Two</main><p>Three", page_set) == "One"
