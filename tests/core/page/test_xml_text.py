"""XML and feeds."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.core.http.urls import Url
from crawler.core.page.document import Document
from crawler.core.page.lists.xml_text import read_xml

HERE = Url("https://example.com/news/feed.xml")

RSS = """<?xml version="1.0" encoding="utf-8"?>
<?xml-stylesheet href="rss.xsl"?>
<rss version="2.0" xmlns:atom="http://www.w3.org/2005/Atom"><channel>
  <title>Bird  news</title><link>https://example.com/</link>
  <atom:link rel="self" href="https://example.com/news/feed.xml"/><atom:link rel="next" href="?page=2"/>
  <lastBuildDate>Sat, 21 Nov 2026 19:00:00 GMT</lastBuildDate><image><link>https://example.com/logo</link></image>
  <item><title>Storks &amp; cranes</title><link>/news/storks</link><guid>https://example.com/?p=7</guid>
    <description><![CDATA[<p>They are <b>back</b>.</p>]]></description><pubDate>Fri, 20 Nov 2026</pubDate></item>
  <item><guid>https://example.com/news/owls</guid></item>
  <item><guid isPermaLink="false">https://example.com/8</guid></item>
  <item><guid>tag:8</guid></item>
</channel></rss>"""

ATOM = """<feed xmlns="http://www.w3.org/2005/Atom" xml:base="/blog/"><title>Blog</title><updated>2026-11-21</updated>
  <link href="https://example.com/home"/><link rel="next" href="2"/>
  <entry xml:base="2026/"><title>One</title><link href="one"/><link rel="alternate" href="one.html"/>
    <link rel="enclosure" href="one.mp3"/><updated>2026-11-20</updated>
    <source><title>Elsewhere</title><link href="https://other.org/"/></source></entry></feed>"""

RDF = """<rdf:RDF xmlns="http://purl.org/rss/1.0/" xmlns:rdf="x" xmlns:dc="y"><channel rdf:about="z"><title>Old</title>
  <link>https://example.com/</link><dc:date>today</dc:date></channel>
  <item rdf:about="a"><title>One</title><link>https://example.com/one</link></item></rdf:RDF>"""


def parsed(source: str) -> Document:
    return read_xml(source, url=HERE)


@pytest.mark.parametrize(
    ("source", "title", "links"),
    [
        (RSS, "Bird news", ("news/feed.xml?page=2", "news/storks", "news/owls")),
        (ATOM, "Blog", ("blog/2", "blog/2026/one", "blog/2026/one.html")),
        (RDF, "Old", ("one",)),
    ],
    ids=["RSS 2.0", "Atom", "RSS 1.0"],
)
def test_feed_links_to_its_entries_and_its_next_page(source: str, title: str, links: tuple[str, ...]) -> None:
    feed = parsed(source)
    assert feed.title == title
    assert feed.links == tuple(f"https://example.com/{link}" for link in links)


def test_text_of_a_feed_is_that_of_its_elements() -> None:
    text = parsed(RSS).text.split("\n")
    assert {"Bird news", "Storks & cranes", "<p>They are <b>back</b>.</p>", "Fri, 20 Nov 2026"} <= set(text)
    assert not any("rss.xsl" in line for line in text)


@pytest.mark.parametrize(("source", "when"), [(RSS, "21 Nov"), (ATOM, "2026-11-21"), (RDF, "today")])
def test_build_date_of_a_feed_is_not_in_its_main_text(source: str, when: str) -> None:
    feed = parsed(source)
    assert feed.main is not None
    assert when in feed.text
    assert when not in feed.main
    assert feed.main.count("\n") == feed.text.count("\n") - 1


def test_date_of_an_entry_is_in_the_main_text() -> None:
    assert "2026-11-20" in (parsed(ATOM).main or "")


@pytest.mark.parametrize(
    "other",
    [
        "<a y='2' x='1'><b>one</b>two</a>",
        "<?xml version='1.0'?>\n<!-- c --><a\n x = '1' y='2'>\n  <b> one </b>\n  two<!-- c --></a><?pi x?>",
        "\n\n<a x='&#49;' y='2'><b><![CDATA[one]]></b>&#x74;wo</a>",
        "<!DOCTYPE a SYSTEM 'a.dtd'><a x='1' y='2' xmlns='z'><b>o<!-- -->ne</b>two</a>",
    ],
)
def test_equivalent_xml_has_equal_text(other: str) -> None:
    assert parsed(other).text == parsed("<a x='1' y='2'><b>one</b>two</a>").text == "x: 1\ny: 2\none\ntwo"


def test_changed_attribute_is_in_the_text() -> None:
    assert parsed("<lamp price='19.99'/>").text != parsed("<lamp price='19.98'/>").text


def test_links_in_other_xml_are_text() -> None:
    assert parsed("<items><item><link>https://example.com/a</link></item></items>") == Document(
        text="https://example.com/a"
    )


def test_malformed_xml_is_read_as_source_from_the_error_on() -> None:
    feed = parsed("<rss><channel><item><link>/a</link></item><item>\n<title>Fish & chips</title>\n<link>/b</link>")
    assert feed.links == ("https://example.com/a",)
    assert feed.text == "/a\n<title>Fish & chips</title>\n<link>/b</link>"


def test_html_entities_are_known_without_declaration() -> None:
    assert parsed("<a>&eacute;&nbsp;&unheard;</a>").text == "é &unheard;"


BOMB = "<!DOCTYPE a [<!ENTITY b 'bbbbbbbb'>{}]><a>&z;</a>".format(
    "".join(f"<!ENTITY {chr(n + 1)} '{f'&{chr(n)};' * 10}'>" for n in range(ord("b"), ord("z")))
)


@pytest.mark.parametrize(
    "source",
    [
        BOMB,
        "<!DOCTYPE a [<!ENTITY x SYSTEM 'file:///etc/passwd'>]><a>&x;</a>",
        "<!DOCTYPE a [<!ENTITY % x SYSTEM 'http://127.0.0.1/x.dtd'>%x;]><a>b</a>",
        "<a>" * 201,
        "<a>" * 1_000_000,
    ],
    ids=["multiplied", "a file", "another server", "nested", "very nested"],
)
def test_xml_built_to_be_expensive_is_read_as_source(source: str) -> None:
    began = time.process_time()
    assert parsed(source) == Document(text=source)
    assert time.process_time() - began < 5  # a hundredth of a second on a quiet machine


TAGS = "<rss> <feed> <entry> <item> </item> <link~href=' '/> <link> </link> <guid> </guid> <updated> <a~xml:base='//['>"
ODD = "<!-- --> <![CDATA[ ]]> &amp; &nbsp; & < > text \0 \ufffe ~ <?a &#0; &#xD800;"
scraps = st.sampled_from([scrap.replace("~", " ") for scrap in f"{TAGS} {ODD}".split(" ")])


@given(st.lists(scraps, max_size=30).map("".join))
def test_any_text_can_be_read(source: str) -> None:
    document = parsed(source)
    for text in (document.title, document.text, document.main or "", *document.links):
        assert "\0" not in text
        text.encode()
