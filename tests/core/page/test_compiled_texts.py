"""The compiled texts, digests and content of a page are those of the Python version, on any page."""

from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from crawler.core.http.urls import Url
from crawler.core.page import compiled_scan
from crawler.core.page.fingerprint import hash_text
from crawler.core.page.html import parse_html
from crawler.core.page.shared_lines import SharedLines
from crawler.core.page.snapshot import Parsed, parse_body

if "compiled" not in compiled_scan.describe_reader():
    pytest.skip(f"no compiled texts: {compiled_scan.describe_reader()}", allow_module_level=True)

URL = Url("http://site.test/lamps-of-the-coast")
ROUNDING = 1e-12
CODE = "<pre>\n  a \xa0\n\n b<b> c </b></pre><pre id=x>\n</pre><nav><pre> </pre></nav><p>d<pre>e<br>f\t\n</pre>"
PERMALINKS = (
    "<h2>One<a href='#one'> \xb6 </a></h2><h2><a href='#x'>#</a></h2><p>a \xa7 <a href='#y'>\xa7\xa7</a> \xa7\xa7 b</p>"
)
PAGES = {
    "empty": "",
    "code": CODE,
    "code in boilerplate": f"<footer>{'word ' * 40}<pre> a </pre></footer><main>{'text ' * 90}</main>{CODE}",
    "little main text": f"<nav>{'menu ' * 90}</nav><p>x {CODE}",
    "permalinks": PERMALINKS,
    "permalinks that only Python knows": PERMALINKS + "<h3>Two<a href='#z'>\U0001f517</a><a href='#z'>\u65e5\u672c</a>",
    "no permalinks": "<p>a<a href=x>#</a><a href='#a'>abc</a><a href='#b'>#1</a><a href='#c'></a><a href='#'>...</a>",
    "lowercase": "<p>\xc0\u0130 \u03a3\u03a3 \u212a \u1e9e \u2028 \u23fa \u65e5\u672c\u30fb x_1 2\xb2 \ufb01 The LAMPS",
    "word classes": "<p>\xc0\xdf \u0416\u0436 \xa9 \u20ac5 \u2019s \u0301 \u0f0b \u2126 2nd lamps THE coast \u1e9e",
    "no words": "<p>!!! ...",
    "many lines": "".join(f"<p>The lamp number {n} of the coast is lit" for n in range(900)),
    "data": """<script>a="/one/two" '/x\\/y' "\\/three" "//no" "/\\/no" "/a" "/\xfcber" "/\u20ac/x" "/%s"</script>
        <script type='Application/JSON'>["/four/", '/five"/six', "/\\/", "/.js.js"]</script>"""
    % ("long" * 60),
    "custom elements": "<script></script><p>a</p>\u3000\n </x-y> <x-z>text</x-z>",
    "filled custom elements": "<script></script></X-y>\xe9</x-z>" + " " * 200 + "</b1-><b></a</c->",
    "events": f"<img {'x' * 300} ONLOAD =1><iframe onerrors=1><link on><body onload>",
    "readers without scripts": f"<p>x<noscript><h1>Forum</h1><p>{'A long message. ' * 40}{CODE}</noscript>",
}


def assert_equal_pages(page: str, *, shared: SharedLines = SharedLines()) -> None:  # noqa: B008  a constant
    found = _parse(page, shared)
    with patch.object(compiled_scan, "load_library", lambda: None):
        wanted = _parse(page, shared)
    assert abs(found.content.confidence - wanted.content.confidence) < ROUNDING
    confidence = wanted.content.confidence
    assert replace(found, content=replace(found.content, confidence=confidence)) == wanted


def _parse(page: str, shared: SharedLines) -> Parsed:
    body = page.encode("utf-8", "surrogatepass")
    return parse_body(body, url=URL, content_type="text/html; charset=utf-8", with_blocks=False, shared=shared)


@pytest.mark.parametrize("name", PAGES)
def test_texts_are_equal(name: str) -> None:
    assert_equal_pages(PAGES[name])


TEXTS = st.text(st.characters(codec="utf-8"), max_size=40) | st.sampled_from(
    [
        " ",
        "\xb6",
        "#",
        "Lamps and oil, 2024",
        "The keeper climbs the stairs each evening and lights the lamp.",
        "\u0130",
    ]
)
TAGS = [
    "<p>",
    "<h2>",
    "<pre>",
    "</pre>",
    "<nav>",
    "</nav>",
    "<a href='#x'>",
    "<a href=y>",
    "</a>",
    "<br>",
    "<b>",
    "<i>",
]
TAGS += ["<code>", "</code>", "<footer>", "</footer>", "<ul><li>", "<noscript>", "</noscript>", "<div class=sidebar>"]
TAGS += [
    "</div>",
    "<img src=a alt=b>",
    "<title>t</title>",
    "<script>x</script>",
    "<x-y></x-y>",
    "<script>x = ['/a/b', \"/c/d\", '\\/e\\/f']</script>",
    "<svg onload=x>",
    "<table><tr><td>",
]


@given(st.lists(TEXTS | st.sampled_from(TAGS), max_size=60).map("".join), st.booleans())
@settings(max_examples=200, deadline=None)
def test_texts_of_any_page_are_equal(page: str, has_shared_lines: bool) -> None:
    lines = parse_html(page.encode(), "text/html; charset=utf-8").scan.texts[::3] if has_shared_lines else ()
    assert_equal_pages(page, shared=SharedLines.build(map(hash_text, lines), pages=20))


@pytest.mark.parametrize("charset", ["utf-8", "iso-8859-1", "utf-16", "shift_jis"])
def test_page_in_any_charset_is_parsed_from_the_same_text(charset: str) -> None:
    body = "\ufeffa \xe9 \ufffd \u65e5".encode(charset, "replace") + b"\xff\0"
    markup = parse_html(body, f"text/html; charset={charset}")
    assert markup.data.decode() == markup.source


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    "page",
    ["<pre>x\n</pre>" * 30_000, "<pre>" + "\n" * 2_000_000, "<p>" + "<a href='#x'>#</a>" * 30_000, "<p>x" * 60_000],
    ids=["code", "line ends", "permalinks", "lines"],
)
def test_texts_of_a_hostile_page_are_joined_in_linear_time(page: str) -> None:
    assert _parse(page, SharedLines.build(range(2000), pages=20)).content.kind == "html"
