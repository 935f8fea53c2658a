"""Audit of the mask: occasional tests whether masked blocks still differ within seconds."""

from crawler.core.http.urls import compute_page_key
from crawler.core.noise.noise import NO_VOLATILE_CONTENT
from crawler.core.noise.second_fetch import DOUBTED_TEST_INTERVAL, TEST_INTERVAL, find_hidden_blocks, needs_test
from tests.core.pages import HERE, Domain, blocks

PAGE = "<p>{} people read this</p><p>Price {}</p><a href='/a?sid={}'>a</a>"
BEFORE, AFTER = blocks(PAGE.format(6, 19, 6)), blocks(PAGE.format(9, 19, 9))


def taught_domain() -> Domain:
    domain = Domain()
    domain.visit(*(PAGE.format(n, 19, n) for n in (3, 4, 5, 6)))
    return domain


def test_only_differing_volatile_blocks_are_hidden() -> None:
    volatile = taught_domain().mask.volatile

    assert [block.text for block in find_hidden_blocks(BEFORE, AFTER, volatile)] == [
        "9 people read this",
        "https://example.com/a?sid=9",
    ]
    assert not find_hidden_blocks(BEFORE, AFTER, NO_VOLATILE_CONTENT)
    assert not find_hidden_blocks(BEFORE, BEFORE, volatile)


def test_hidden_blocks_are_tested_rarely_and_more_often_after_a_steady_fetch() -> None:
    domain, page = taught_domain(), compute_page_key(HERE)
    counts = []
    for _ in range(2):
        shown = find_hidden_blocks(BEFORE, AFTER, domain.mask.volatile)
        counts.append(sum(needs_test(shown, domain.mask.volatile, page=page, visits=n) for n in range(5000)))
        domain.visit(PAGE.format(6, 19, 6), PAGE.format(9, 19, 9), PAGE.format(9, 19, 9))

    assert 0.5 < counts[0] / (5000 / TEST_INTERVAL) < 2
    assert 0.5 < counts[1] / (5000 / DOUBTED_TEST_INTERVAL) < 2
    assert not needs_test([], domain.mask.volatile, page=page, visits=0)
