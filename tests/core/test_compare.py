"""Two versions of a page, place by place."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crawler.core.compare import NO_MASK, SAME, difference, news, wants_pair
from crawler.core.outline import Outline, Part, Place
from crawler.core.volatile import NOTHING_VOLATILE
from tests.core.pages import DAY, NOON, Domain, places

pages = st.lists(
    st.sampled_from(["<p>one</p>", "<p>two words</p>", "<h2>x</h2>", "<p>a<a href=/b>b</a></p>", "<img src=c.png>"]),
    max_size=8,
).map("".join)


def said(one: str, other: str) -> tuple[list[tuple[str, str]], list[str], list[str]]:
    """What of two pages is news where nothing is known: replaced, removed, added."""
    found = Domain().look(one, other)
    return (
        [(before.text, after.text) for before, after in found.replaced],
        [place.text for place in found.removed],
        [place.text for place in found.added],
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

    assert found.parts == {Part.LINK}
    assert found.places[0].text.endswith("/v1.zip")


@pytest.mark.parametrize(
    ("before", "after", "part"),
    [
        ("<title>a</title><p>x", "<title>b</title><p>x", Part.TITLE),
        ("<meta name=description content=a><p>x", "<meta name=description content=b><p>x", Part.META),
        ("<p>x<img src=a.png>", "<p>x<img src=b.png>", Part.IMAGE),
    ],
)
def test_a_change_says_of_which_part_it_is(before: str, after: str, part: Part) -> None:
    assert Domain().look(before, after).parts == {part}


def test_the_address_of_the_same_image_may_carry_any_query() -> None:
    assert Domain().look("<img src=/a/x.png?v=1>", "<img src=/b/x.png?v=2>") == SAME


def test_pages_of_too_many_pieces_to_align_are_compared_all_the_same() -> None:
    many: Outline = tuple(Place(1, f"one {n}") for n in range(2100))
    other: Outline = tuple(Place(1, f"two {n}") for n in range(2100))

    assert len(difference(many, other, NOTHING_VOLATILE).replaced) == 2100


@given(page=pages)
def test_a_page_does_not_differ_from_itself(page: str) -> None:
    assert difference(places(page), places(page), NOTHING_VOLATILE) == SAME


@settings(max_examples=60)
@given(one=pages, other=pages)
def test_every_piece_is_told_once_and_pages_that_differ_have_news(one: str, other: str) -> None:
    before, after = places(one), places(other)

    found = difference(before, after, NOTHING_VOLATILE)

    went = [old for old, _ in found.replaced] + list(found.removed)
    came = [new for _, new in found.replaced] + list(found.added)
    assert len(before) - len(went) == len(after) - len(came)
    assert set(went) <= set(before)
    assert set(came) <= set(after)
    plain = [[(place.part, place.text) for place in side] for side in (before, after)]
    assert bool(found) == (plain[0] != plain[1])
    assert news(found, NO_MASK, then=NOON - DAY, now=NOON) == found


def test_a_pair_is_wanted_of_what_no_pair_has_told_of_and_never_without_news() -> None:
    left = difference(places("<p>5 left"), places("<p>4 left"), NOTHING_VOLATILE)

    assert wants_pair(left, NO_MASK, taken=0, returned=False)
    assert not wants_pair(SAME, NO_MASK, taken=0, returned=True)
    assert not wants_pair(left, NO_MASK, taken=2, returned=True)
