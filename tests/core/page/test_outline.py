"""A page as a list of blocks: visible texts and link targets."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.core.change.difference import compute_difference
from crawler.core.noise.noise import NO_VOLATILE_CONTENT
from crawler.core.page.block import BlockKind
from crawler.core.page.outline import MAX_BLOCK_CHARS, MAX_BLOCKS
from tests.core.pages import blocks, texts


def test_page_is_read_block_by_block_in_order() -> None:
    found = blocks(
        "<title>Prices</title><meta name=description content='What it costs'>"
        "<h1>Pumps</h1><p>The small one <a href=/small>here</a><p><img src=/i/pump.png?v=2 alt='A pump'>"
    )

    assert [(block.kind, block.text) for block in found] == [
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
        "<ul><li> <a href=/b class=next> </a> </li></ul>",
        "<!-- one -->",
    ],
)
def test_invisible_elements_are_no_blocks(hidden: str) -> None:
    assert blocks(f"<p>seen</p>{hidden}") == blocks("<p>seen</p>")


@pytest.mark.parametrize(
    "written",
    [
        "<p class='note'  id=x>Two   words</p>",
        "<P ID=y CLASS=note>Two\n\twords</P>",
        "<p data-token=8f3a class=note>Two <b>words</b></p>",
        "<p class='note' onclick='go(1)'>Two&#32;words</p>",
    ],
)
def test_markup_details_do_not_change_a_block(written: str) -> None:
    assert blocks(written) == blocks("<p class=note>Two words</p>")


def test_path_stays_when_rows_are_added_or_removed() -> None:
    two = blocks("<ul><li>one<li>two</ul>")
    three = blocks("<ul><li>none<li>one<li>two</ul>")

    assert three[1:] == two


@pytest.mark.parametrize(("one", "other"), [("row-17", "row-18"), ("item a3f90c", "item 7bb01d")])
def test_numbers_and_codes_in_a_class_do_not_change_the_path(one: str, other: str) -> None:
    assert blocks(f"<p class='{one}'>words") == blocks(f"<p class='{other}'>words")


def test_other_classes_and_other_elements_are_other_paths() -> None:
    paths = {
        blocks(each)[0].css_path
        for each in ("<p>x", "<p class=a>x", "<li>x", "<div><p>x</div>", "<div class=b><p>x</div>")
    }

    assert len(paths) == 5


def test_internal_anchors_and_invalid_urls_are_left_out() -> None:
    assert texts(blocks("<a href=/b aria-label=Next></a><a href=/c><i></i></a>"), BlockKind.LINK) == [
        "https://example.com/b",
        "https://example.com/c",
    ]
    assert texts(blocks("<a href='#top'>up</a><a href='http://['>x</a><a>y</a><a href=''>z</a>"), BlockKind.LINK) == []


def test_links_are_resolved_against_the_pages_base() -> None:
    found = blocks("<base href=/other/><p><a href=b.html>b</a></p>")

    assert texts(found, BlockKind.LINK) == ["https://example.com/other/b.html"]


def test_blocks_beyond_the_limit_are_joined_into_one() -> None:
    found = blocks("".join(f"<p>{n}</p>" for n in range(MAX_BLOCKS + 5)))

    assert len(found) == MAX_BLOCKS + 1
    assert found[-1].text.split() == [str(n) for n in range(MAX_BLOCKS, MAX_BLOCKS + 5)]


def test_long_block_is_cut_at_the_limit() -> None:
    (only,) = blocks(f"<p>{'x' * (MAX_BLOCK_CHARS + 10)}</p>")

    assert len(only.text) == MAX_BLOCK_CHARS


@pytest.mark.parametrize(
    ("page", "content_type"),
    [
        (f"<pre>{'so much was said. ' * 8000} Price PRICE EUR</pre>", "text/html"),
        ("a\n" * MAX_BLOCKS + "one line\n" * 12_000 + "Price PRICE EUR\n", "text/plain"),
        ("<p>a" * MAX_BLOCKS + f"<p>{'so much was said. ' * 8000}<p>Price PRICE EUR", "text/html"),
    ],
)
def test_change_beyond_the_limit_is_detected(page: str, content_type: str) -> None:
    one, same, other = (
        blocks(page.replace("PRICE", price), content_type=content_type) for price in ("19.99", "19.99", "99.19")
    )

    assert one == same
    assert one != other
    assert compute_difference(one, other, NO_VOLATILE_CONTENT)
    assert all(len(block.text) <= MAX_BLOCK_CHARS for block in one)


def test_plain_text_is_read_line_by_line() -> None:
    assert texts(blocks("one\n\ntwo words\n", content_type="text/plain")) == ["one", "two words"]


def test_deeply_nested_elements_are_read() -> None:
    assert isinstance(blocks("<div>" * 20_000 + "deep"), tuple)


@given(body=st.one_of(st.binary(max_size=400), st.text("<>/a p=\"'#&;0\0é漢", max_size=200).map(str.encode)))
@pytest.mark.parametrize("content_type", ["text/html", "text/plain; charset=utf-16", "application/json"])
def test_any_bytes_are_read_deterministically(content_type: str, body: bytes) -> None:
    found = blocks(body, content_type=content_type)

    assert found == blocks(body, content_type=content_type)
    assert len(found) <= MAX_BLOCKS + 1
    assert all("\0" not in block.text and len(block.text) <= MAX_BLOCK_CHARS for block in found)


CHOICE = "<p>In other languages: <a href=/en/a>English</a> | <a href=/fr/a rel=alternate hreflang=fr>French</a></p>"


@pytest.mark.parametrize(
    "choice",
    [
        CHOICE,
        "<ul><li><a href=/f rel=alternate hreflang=fr>French</a><li><a href=/d rel=alternate hreflang=de>de</a></ul>",
    ],
    ids=["in a line", "in a list"],
)
def test_language_switcher_is_left_out(choice: str) -> None:
    assert blocks(f"<h1>Pumps</h1>{choice}<a href=/b>more</a>") == blocks("<h1>Pumps</h1><a href=/b>more</a>")


@pytest.mark.parametrize(
    "text",
    [
        "<p>There is <a href=/fr/a rel=alternate hreflang=fr>a French text</a> that tells more of what it is for</p>",
        "<p><a href=/fr/a rel=alternate hreflang=fr>French</a>: 12 euros</p>",
        "<p><a href=/fr/a hreflang=fr>French</a></p>",
        "<p><a href=/fr/a rel=alternate hreflang=fr>French</a> <a href=/c>one</a> <a href=/d>two</a></p>",
    ],
    ids=["a sentence", "a price", "another page", "other links"],
)
def test_text_with_more_than_a_language_switcher_is_kept(text: str) -> None:
    assert texts(blocks(text))


def test_blocks_beside_a_language_switcher_are_kept() -> None:
    found = blocks("<h1>Pumps</h1><ul><li><a href=/fr/a rel=alternate hreflang=fr>French</a><li><a href=/b>b</a></ul>")

    assert texts(found) == ["Pumps", "b"]
    assert texts(found, BlockKind.LINK) == ["https://example.com/b"]
