"""Content extraction from bodies of all kinds."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.core.http.urls import Url
from crawler.core.page.content import HtmlEnd, PageContent, extract_content
from crawler.core.page.media_type import detect_kind

HERE = Url("https://example.com/docs/a.html")


def html(markup: str, content_type: str = "text/html; charset=utf-8", robots_tag: str | None = None) -> PageContent:
    return extract_content(markup.encode(), url=HERE, content_type=content_type, robots_tag=robots_tag)


# Text


@pytest.mark.parametrize(
    ("markup", "text"),
    [
        ("<p>one</p><p>two</p>", "one\ntwo"),
        ("<p>one <b>two</b>three</p>", "one twothree"),
        ("<p>one\n  two\t three</p>", "one two three"),
        ("<div>a<p>b</p>c</div>d", "a\nb\nc\nd"),
        ("one<br>two<br/>three", "one\ntwo\nthree"),
        ("<ul><li>one<li>two</ul>", "one\ntwo"),
        ("<table><tr><td>1<td>2<tr><td>3</table>", "1\n2\n3"),
        ("<b>one</b> <i>two</i>", "one two"),
        ("<p>19<span>.</span>99&nbsp;&euro;</p>", "19.99 €"),
        ("<p>a &amp; b &lt;c&gt; &#x41;</p>", "a & b <c> A"),
        ("<script>var a=1</script><style>p{}</style><p>seen</p><noscript>no</noscript>", "seen"),
        ("<p>seen</p><noscript><p>in a block</p></noscript><template><p>no</p></template>", "seen"),
        ("<p hidden>no</p><div style='color:red; DISPLAY : none'><p>no</p></div>seen", "seen"),
        ("<div hidden role=tabpanel>seen</div><div style='display:none' id=S:1>streamed</div>", "seen\nstreamed"),
        ("<title>no</title><p>seen</p><!-- no --><textarea>no</textarea>", "seen"),
        ("<p>seen</p><svg><title>no</title><text>12 %</text></svg>", "seen\n12 %"),
        ("<pre>a\n  b</pre>", "a b"),
        ("<details><summary>s</summary>d</details><select><option>1<option>2</select>", "s\nd\n1\n2"),
        ("<x-tag>a<y-tag>b</y-tag></x-tag>", "ab"),
        ("<p>unclosed <b>and <i>nested", "unclosed and nested"),
        ("", ""),
        ("   ", ""),
        ("<frameset><frame src=a></frameset>", ""),
    ],
)
def test_text_is_what_a_reader_sees_block_by_block(markup: str, text: str) -> None:
    assert html(markup).text == text


def test_one_digit_of_a_price_changes_the_text() -> None:
    shop = "<nav><a href=/>Home</a></nav><main><h1>Lamp</h1><p class=price>{}</p></main><footer>&copy; us</footer>"
    assert html(shop.format("19.99")).text != html(shop.format("19.98")).text
    assert html(shop.format("19.99")).main != html(shop.format("19.98")).main


def test_attribute_order_and_whitespace_do_not_affect_the_text() -> None:
    one = html('<div id="a" class="b">\n  <p>Some   text</p>\n</div>')
    two = html("<div class=b id=a><p>Some text</p></div>")
    assert (one.text, one.main) == (two.text, two.main)


def test_main_text_excludes_boilerplate_around_an_article() -> None:
    article = "".join(f"<p>Sentence {n} of a long article about the life of birds in winter.</p>" for n in range(20))
    menu = "".join(f"<li><a href=/{n}>Topic {n}</a></li>" for n in range(10))
    page = html(f"<body><nav class=menu><ul>{menu}</ul></nav><article><h1>Birds</h1>{article}</article></body>")
    assert "Topic 3" in page.text
    assert "Topic 3" not in page.main
    assert "Sentence 19" in page.main


def test_main_text_is_the_whole_text_if_nearly_all_is_boilerplate() -> None:
    menu = "".join(f"<li><a href=/{n}>A long title of page {n}</a></li>" for n in range(50))
    page = html(f"<body><nav class=menu><ul>{menu}</ul></nav><p>Hello.</p></body>")
    assert page.main == page.text


# Title, language, canonical


def test_title_is_the_pages_own() -> None:
    assert html("<svg><title>icon</title></svg><title> The\n page &amp; more </title><title>other</title>").title == (
        "The page & more"
    )
    assert html("<p>none").title == ""
    assert len(html(f"<title>{'x' * 5000}</title>").title) == 1024


def test_language_is_the_declared_one() -> None:
    assert html("<html lang=' de-AT '><p>x").language == "de-AT"
    assert html("<html xml:lang=fr><p>x").language == "fr"
    assert html("<html lang><p>x").language == ""


def test_canonical_url_is_absolute_and_normalized() -> None:
    page = html("<base href=/base/><link rel='x Canonical' href='b?utm_source=y#z'><link rel=canonical href=c>")
    assert page.canonical == "https://example.com/base/b"
    assert html("<link rel=canonical href='javascript:1'>").canonical is None


# Links


def test_links_are_distinct_absolute_and_in_page_order() -> None:
    page = html(
        """<link rel="stylesheet" href="style.css"><link rel=icon href=i><link rel="next" href="?page=2">
        <a href="b.html#part">b</a> <a href=b.html>again</a><map><area href="/c"></map>
        <a href="mailto:me@example.com">me</a> <a href="javascript:x()">x</a> <a href>here</a> <a name=x>no</a>
        <iframe src="//other.org/frame"></iframe> <a href="http://EXAMPLE.com:80/d">d</a> <a href="  e e  ">e</a>"""
    )
    assert page.links == (
        "https://example.com/docs/a.html?page=2",
        "https://example.com/docs/b.html",
        "https://example.com/c",
        HERE,
        "https://other.org/frame",
        "http://example.com/d",
        "https://example.com/docs/e%20e",
    )


def test_frames_are_links() -> None:
    page = html("<frameset cols='1,2'><frame src=menu.html><frame src=main.html></frameset>")
    assert page.links == ("https://example.com/docs/menu.html", "https://example.com/docs/main.html")


@pytest.mark.parametrize(
    ("base", "target"),
    [
        ("/other/", "https://example.com/other/x"),
        ("http://elsewhere.org/a/b", "http://elsewhere.org/a/x"),
        ("deeper/", "https://example.com/docs/deeper/x"),
        ("data:text/plain,", "https://example.com/docs/x"),
        ("", "https://example.com/docs/x"),
    ],
)
def test_base_element_applies_to_links(base: str, target: str) -> None:
    assert html(f"<base href='{base}'><base href='/ignored/'><a href=x>x</a>").links == (target,)


def test_nofollow_links_are_left_out() -> None:
    page = html("<a href=a rel=nofollow>a</a><a href=b rel='ugc NoFollow'>b</a><a href=c rel=noopener>c</a>")
    assert page.links == ("https://example.com/docs/c",)


@pytest.mark.parametrize(
    ("content", "target"),
    [
        ("0; url=b.html", "https://example.com/docs/b.html"),
        ("5;URL='/b'", "https://example.com/b"),
        ('0,url="/b"junk', "https://example.com/b"),
        ("0 /b", "https://example.com/b"),
        ("3", None),
        ("", None),
        ("30; url=https://example.com/docs/a.html", None),
        ("0;url=javascript:x", None),
        ("0;url=", None),
    ],
)
def test_refresh_to_another_page_is_a_link(content: str, target: str | None) -> None:
    quote = "'" if '"' in content else '"'
    page = html(f"<meta http-equiv=Refresh content={quote}{content}{quote}>")
    assert page.refresh == target
    assert page.links == ((target,) if target else ())


@pytest.mark.parametrize(
    ("content", "is_at_once"),
    [
        ("0;url=/b", True),
        ("00.9; url=/b", True),
        ("1;url=/b", False),
        (";url=/b", False),
        ("0", False),
        ("9" * 5000 + ";url=/b", False),
        ("0;url=/docs/a.html", False),
        ("0;url=javascript:x", False),
    ],
)
def test_refresh_without_delay_is_instant(content: str, is_at_once: bool) -> None:
    assert html(f"<meta http-equiv=refresh content='{content}'>").is_instant_refresh is is_at_once


@pytest.mark.parametrize(
    ("body", "content_type"), [(b"<p>wait", "text/html"), (b"wait", "text/plain"), (b"%PDF-", "application/pdf")]
)
def test_refresh_header_is_a_link_of_any_document(body: bytes, content_type: str) -> None:
    url = Url("https://example.com/a/b")
    waits = extract_content(body, url=url, content_type=content_type, refresh="5; url=../next")
    at_once = extract_content(body, url=url, content_type=content_type, refresh="0;URL='https://example.com/next'")
    nowhere = extract_content(body, url=url, content_type=content_type, refresh="30")
    assert (waits.refresh, waits.is_instant_refresh) == ("https://example.com/next", False)
    assert "https://example.com/next" in waits.links
    assert at_once.is_instant_refresh
    assert (nowhere.refresh, nowhere.is_instant_refresh) == (None, False)


def test_refresh_header_precedes_refresh_in_markup() -> None:
    body = b"<base href=/base/><meta http-equiv=refresh content='0;url=late'>"
    found = extract_content(body, url=Url("https://example.com/a"), content_type="text/html", refresh="9;url=early")
    assert (found.refresh, found.is_instant_refresh) == ("https://example.com/early", False)


def test_refresh_inside_noscript_is_ignored() -> None:
    assert html("<head><noscript><meta http-equiv=refresh content='0;url=/nojs'></noscript></head>").refresh is None


# Robots


@pytest.mark.parametrize(
    ("meta", "header", "noindex", "nofollow"),
    [
        ("", None, False, False),
        ("noindex", None, True, False),
        ("NoIndex, NOFOLLOW", None, True, True),
        ("none", None, True, True),
        ("all", "nofollow", False, True),
        ("", "noindex, nofollow", True, True),
        ("", "otherbot: noindex, nofollow", False, False),
        ("", "noindex, otherbot: nofollow", True, False),
        ("", "unavailable_after: 25 Jun 2010 15:00:00 PST, nofollow", False, True),
        ("", "*: noindex", True, False),
    ],
)
def test_robots_directives_of_a_page(meta: str, header: str | None, noindex: bool, nofollow: bool) -> None:
    page = html(f"<meta name=Robots content='{meta}'><a href=b>b</a>", robots_tag=header)
    assert (page.noindex, page.nofollow) == (noindex, nofollow)
    assert page.links == ("https://example.com/docs/b",)


def test_pdf_has_robots_directives_in_its_header() -> None:
    page = extract_content(b"%PDF-1.7", url=HERE, content_type="application/pdf", robots_tag="noindex")
    assert (page.kind, page.noindex, page.nofollow) == ("pdf", True, False)


# Charsets


@pytest.mark.parametrize(
    ("body", "content_type", "charset", "text"),
    [
        ("\ufeff<p>ä".encode(), "text/html; charset=latin1", "utf-8", "ä"),
        ("<p>ä".encode("utf-16"), "text/html", "utf-16-le", "ä"),
        ("\ufeff<p>ä".encode("utf-16-be"), "text/html", "utf-16-be", "ä"),
        ("<p>ä".encode(), "text/html; charset=UTF-8", "utf-8", "ä"),
        ("<p>ä€".encode("cp1252"), "text/html;charset=ISO-8859-1", "cp1252", "ä€"),
        ("<p>ä".encode("cp1252"), 'text/html; charset="windows-1252"', "cp1252", "ä"),
        ("<meta charset=koi8-r><p>Привет".encode("koi8-r"), "text/html", "koi8-r", "Привет"),
        (
            "<meta http-equiv=Content-Type content='text/html; charset=windows-1251'><p>Привет".encode("cp1251"),
            "text/html",
            "cp1251",
            "Привет",
        ),
        ("<meta charset=shift_jis><p>①髙橋".encode("cp932"), "text/html", "cp932", "①髙橋"),
        ("<meta charset=gb2312><p>镕基".encode("gb18030"), "text/html", "gb18030", "镕基"),
        ("<meta charset=utf-16><p>ä".encode(), "text/html", "utf-8", "ä"),
        ("<meta charset=nonsense><p>ä".encode(), "text/html", "utf-8", "ä"),
        ("<p>ä".encode(), "text/html; charset=nonsense", "utf-8", "ä"),
        ("<p>naïve café, déjà vu".encode("cp1252"), "text/html", "cp1252", "naïve café, déjà vu"),
        (b"<p>\xff\xfe\xfd bad", "text/html; charset=utf-8", "utf-8", "\ufffd\ufffd\ufffd bad"),
        ("<?xml version='1.0' encoding='koi8-r'?><a>Привет</a>".encode("koi8-r"), "text/xml", "koi8-r", None),
    ],
)
def test_charset_is_detected_as_in_browsers(body: bytes, content_type: str, charset: str, text: str | None) -> None:
    page = extract_content(body, url=HERE, content_type=content_type)
    assert page.charset == charset
    assert page.text == text if text is not None else "Привет" in page.text


# Kinds


@pytest.mark.parametrize(
    ("body", "content_type", "kind"),
    [
        (b"<p>x", "text/html", "html"),
        (b"<p>x", "application/xhtml+xml", "html"),
        (b"", "text/html", "html"),
        (b"%PDF-1.4", "text/html", "pdf"),
        (b"%PDF-1.4", "application/pdf", "pdf"),
        (b"not so", "application/pdf", "binary"),
        (b"<\0?\0x\0m\0l\0", "text/xml", "xml"),
        (b"\x89PNG\r\n", "image/png", "binary"),
        (b"hello", "text/plain", "text"),
        (b"hello\x00\x01", "text/plain", "binary"),
        ("hello".encode("utf-16"), "text/plain", "text"),
        (b"p { }", "text/css", "text"),
        (b"{}", "application/json; charset=utf-8", "json"),
        (b"{}", "application/ld+json", "json"),
        (b"<rss/>", "application/rss+xml", "xml"),
        (b"<?xml version='1.0'?><html xmlns='x'>", "application/xml", "html"),
        (b"  <!DOCTYPE html><p>x", "", "html"),
        (b"\xef\xbb\xbf<html>", "application/octet-stream", "html"),
        (b"<?xml version='1.0'?><a/>", "", "xml"),
        (b"just words", "", "text"),
        (b"\x00\x01\x02", "", "binary"),
        (b"", "", "text"),
        (b"MZ", "application/x-msdownload", "binary"),
    ],
)
def test_kind_follows_the_header_unless_the_bytes_differ(body: bytes, content_type: str, kind: str) -> None:
    assert detect_kind(body, content_type) == kind
    assert extract_content(body, url=HERE, content_type=content_type).kind == kind


def test_plain_text_is_kept() -> None:
    page = extract_content(b"a  b:\t<p>\r\n\r\n c ", url=HERE, content_type="text/plain")
    assert page.text == page.main == "a b: <p>\nc"
    assert page.links == ()


def test_json_is_read_value_by_value() -> None:
    assert extract_content(b'{"b": 1, "a": "<p>"}', url=HERE, content_type="application/json").text == "a: <p>\nb: 1"
    page = extract_content(
        b"<feed><title>t</title><updated>now</updated></feed>", url=HERE, content_type="application/atom+xml"
    )
    assert (page.title, page.text, page.main) == ("t", "t\nnow", "t")


def test_binary_has_no_text() -> None:
    assert extract_content(b"\x89PNG\r\n\x1a\n words", url=HERE, content_type="image/png") == PageContent(kind="binary")


# Arbitrary input

types = st.sampled_from(
    [
        "text/html",
        "text/html; charset=utf-16",
        "text/plain",
        "application/xml",
        "application/json",
        "application/pdf",
        "",
    ]
)
MARKUP = b"<p> </p> <a~href= 'x' > < <title> <!-- --> <svg> <table> <select> <script> <template> <br> <style> <b>"
ODD = b"&#0; &#xD800; \x00 \xff\xfe <base~href='//[' <meta~charset=utf-7> \xed\xa0\x80 \xef\xbb\xbf text~ <frameset>"
HEADS = (
    b"<meta~http-equiv=refresh~content='0;url=\x00'> <link~rel=canonical~href='\x00'> <noscript> <html~lang='\x00\xff'>"
)
scraps = st.sampled_from([scrap.replace(b"~", b" ") for scrap in b" ".join((MARKUP, ODD, HEADS)).split(b" ")])


@given(st.one_of(st.lists(scraps, max_size=30).map(b"".join), st.binary(max_size=300)), types)
def test_any_bytes_are_read_and_storable(body: bytes, content_type: str) -> None:
    page = extract_content(body, url=HERE, content_type=content_type, robots_tag=None)
    for text in (page.title, page.text, page.main, page.language, page.charset, *page.links):
        assert "\x00" not in text
        text.encode("utf-8")
    assert page.text == "\n".join(line for line in (" ".join(line.split()) for line in page.text.splitlines()) if line)


MEGABYTE = 1_000_000
COSTLY = {
    "open divisions": "<div>a" * (MEGABYTE // 6),
    "nested paragraphs": "<div><p>some words here to look like an article</p>" * (MEGABYTE // 50),
    "closed divisions": "<div>" * (MEGABYTE // 11) + "</div>" * (MEGABYTE // 11),
    "lists": "<ul><li>a" * (MEGABYTE // 9),
    "attributes": "<div " + " ".join(f"a{n}=1" for n in range(MEGABYTE // 9)) + ">x",
    "formatting": "<p>" + "".join(f"<font a={n}>" for n in range(5000)) + "<p>x" * 200_000,
    "open tags": "<a " * (MEGABYTE // 3),
    "comments": "<!--" * (MEGABYTE // 4),
    "scripts": "<script>" * (MEGABYTE // 8),
    "self-closed": "<div/>" * (MEGABYTE // 6),
    "quotes": "<a ='" * (MEGABYTE // 5),
    "less-than": "<" * MEGABYTE,
    "one word": "a" * MEGABYTE,
    "space": " \n" * (MEGABYTE // 2),
}


@pytest.mark.parametrize("markup", COSTLY.values(), ids=COSTLY.keys())
def test_every_page_is_parsed_in_bounded_time(markup: str) -> None:
    began = time.process_time()
    page = html(f"<p>first words</p><a href=first>x</a>{markup}")
    assert time.process_time() - began < 15  # under 3 s on a quiet machine; some of these took minutes
    assert page.text.startswith("first words")
    assert page.links[0] == "https://example.com/docs/first"


def test_small_page_takes_bounded_memory() -> None:
    page = html("<p>" + "".join(f"<font a={n}>" for n in range(490)) + "<p>x" * 490)
    assert page.text.count("x") == 490


def test_long_honest_page_is_read_in_full() -> None:
    rows = "".join(f"<tr><td>{n}<td><a href='{n}.html'>row <b>{n}</b></a><td><img src=x>" for n in range(20_000))
    items = "".join(f"<li>item {n}<p>with a paragraph<br>and a break" for n in range(20_000))
    script = "<script>for (i=0;i<n;i++) if (a<b) document.write('<div><div>')</script>" * 500
    page = html(f"<div><div><table>{rows}</table></div><ul>{items}</ul></div>{script}<p>the end")
    assert page.text.endswith("the end")
    assert len(page.links) == 20_000


# Truncated bodies and password fields


@pytest.mark.parametrize(
    ("markup", "ending"),
    [
        ("<html><body><p>one</p></body></html>", HtmlEnd.CLOSED),
        ("<html><body><p>one</p></BODY ></html>\n<!-- from a cache -->\n", HtmlEnd.CLOSED),
        ("<p>one</p><p>two", HtmlEnd.OPEN),
        ("<html><body><p>one</p><p cla", HtmlEnd.TRUNCATED),
        ("<html><body><p>one</", HtmlEnd.TRUNCATED),
        ("", HtmlEnd.OPEN),
    ],
)
def test_page_that_ends_inside_a_tag_is_truncated(markup: str, ending: HtmlEnd) -> None:
    assert html(markup).html_end is ending


def test_only_an_actual_field_is_a_password_field() -> None:
    assert html("<form><INPUT name=p TYPE='Password'></form>").has_password_field
    assert not html("<p>password: <input type=text name=password><!-- <input type=password> -->").has_password_field
    assert not html(
        "<script>'<input type=password>'</script><template><input type=password></template>"
    ).has_password_field
