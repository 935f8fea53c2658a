"""Comparison of two versions of a page, block by block."""

from collections.abc import Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from crawler.core.change.difference import NO_DIFFERENCE, compute_difference, select_significant
from crawler.core.change.mask import NO_MASK
from crawler.core.change.mask_learning import FREE_SECOND_FETCHES, needs_second_fetch
from crawler.core.noise.noise import NO_VOLATILE_CONTENT
from crawler.core.page.block import BlockKind
from tests.core.pages import DAY, NOON, Domain, blocks

pages = st.lists(
    st.sampled_from(["<p>one</p>", "<p>two words</p>", "<h2>x</h2>", "<p>a<a href=/b>b</a></p>", "<img src=c.png>"]),
    max_size=8,
).map("".join)


def said(one: str, other: str) -> tuple[list[tuple[str, str]], list[str], list[str]]:
    """Return the replaced, removed and added texts of two pages under an empty mask."""
    found = Domain().visit(one, other)
    return (
        [(before.text, after.text) for before, after in found.replaced],
        [was.text for was, now in found.sides if was and not now],
        [now.text for was, now in found.sides if now and not was],
    )


@pytest.mark.parametrize(
    ("before", "after"),
    [("Price 19.99", "Price 19.98"), ("19.99", "99.19"), ("in stock", "sold out"), ("May 3", "May 4"), ("a b", "b a")],
)
def test_one_word_or_digit_is_a_change_unless_proven_volatile(before: str, after: str) -> None:
    long = "".join(f"<p>A sentence that stays, number {n}.</p>" for n in range(50))

    assert said(f"{long}<p>{before}</p>{long}", f"{long}<p>{after}</p>{long}") == ([(before, after)], [], [])


def test_inserted_row_is_the_only_difference() -> None:
    assert said("<ul><li>a<li>b<li>c</ul>", "<ul><li>a<li>new<li>b<li>c</ul>") == ([], [], ["new"])


def test_removed_paragraph_is_the_only_difference() -> None:
    assert said("<p>a<p>b<p>c", "<p>a<p>c") == ([], ["b"], [])


def test_moved_section_is_a_difference() -> None:
    one, two, three = (f"<h2>{n}</h2><p>what {n} says</p>" for n in ("one", "two", "three"))

    assert Domain().visit(one + two + three, two + three + one)


def test_link_target_alone_may_change() -> None:
    found = Domain().visit("<p>Get it <a href=/v1.zip>here</a></p>", "<p>Get it <a href=/v2.zip>here</a></p>")

    assert found.kinds == {BlockKind.LINK}
    assert found.blocks[0].text.endswith("/v1.zip")


@pytest.mark.parametrize(
    ("before", "after", "part"),
    [
        ("<title>a</title><p>x", "<title>b</title><p>x", BlockKind.TITLE),
        ("<meta name=description content=a><p>x", "<meta name=description content=b><p>x", BlockKind.META),
        ("<p>x<img src=a.png>", "<p>x<img src=b.png>", BlockKind.IMAGE),
    ],
)
def test_change_names_its_block_kind(before: str, after: str, part: BlockKind) -> None:
    assert Domain().visit(before, after).kinds == {part}


def test_query_of_an_image_url_is_ignored() -> None:
    assert Domain().visit("<img src=/a/x.png?v=1>", "<img src=/b/x.png?v=2>") == NO_DIFFERENCE


def priced(rows: int, of: str, *, first: str = "") -> str:
    """Return a price list whose rows have words in common."""
    told = "".join(f"<tr><td>Buy</td><td>{of}{n}.99 EUR</td></tr>" for n in range(rows))
    return f"<table>{first}{told}</table>"


def test_long_lists_with_repeated_words_are_compared_in_order() -> None:
    before, after = blocks(priced(2100, "1")), blocks(priced(2100, "2", first="<tr><td>New<td>7 EUR</tr>"))

    found = compute_difference(before, after, NO_VOLATILE_CONTENT)

    assert {(old.text[1:], new.text[1:]) for old, new in found.replaced} == {(f"{n}.99 EUR",) * 2 for n in range(2100)}
    assert [(was, now.text) for was, now in found.sides if was is None and now] == [(None, "New"), (None, "7 EUR")]
    assert len(found.sides) == len(found.replaced) + 2


def test_alternating_row_on_top_of_a_long_list_masks_no_price() -> None:
    def page(served: int, advert: str = "", price: str = "10.99") -> str:
        rows = "".join(f"<li>Widget {n} costs {10 + n % 90}.99 EUR" for n in range(2100))
        return f"<ul>{advert}{rows}<li>Widget 2100 costs {price} EUR</ul><p>Served in {served} ms"

    domain = Domain()
    for day in range(3):
        domain.visit(page(day * 3, "<li>Advert a"), page(day * 3 + 1), page(day * 3 + 2, "<li>Advert b"))

    found = domain.visit(page(10), page(11, price="777.99"))

    assert ("Widget 2100 costs 10.99 EUR", "Widget 2100 costs 777.99 EUR") in {
        (old.text, new.text) for old, new in found.replaced
    }


@pytest.mark.parametrize("advert", ["", "<li>Advert"])
def test_reordered_or_shifted_rows_do_not_count_as_edited_rows(advert: str) -> None:
    def page(order: Iterable[int], *, views: int, first: str = "", price: int = 10) -> str:
        rows = "".join(
            f"<li>Widget {n} costs {price + n} EUR" + f", {views * n} views" * bool(first or views) for n in order
        )
        return f"<ul>{first}{rows}</ul>"

    domain = Domain()
    shuffled = [n * 7 % 60 for n in range(60)]
    for day in range(3):
        first = page(range(60), views=day * 2 + 1 if advert else 0)
        again = page(range(60) if advert else shuffled, views=day * 2 + 2 if advert else 0, first=advert)
        domain.visit(page(range(60), views=day * 3 + 5), first, again)

    before, after = (page(range(60), views=0, price=price) for price in (10, 500))
    assert domain.visit(before, after)


@given(page=pages)
def test_page_does_not_differ_from_itself(page: str) -> None:
    assert compute_difference(blocks(page), blocks(page), NO_VOLATILE_CONTENT) == NO_DIFFERENCE


@settings(max_examples=60)
@given(one=pages, other=pages)
def test_every_block_is_reported_once_and_different_pages_have_changes(one: str, other: str) -> None:
    before, after = blocks(one), blocks(other)

    found = compute_difference(before, after, NO_VOLATILE_CONTENT)

    went, came = found.old_blocks, found.new_blocks
    assert len(before) - len(went) == len(after) - len(came)
    assert set(went) <= set(before)
    assert set(came) <= set(after)
    plain = [[(block.kind, block.text) for block in side] for side in (before, after)]
    assert bool(found) == (plain[0] != plain[1])
    assert select_significant(found, NO_MASK, then=NOON - DAY, now=NOON) == found


def test_second_fetch_is_needed_only_for_untested_significant_blocks() -> None:
    left = compute_difference(blocks("<p>5 left"), blocks("<p>4 left"), NO_VOLATILE_CONTENT)

    assert needs_second_fetch(left, NO_MASK, second_fetches=0, has_returned=False)
    assert not needs_second_fetch(NO_DIFFERENCE, NO_MASK, second_fetches=0, has_returned=True)
    assert not needs_second_fetch(left, NO_MASK, second_fetches=2, has_returned=True)


def test_block_with_masked_words_does_not_count_as_steady() -> None:
    page = "<p>Made on {} in {} ms</p>"
    domain = Domain()
    for n in range(0, 30, 3):
        domain.visit(*(page.format("Monday", n + each) for each in range(3)))

    left = compute_difference(blocks(page.format("Monday", 3)), blocks(page.format("Friday", 9)), domain.mask.volatile)
    assert needs_second_fetch(left, domain.mask, second_fetches=0, has_returned=False)


def test_contradictory_second_fetches_need_more_up_to_a_limit() -> None:
    page = "<h1>Kettle</h1><p>{}</p>"
    domain = Domain()
    left = domain.visit(*(page.format(text) for text in ("Buy boots", "Fly to Rome", "Learn to sail", "Learn to sail")))

    assert [needs_second_fetch(left, domain.mask, second_fetches=taken, has_returned=False) for taken in (2, 3, 4)] == [
        True,
        True,
        False,
    ]
    domain.visit(*(page.format(text) for text in ("Buy boots", "Fly to Rome", "Learn to sail")))
    assert not needs_second_fetch(left, domain.mask, second_fetches=2, has_returned=False)


def test_exhausted_quota_still_allows_fetches_of_blocks_that_differed() -> None:
    page = "<p>Made on {} in {} ms</p><h2>{}</h2>"
    domain = Domain()
    domain.visit(*(page.format("Monday", n, "Kettle") for n in range(4)))
    mask = replace(domain.mask, second_fetches=FREE_SECOND_FETCHES + 10)

    clock, also = (
        compute_difference(
            blocks(page.format("Monday", 3, "Kettle")), blocks(page.format("Friday", 9, said)), mask.volatile
        )
        for said in ("Kettle", "Teapot")
    )
    assert needs_second_fetch(clock, mask, second_fetches=0, has_returned=False)
    assert not needs_second_fetch(also, mask, second_fetches=0, has_returned=False)
    assert not needs_second_fetch(
        clock, replace(mask, second_fetches=FREE_SECOND_FETCHES * 3), second_fetches=0, has_returned=False
    )


def test_date_next_to_a_volatile_word_is_recognized_on_later_days() -> None:
    page = "<h1>Kettle</h1><p>Made on {:%A, %d %B %Y} in {} {}</p>"
    domain = Domain()

    def said(day: int, took: int, of: str = "ms") -> str:
        return page.format(domain.now + day * DAY, took, of)

    domain.visit(said(-1, 4), said(0, 5), said(0, 6), said(0, 7))
    assert domain.visit(said(-3, 4), said(0, 9), later=3 * DAY) == NO_DIFFERENCE
    assert domain.visit(said(-3, 4), said(0, 9, "s"), later=3 * DAY)
    assert domain.visit(said(-3, 4), said(-3, 9), later=3 * DAY)
    assert domain.visit(said(-5, 4), said(-2, 9), later=5 * DAY)
