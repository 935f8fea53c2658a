"""The choice of the main content of a page."""

from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crawler.core.page.fingerprint import hash_text
from crawler.core.page.html import parse_html
from crawler.core.page.main_content import choice, hints
from crawler.core.page.main_content.choice import MainContent, add_headings, build_content_text, choose_content
from crawler.core.page.main_content.features import TABLES, compute_features, measure_boxes
from crawler.core.page.main_content.page_type import PageType
from crawler.core.page.scan import PageScan, scan_tree
from crawler.core.page.shared_lines import NO_SHARED_LINES, SharedLines

PARAGRAPH = (
    "The keeper of the lighthouse climbs the stairs each evening, lights the lamp, and writes the hour in a book."
)
MORE = "In winter the boat cannot land for weeks, so the stores are filled in autumn, and nobody expects any letters."
ARTICLE = (
    f"<h1>The lighthouse</h1><p>{PARAGRAPH}</p><p>{MORE} {PARAGRAPH}</p><p>{MORE} {MORE}</p><p>{PARAGRAPH} {MORE}</p>"
)

LINKS = "".join(f"<a href=/{name}>{name.title()}</a><br>" for name in ("about", "help", "news", "jobs", "terms of use"))
MENU = f"<div class=menu>{LINKS}</div><p>Lamps of 1912</p><footer>{LINKS}</footer>"


def scan_page(body: str) -> PageScan:
    return scan_tree(parse_html(f"<html><body>{body}</body></html>".encode(), "text/html; charset=utf-8").tree)


def read(body: str, *, shared: SharedLines = NO_SHARED_LINES) -> str:
    scan = scan_page(body)
    return build_content_text(scan, choose_content(scan, title="The lighthouse", shared=shared).lines)


def test_paragraphs_of_an_article_are_content() -> None:
    text = read(f"<article>{ARTICLE}</article>")
    assert text.count("The keeper of the lighthouse") == 3
    assert text.count("In winter") == 4


@pytest.mark.parametrize(
    "furniture",
    [
        "<nav><ul><li><a href=/x>Widgets here</a><li><a href=/y>Gadgets here</a></ul></nav>",
        "<div class=sidebar><ul><li><a href=/x>Widgets here</a><li><a href=/y>Gadgets here</a></ul></div>",
        "<footer><p>Widgets here <a href=/y>Gadgets here</a></p></footer>",
        "<div class='cookie-consent'><p>Widgets here use cookies.</p><a href=/y>Gadgets here</a></div>",
        "<div role=navigation><a href=/x>Widgets here</a><br><a href=/y>Gadgets here</a></div>",
        "<div class=share-buttons><a href=/x>Widgets here</a><a href=/y>Gadgets here</a></div>",
        "<div class=related-posts><h3>Related posts</h3><ul><li><a href=/x>Widgets here</a></ul></div>",
    ],
    ids=["nav", "sidebar", "footer", "cookies", "role", "share", "related"],
)
@pytest.mark.parametrize("is_first", [True, False], ids=["before", "after"])
def test_furniture_around_an_article_is_not_content(furniture: str, *, is_first: bool) -> None:
    article = f"<article>{ARTICLE}</article>"
    text = read(furniture + article if is_first else article + furniture)
    assert "Widgets here" not in text
    assert PARAGRAPH in text


@pytest.mark.parametrize("line", ["Read more", "© 2024 Example Inc. All rights reserved.", "Sign in", "Teilen"])
def test_texts_of_furniture_are_not_content_whatever_their_box(line: str) -> None:
    assert line not in read(f"<div>{ARTICLE}</div><div><a href=/x>{line}</a></div>")


def test_headings_lists_and_tables_between_paragraphs_are_content() -> None:
    inner = "<h2>Stores of the year</h2><ul><li>Oil for the lamp</li><li>Flour, salt and tea</li></ul>"
    table = (
        "<table><tr><th>Month of the year<th>Boats that landed<tr><td>May of this year<td>Four boats, with oil"
        "<tr><td>June of this year<td>Seven boats, with flour and salt</table>"
    )
    text = read(f"<article>{ARTICLE}{inner}<p>{MORE}</p>{table}<p>{PARAGRAPH}</p></article>")
    for part in ("Stores of the year", "Oil for the lamp", "Flour, salt and tea", "June of this year", "Seven boats"):
        assert part in text


def test_box_with_most_of_the_text_is_content_however_it_is_named() -> None:
    assert read(f"<div class='sidebar footer'>{ARTICLE}</div>").count("In winter") == 4


def test_posts_of_a_forum_are_content() -> None:
    posts = "".join(
        f"<div class='post message'><div class=author>user{number}</div><div class=post-body>"
        f"Answer {number}: {PARAGRAPH}</div></div>"
        for number in range(8)
    )
    text = read(f"<h1>How do I light the lamp?</h1><div class=thread>{posts}</div>")
    assert all(f"Answer {number}:" in text for number in range(8))


def test_items_of_a_listing_are_content() -> None:
    items = "".join(
        f"<li class=item><h3><a href=/{number}>Lighthouse number {number} of the coast</a></h3><p>{MORE}</p></li>"
        for number in range(12)
    )
    text = read(f"<nav><a href=/>Home</a></nav><main><h1>Lighthouses</h1><ul>{items}</ul></main>")
    assert all(f"Lighthouse number {number} of" in text for number in range(12))


def test_line_that_other_pages_share_is_dropped() -> None:
    notice = "Lighthouses are open to visitors on the first Sunday of each month, from nine until noon."
    page = f"<div>{ARTICLE}</div><div><p>{notice}</p></div>"
    assert notice in read(page)
    assert notice not in read(page, shared=SharedLines.build({hash_text(notice)}, pages=9))


def test_shared_line_between_lines_of_content_is_kept() -> None:
    page = f"<article>{ARTICLE}<h2>Parameters</h2><p>{MORE} {PARAGRAPH}</p><p>{PARAGRAPH}</p></article>"
    assert "Parameters" in read(page, shared=SharedLines.build({hash_text("Parameters")}, pages=9))


def test_preformatted_text_keeps_its_lines_and_indentation() -> None:
    code = "<pre><code>def light(lamp):\n    if lamp.oil:\n        <b>return</b> lamp.burn()</code></pre>"
    text = read(f"<article>{ARTICLE}{code}<p>{PARAGRAPH}</p></article>")
    assert "def light(lamp):\n    if lamp.oil:\n        return lamp.burn()\n" in text


@pytest.mark.parametrize(("share", "headings"), [(1.0, []), (0.1, ["The lighthouse"])], ids=["equal", "lower"])
def test_headings_right_above_chosen_lines_may_be_less_likely(share: float, headings: list[str]) -> None:
    scan = scan_page(f"<div><h1>Lamps</h1><h2>The lighthouse</h2><p>{PARAGRAPH}</p><p>About the lamp</p></div>{MENU}")
    with patch.object(choice, "HEADING_SHARE", share):
        lines = choose_content(scan, title="").lines
    assert [scan.texts[line] for line in lines if scan.box_tags[scan.line_boxes[line]] == "h2"] == headings


@pytest.mark.parametrize("sign", ["¶", "#", "🔗"])
def test_permalinks_of_headings_are_removed(sign: str) -> None:
    heading = f"<h2>Stores of the year<a class=headerlink href='#stores'>{sign}</a></h2>"
    text = read(f"<article>{ARTICLE}{heading}<p>{PARAGRAPH} {MORE}</p><p>{PARAGRAPH}</p></article>")
    assert "Stores of the year\n" in text
    assert sign not in text


def test_short_links_to_other_pages_are_kept() -> None:
    assert "written in C# by" in read(
        f"<article>{ARTICLE}<p>It is written in C<a href='/sharp'>#</a> by the keeper, who says: {MORE}</p></article>"
    )


def test_confidence_is_high_for_an_article_and_low_for_a_page_of_links() -> None:
    article = choose_content(scan_page(f"<article>{ARTICLE}</article>"), title="").confidence
    assert article > 0.9
    assert choose_content(scan_page(MENU), title="").confidence < article - 0.3


def test_uncertain_choice_takes_more_text() -> None:
    scan = scan_page(f"<div><h1>The lighthouse</h1><p>{PARAGRAPH}</p><p>About the lamp</p></div>{MENU}")
    lines = choose_content(scan, title="").lines
    with patch.multiple(choice, MIN_CONFIDENCE=1.1, FALLBACK_SHARE=0.1):
        more = choose_content(scan, title="").lines
    assert set(lines) < set(more)


@pytest.mark.parametrize(
    ("page_type", "head", "body"),
    [
        (
            PageType.PRODUCT,
            '<script type=application/ld+json>{"@type": "Product"}</script>',
            "<div class=product><h1>Lamp</h1><div class=price>$ 19</div><div class=description>Burns.</div></div>",
        ),
        (
            PageType.FORUM,
            '<script type=application/ld+json>{"@type": "DiscussionForumPosting"}</script>',
            f"<div class=thread><div class='post message'>{MORE}</div><div class='post reply'>{MORE}</div></div>",
        ),
    ],
    ids=["product", "forum"],
)
def test_type_of_a_page_is_found(page_type: PageType, head: str, body: str) -> None:
    assert choose_content(scan_page(head + body), title="").page_type == page_type


def test_page_without_text_has_no_content() -> None:
    content = choose_content(scan_page(""), title="")
    assert (content.lines, content.confidence) == ((), 0.0)


def test_lines_of_a_box_are_found() -> None:
    scan = scan_page("<div>one<p>two</p>three</div><div></div><p>four</p>")
    first, last = (list(each) for each in _measure(scan))
    tags = scan.box_tags
    assert [(first[box], last[box]) for box in range(len(tags)) if tags[box] in {"div", "p"}] == [
        (0, 3),
        (1, 2),
        (3, 3),
        (3, 4),
    ]


def _measure(scan: PageScan) -> tuple[list[int], list[int]]:
    starts, ends = measure_boxes(np.array(scan.line_boxes), np.array(scan.box_ends))
    return starts.tolist(), ends.tolist()


_TAGS = st.sampled_from(
    ["p", "div", "ul", "li", "h1", "h2", "pre", "table", "tr", "td", "nav", "main", "article", "a href='#x'", "br", "b"]
)
_CLASSES = st.sampled_from(["", " class=sidebar", " class='post-body x'", " id=footer", " class=a", " role=navigation"])
_TEXTS = st.text(st.characters(codec="utf-8"), max_size=60) | st.sampled_from(["¶", "Read more", PARAGRAPH])
_PARTS = st.builds(lambda tag, name, text: f"<{tag}{name}>{text}", _TAGS, _CLASSES, _TEXTS)
_ENDS = st.sampled_from(["</div>", "</p>", "</ul>", "</a>", "</pre>", "</article>"])


@settings(deadline=None)
@given(st.lists(_PARTS | _ENDS | _TEXTS, max_size=40).map("".join), st.text(max_size=20))
def test_any_page_has_a_valid_choice(body: str, title: str) -> None:
    scan = scan_page(body)
    content = choose_content(scan, title=title, shared=SharedLines.build(map(hash_text, scan.texts[::3]), pages=20))
    assert isinstance(content, MainContent)
    assert list(content.lines) == sorted(set(content.lines))
    assert all(0 <= line < len(scan.texts) and scan.texts[line] for line in content.lines)
    assert 0 <= content.confidence <= 1
    assert "\0" not in build_content_text(scan, content.lines)
    if scan.texts:
        codes = compute_features(scan, title).codes
        assert all(0 <= row.min() <= row.max() < size for row, size in zip(codes, TABLES.values(), strict=True))


@pytest.mark.parametrize(
    "body",
    ["<div>" * 300 + "x" + "</div>" * 300, "<p>x" * 20_000, "<h2>x</h2>" * 5_000, "<pre>x\n</pre>" * 2_000],
    ids=["deep", "wide", "headings", "preformatted"],
)
def test_steps_are_linear_in_boxes_and_lines(body: str) -> None:
    scan = scan_page(body)
    with patch.object(hints, "_find_word", wraps=hints._find_word) as find:
        content = choose_content(scan, title="x")
    build_content_text(scan, content.lines)
    assert find.call_count <= len(scan.box_tags)


def test_headings_that_belong_to_the_content_are_added() -> None:
    scan = scan_page(
        "<h1>Site</h1><ul><li>Menu</ul><h1>Lamps</h1><p>by Ada<h2>Wicks</h2><p>Text<h2>Ads</h2><p>Buy<p>More"
    )
    lines = [scan.texts.index("Text"), scan.texts.index("More")]
    assert [scan.texts[line] for line in add_headings(scan, lines)] == ["Lamps", "Wicks", "Text", "More"]
    assert add_headings(scan, []) == []


def test_heading_in_boilerplate_is_not_added() -> None:
    scan = scan_page("<header><h1>Site</h1></header><main><p>Text</main>")
    assert [scan.texts[line] for line in add_headings(scan, [1])] == ["Text"]
