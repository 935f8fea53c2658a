"""Selectors built from a text find exactly its smallest element."""

import pytest

from crawler.core.http.urls import Url
from crawler.core.page.html import parse_html
from crawler.core.page.outline import extract_blocks
from crawler.core.page.selector_finder import describe_element, find_selector, iter_elements
from crawler.core.page.selectors import View

HTML = "text/html; charset=utf-8"
BODY = b"""<html><body><div id=main><p class="lead big">The mill opens at nine.</p>
<p>Rye is <b>sown</b> in autumn.</p><p>Oats are sown in spring.</p>
<ul><li>flour</li><li>bran</li><li class=x9>meal</li></ul>
<ol><li class="bin low new">barley</li><li class="bin x9 low">spelt</li><li class=low>millet</li></ol>
<span id=a17><em>Visitors: 4,711</em></span></div><p>At the end.</p></body></html>"""


@pytest.mark.parametrize(
    ("text", "selector"),
    [
        ("The mill opens at nine.", "#main > p.lead.big"),
        ("Oats are sown in spring.", "#main > p:nth-of-type(3)"),
        ("Rye is sown in autumn.", "#main > p:nth-of-type(2)"),
        ("bran", "#main > ul > li:nth-of-type(2)"),
        ("meal", "#main > ul > li:nth-of-type(3)"),
        ("barley", "#main > ol > li.bin.low:nth-of-type(1)"),
        ("spelt", "#main > ol > li.bin.low:nth-of-type(2)"),
        ("millet", "#main > ol > li.low:nth-of-type(3)"),
        ("Visitors: 4,711", "#main > span > em"),
        ("At the end.", "body > p"),
    ],
)
def test_text_has_the_selector_of_its_smallest_element(text: str, selector: str) -> None:
    assert find_selector(BODY, HTML, text) == selector
    whole = extract_blocks(BODY, url=Url("http://a.example/"), content_type=HTML)
    left = extract_blocks(BODY, url=Url("http://a.example/"), content_type=HTML, view=View(ignore=(selector,)))
    assert [block.text for block in whole if block not in left] == [text]


@pytest.mark.parametrize("text", ["", "nowhere", "The mill opens at nine. Rye is sown in autumn. At the end."])
def test_text_without_its_own_element_has_no_selector(text: str) -> None:
    assert find_selector(BODY, HTML, text) == ""


def test_any_bytes_are_accepted() -> None:
    for body in (b"", b"\x00\xff", b"<", b"<p" * 5000, b"<div>" * 3000 + b"deep"):
        find_selector(body, HTML, "deep")


def test_picked_element_has_selectors_of_itself_and_of_what_is_around_it() -> None:
    elements = list(iter_elements(parse_html(BODY, HTML).tree))
    for number, element in enumerate(elements):
        picked = describe_element(BODY, HTML, number)
        if element.tag in {"html", "head", "body"}:
            assert picked is None or element.tag == "head"
            continue
        assert picked is not None
        for selector, chars in picked.selectors:
            found = parse_html(BODY, HTML).tree.css(selector)
            assert [len(" ".join(each.text().split())) for each in found] == [chars], selector
    bran = next(n for n, each in enumerate(elements) if each.text() == "bran")
    picked = describe_element(BODY, HTML, bran)
    assert picked is not None
    assert picked.text == "bran"
    assert [selector for selector, _ in picked.selectors] == ["#main > ul > li:nth-of-type(2)", "#main > ul", "#main"]
    assert describe_element(BODY, HTML, 1000) is None
