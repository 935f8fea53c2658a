"""A page as a list of places: what a reader sees of it, and where links lead."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.core.change import difference
from crawler.core.page import BlockKind
from crawler.core.page.outline import MAX_PLACE_CHARS, MOST_PLACES
from crawler.core.volatile import NOTHING_VOLATILE
from tests.core.pages import places, texts


def test_a_page_is_told_piece_by_piece_in_its_order() -> None:
    found = places(
        "<title>Prices</title><meta name=description content='What it costs'>"
        "<h1>Pumps</h1><p>The small one <a href=/small>here</a><p><img src=/i/pump.png?v=2 alt='A pump'>"
    )

    assert [(place.kind, place.text) for place in found] == [
        (BlockKind.TITLE, "Prices"),
        (BlockKind.META, "What it costs"),
        (BlockKind.TEXT, "Pumps"),
        (BlockKind.TEXT, "The small one here"),
        (BlockKind.LINK, "https://example.com/small"),
        (BlockKind.IMAGE, "A pump pump.png"),
    ]


@pytest.mark.parametrize(
    "hidden",
    [
        "<script>one</script>",
        "<style>one</style>",
        "<template>one</template>",
        "<noscript>one</noscript>",
        "<div hidden>one</div>",
        "<div style='display: none'>one</div>",
        "<div hidden><p><b>one</b></p><a href=/b>two</a><img src=c.png></div>",
        "<!-- one -->",
    ],
)
def test_what_nobody_sees_is_no_place(hidden: str) -> None:
    assert places(f"<p>seen</p>{hidden}") == places("<p>seen</p>")


@pytest.mark.parametrize(
    "written",
    [
        "<p class='note'  id=x>Two   words</p>",
        "<P ID=y CLASS=note>Two\n\twords</P>",
        "<p data-token=8f3a class=note>Two <b>words</b></p>",
        "<p class='note' onclick='go(1)'>Two&#32;words</p>",
    ],
)
def test_how_a_piece_is_written_makes_no_other_place(written: str) -> None:
    assert places(written) == places("<p class=note>Two words</p>")


def test_a_place_stays_when_rows_come_and_go() -> None:
    two = places("<ul><li>one<li>two</ul>")
    three = places("<ul><li>none<li>one<li>two</ul>")

    assert three[1:] == two


@pytest.mark.parametrize(("one", "other"), [("row-17", "row-18"), ("item a3f90c", "item 7bb01d")])
def test_numbers_and_codes_in_a_class_make_no_other_place(one: str, other: str) -> None:
    assert places(f"<p class='{one}'>words") == places(f"<p class='{other}'>words")


def test_other_classes_and_other_elements_are_other_places() -> None:
    paths = {
        places(each)[0].css_path
        for each in ("<p>x", "<p class=a>x", "<li>x", "<div><p>x</div>", "<div class=b><p>x</div>")
    }

    assert len(paths) == 5


def test_a_link_within_the_page_leads_nowhere_and_one_that_is_no_url_is_left_out() -> None:
    assert texts(places("<a href='#top'>up</a><a href='http://['>x</a><a>y</a><a href=''>z</a>"), BlockKind.LINK) == []


def test_links_are_told_as_they_lead_from_the_pages_base() -> None:
    found = places("<base href=/other/><p><a href=b.html>b</a></p>")

    assert texts(found, BlockKind.LINK) == ["https://example.com/other/b.html"]


def test_a_page_of_more_pieces_than_are_kept_tells_the_rest_as_one() -> None:
    found = places("".join(f"<p>{n}</p>" for n in range(MOST_PLACES + 5)))

    assert len(found) == MOST_PLACES + 1
    assert found[-1].text.split() == [str(n) for n in range(MOST_PLACES, MOST_PLACES + 5)]


def test_a_piece_is_kept_up_to_its_bound() -> None:
    (only,) = places(f"<p>{'x' * (MAX_PLACE_CHARS + 10)}</p>")

    assert len(only.text) == MAX_PLACE_CHARS


@pytest.mark.parametrize(
    ("page", "content_type"),
    [
        (f"<pre>{'so much was said. ' * 8000} Price PRICE EUR</pre>", "text/html"),
        ("a\n" * MOST_PLACES + "one line\n" * 12_000 + "Price PRICE EUR\n", "text/plain"),
        ("<p>a" * MOST_PLACES + f"<p>{'so much was said. ' * 8000}<p>Price PRICE EUR", "text/html"),
    ],
)
def test_what_changes_beyond_a_bound_is_seen(page: str, content_type: str) -> None:
    one, same, other = (
        places(page.replace("PRICE", price), content_type=content_type) for price in ("19.99", "19.99", "99.19")
    )

    assert one == same
    assert one != other
    assert difference(one, other, NOTHING_VOLATILE)
    assert all(len(place.text) <= MAX_PLACE_CHARS for place in one)


def test_plain_text_is_told_line_by_line() -> None:
    assert texts(places("one\n\ntwo words\n", content_type="text/plain")) == ["one", "two words"]


def test_elements_in_thousands_of_others_are_told_and_raise_nothing() -> None:
    assert isinstance(places("<div>" * 20_000 + "deep"), tuple)


@given(body=st.one_of(st.binary(max_size=400), st.text("<>/a p=\"'#&;0\0é漢", max_size=200).map(str.encode)))
@pytest.mark.parametrize("content_type", ["text/html", "text/plain; charset=utf-16", "application/json"])
def test_any_bytes_are_told_the_same_twice_and_raise_nothing(content_type: str, body: bytes) -> None:
    found = places(body, content_type=content_type)

    assert found == places(body, content_type=content_type)
    assert len(found) <= MOST_PLACES + 1
    assert all("\0" not in place.text and len(place.text) <= MAX_PLACE_CHARS for place in found)
