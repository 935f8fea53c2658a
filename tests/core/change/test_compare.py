"""Two versions of a page, block by block."""

from collections.abc import Iterable
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crawler.core.change.difference import NO_DIFFERENCE, compute_difference, select_significant
from crawler.core.change.mask import NO_MASK
from crawler.core.change.observation import FREE_SECOND_FETCHES, needs_second_fetch
from crawler.core.noise.noise import NO_VOLATILE_CONTENT
from crawler.core.page.outline import BlockKind
from tests.core.pages import DAY, NOON, Domain, blocks

pages = st.lists(
    st.sampled_from(["<p>one</p>", "<p>two words</p>", "<h2>x</h2>", "<p>a<a href=/b>b</a></p>", "<img src=c.png>"]),
    max_size=8,
).map("".join)


def said(one: str, other: str) -> tuple[list[tuple[str, str]], list[str], list[str]]:
    """What of two pages is news where nothing is known: replaced, removed, added."""
    found = Domain().look(one, other)
    return (
        [(before.text, after.text) for before, after in found.replaced],
        [was.text for was, now in found.sides if was and not now],
        [now.text for was, now in found.sides if now and not was],
    )


@pytest.mark.parametrize(
    ("before", "after"),
    [("Price 19.99", "Price 19.98"), ("19.99", "99.19"), ("in stock", "sold out"), ("May 3", "May 4"), ("a b", "b a")],
)
def test_one_word_or_digit_is_a_change_unless_it_is_proven_to_be_none(before: str, after: str) -> None:
    long = "".join(f"<p>A sentence that stays, number {n}.</p>" for n in range(50))

    assert said(f"{long}<p>{before}</p>{long}", f"{long}<p>{after}</p>{long}") == ([(before, after)], [], [])


def test_a_row_that_was_inserted_is_that_row_alone() -> None:
    assert said("<ul><li>a<li>b<li>c</ul>", "<ul><li>a<li>new<li>b<li>c</ul>") == ([], [], ["new"])


def test_a_paragraph_that_was_removed_is_that_paragraph_alone() -> None:
    assert said("<p>a<p>b<p>c", "<p>a<p>c") == ([], ["b"], [])


def test_a_section_that_was_moved_is_seen() -> None:
    one, two, three = (f"<h2>{n}</h2><p>what {n} says</p>" for n in ("one", "two", "three"))

    assert Domain().look(one + two + three, two + three + one)


def test_only_a_links_target_may_change() -> None:
    found = Domain().look("<p>Get it <a href=/v1.zip>here</a></p>", "<p>Get it <a href=/v2.zip>here</a></p>")

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
def test_a_change_says_of_which_part_it_is(before: str, after: str, part: BlockKind) -> None:
    assert Domain().look(before, after).kinds == {part}


def test_the_address_of_the_same_image_may_carry_any_query() -> None:
    assert Domain().look("<img src=/a/x.png?v=1>", "<img src=/b/x.png?v=2>") == NO_DIFFERENCE


def priced(rows: int, of: str, *, first: str = "") -> str:
    """A price list in which each row says a word that others say as well."""
    told = "".join(f"<tr><td>Buy</td><td>{of}{n}.99 EUR</td></tr>" for n in range(rows))
    return f"<table>{first}{told}</table>"


def test_long_lists_are_compared_in_their_order_though_their_rows_repeat_a_word() -> None:
    before, after = blocks(priced(2100, "1")), blocks(priced(2100, "2", first="<tr><td>New<td>7 EUR</tr>"))

    found = compute_difference(before, after, NO_VOLATILE_CONTENT)

    assert {(old.text[1:], new.text[1:]) for old, new in found.replaced} == {(f"{n}.99 EUR",) * 2 for n in range(2100)}
    assert [(was, now.text) for was, now in found.sides if was is None and now] == [(None, "New"), (None, "7 EUR")]
    assert len(found.sides) == len(found.replaced) + 2


def test_a_row_that_comes_and_goes_on_top_of_a_long_list_masks_no_price_in_it() -> None:
    def page(served: int, advert: str = "", price: str = "10.99") -> str:
        rows = "".join(f"<li>Widget {n} costs {10 + n % 90}.99 EUR" for n in range(2100))
        return f"<ul>{advert}{rows}<li>Widget 2100 costs {price} EUR</ul><p>Served in {served} ms"

    domain = Domain()
    for day in range(3):
        domain.look(page(day * 3, "<li>Advert a"), page(day * 3 + 1), page(day * 3 + 2, "<li>Advert b"))

    found = domain.look(page(10), page(11, price="777.99"))

    assert ("Widget 2100 costs 10.99 EUR", "Widget 2100 costs 777.99 EUR") in {
        (old.text, new.text) for old, new in found.replaced
    }


@pytest.mark.parametrize("advert", ["", "<li>Advert"])
def test_rows_in_another_order_or_with_one_on_top_are_not_taken_for_rows_whose_words_differ(advert: str) -> None:
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
        domain.look(page(range(60), views=day * 3 + 5), first, again)

    before, after = (page(range(60), views=0, price=price) for price in (10, 500))
    assert domain.look(before, after)


@given(page=pages)
def test_a_page_does_not_differ_from_itself(page: str) -> None:
    assert compute_difference(blocks(page), blocks(page), NO_VOLATILE_CONTENT) == NO_DIFFERENCE


@settings(max_examples=60)
@given(one=pages, other=pages)
def test_every_block_is_reported_once_and_pages_that_differ_have_news(one: str, other: str) -> None:
    before, after = blocks(one), blocks(other)

    found = compute_difference(before, after, NO_VOLATILE_CONTENT)

    went, came = found.old_blocks, found.new_blocks
    assert len(before) - len(went) == len(after) - len(came)
    assert set(went) <= set(before)
    assert set(came) <= set(after)
    plain = [[(block.kind, block.text) for block in side] for side in (before, after)]
    assert bool(found) == (plain[0] != plain[1])
    assert select_significant(found, NO_MASK, then=NOON - DAY, now=NOON) == found


def test_a_second_fetch_is_wanted_of_what_no_second_fetch_has_shown_and_never_without_news() -> None:
    left = compute_difference(blocks("<p>5 left"), blocks("<p>4 left"), NO_VOLATILE_CONTENT)

    assert needs_second_fetch(left, NO_MASK, second_fetches=0, has_returned=False)
    assert not needs_second_fetch(NO_DIFFERENCE, NO_MASK, second_fetches=0, has_returned=True)
    assert not needs_second_fetch(left, NO_MASK, second_fetches=2, has_returned=True)


def test_a_block_whose_words_a_second_fetch_could_not_tell_as_they_were_masked_has_not_stood_still() -> None:
    page = "<p>Made on {} in {} ms</p>"
    domain = Domain()
    for n in range(0, 30, 3):
        domain.look(*(page.format("Monday", n + each) for each in range(3)))

    left = compute_difference(blocks(page.format("Monday", 3)), blocks(page.format("Friday", 9)), domain.mask.volatile)
    assert needs_second_fetch(left, domain.mask, second_fetches=0, has_returned=False)


def test_more_looks_are_taken_where_one_second_fetch_differs_and_another_does_not_and_not_for_ever() -> None:
    page = "<h1>Kettle</h1><p>{}</p>"
    domain = Domain()
    left = domain.look(*(page.format(text) for text in ("Buy boots", "Fly to Rome", "Learn to sail", "Learn to sail")))

    assert [needs_second_fetch(left, domain.mask, second_fetches=taken, has_returned=False) for taken in (2, 3, 4)] == [
        True,
        True,
        False,
    ]
    domain.look(*(page.format(text) for text in ("Buy boots", "Fly to Rome", "Learn to sail")))
    assert not needs_second_fetch(left, domain.mask, second_fetches=2, has_returned=False)


def test_where_second_fetches_are_spent_one_is_still_taken_of_what_was_found_differing_and_of_nothing_else() -> None:
    page = "<p>Made on {} in {} ms</p><h2>{}</h2>"
    domain = Domain()
    domain.look(*(page.format("Monday", n, "Kettle") for n in range(4)))
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


def test_a_date_beside_a_volatile_word_is_the_days_on_a_day_of_which_no_second_fetch_was_taken() -> None:
    page = "<h1>Kettle</h1><p>Made on {:%A, %d %B %Y} in {} {}</p>"
    domain = Domain()

    def said(day: int, took: int, of: str = "ms") -> str:
        return page.format(domain.now + day * DAY, took, of)

    domain.look(said(-1, 4), said(0, 5), said(0, 6), said(0, 7))
    assert domain.look(said(-3, 4), said(0, 9), later=3 * DAY) == NO_DIFFERENCE
    assert domain.look(said(-3, 4), said(0, 9, "s"), later=3 * DAY)
    assert domain.look(said(-3, 4), said(-3, 9), later=3 * DAY)
    assert domain.look(said(-5, 4), said(-2, 9), later=5 * DAY)
