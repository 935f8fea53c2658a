"""Variants: alternating texts of a page, which are not reported again and again."""

from collections.abc import Iterable, Sequence
from datetime import timedelta

import pytest
from msgspec.structs import replace

from crawler.core.change.change import Change, Evidence
from crawler.core.change.mask import (
    MAX_CHANGED_BLOCKS,
    MAX_VARIANTS,
    Variants,
    compute_variant_key,
    count_returns,
    learn_variants,
)
from crawler.core.http.urls import PageKey
from crawler.core.page.snapshot import Parsed, parse_body
from crawler.core.visit.decide import compare_page, decide_visit
from crawler.core.visit.visit import Baseline
from tests.core.visit.test_visit import DAY, KNOWN, NOW, after, fetched, html, target

A, B = "<p class=offer>Try it out now", "<p class=offer>Nothing but the best for you"
KNOWN_VARIANT = (Change.COSMETIC, Evidence.VARIANT)
NEWS = (Change.CHANGED, Evidence.BLOCKS)
PAGE = PageKey(bytes(16))


def read(body: bytes) -> Parsed:
    return parse_body(body, url=target().url, content_type="text/html")


def visit_all(shown: Sequence[str], *, gap: timedelta = DAY) -> list[tuple[Change, Evidence]]:
    """Return the verdict of each visit after the first; visits are `gap` apart, and second fetches are equal."""
    page, known, found = target(), KNOWN, []
    baseline: Baseline | None = None
    for n, inside in enumerate(shown):
        answer, now = fetched(html(inside)), NOW + n * gap
        parsed, comparison = read(answer.body), None
        if baseline is not None and page.version is not None and parsed.version.text_digest != page.version.text_digest:
            comparison = compare_page(
                page, parsed, replace(baseline, second_fetches=(parsed.blocks,)), now=now, knowledge=known
            )
        visit = decide_visit(
            page, answer, now=now, knowledge=known, parsed=parsed, baseline=baseline, comparison=comparison
        )
        if visit.snapshot is not None:
            baseline = Baseline(parsed.blocks, now)
        known = replace(known, mask=visit.mask or known.mask)
        page = after(visit)
        found.append((visit.change, visit.verdict.evidence))
    return found[1:]


def test_words_that_returned_twice_are_a_variant() -> None:
    found = visit_all([A, B, A, B, A, B, A, A, B])

    assert found[:3] == [NEWS] * 3  # changed, reverted, changed again
    assert set(found[3:]) <= {KNOWN_VARIANT, (Change.UNCHANGED, Evidence.BYTES)}
    assert KNOWN_VARIANT in found[3:]


@pytest.mark.parametrize("banner", [A, f"{A} <a href=/offers/7>here</a>"], ids=["text", "with a link"])
def test_occasional_banner_is_a_variant_after_two_returns(banner: str) -> None:
    found = visit_all([banner, "", banner, "", banner, "", banner])

    assert found[:3] == [NEWS] * 3
    assert NEWS not in found[3:]


def test_third_text_is_a_change_despite_two_variants() -> None:
    found = visit_all([A, B] * 4 + ["<p class=offer>We close down at the end of the month"])

    assert found[-1] == NEWS


def test_difference_beside_a_variant_is_a_change() -> None:
    found = visit_all(
        [f"{A if n % 2 else B}<p class=price>Price {price} EUR" for n, price in enumerate([20] * 8 + [99])]
    )

    assert found[-2] == KNOWN_VARIANT or found[-2][0] is Change.UNCHANGED
    assert found[-1] == NEWS


@pytest.mark.parametrize("markup", ["<p>Price {} EUR", "<p>Only today: {} left", "<p>Size {}"])
def test_alternating_numbers_are_always_changes(markup: str) -> None:
    assert visit_all([markup.format(20 + 15 * (n % 2)) for n in range(9)]) == [NEWS] * 8


def test_return_after_months_is_a_change() -> None:
    assert visit_all([A, B] * 4, gap=timedelta(days=40)) == [NEWS] * 7


def returns(variants: Variants, form: int) -> int:
    return count_returns(variants, compute_variant_key(PAGE, form))


def learn(variants: Variants, went: Iterable[int], came: Iterable[int]) -> Variants:
    keys = [{compute_variant_key(PAGE, form) for form in forms} for forms in (went, came)]
    return learn_variants(variants, removed=keys[0], added=keys[1], at=NOW)


def test_moved_block_has_not_returned() -> None:
    variants: Variants = {}
    for _ in range(5):
        variants = learn(variants, [1, 2], [2, 1])

    assert returns(variants, 1) == 0


def test_block_that_was_never_removed_has_not_returned() -> None:
    variants: Variants = {}
    for _ in range(5):  # each time with an older last Snapshot
        variants = learn(variants, [1], [2])

    assert (returns(variants, 1), returns(variants, 2)) == (0, 0)


def test_variants_are_bounded_and_a_rewritten_page_pushes_out_none() -> None:
    variants = learn({}, [1], [2])
    assert learn(variants, range(MAX_CHANGED_BLOCKS), range(100, 200)) is variants

    for n in range(MAX_VARIANTS):
        variants = learn(variants, [10 + n], [])
    assert len(variants) == MAX_VARIANTS
    assert compute_variant_key(PAGE, 1) not in variants
