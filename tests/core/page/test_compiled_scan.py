"""The compiled version of the scan gives the same as the Python version, on any page."""

from collections.abc import Iterator
from pathlib import Path
from random import Random
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from selectolax.lexbor import LexborHTMLParser
from xxhash import xxh3_64_intdigest

from crawler.core.page import compiled_scan, page_cost, scan
from crawler.core.page.reader_choice import choose_reader
from crawler.core.page.text_words import hash_text_words, split_text_words

if "compiled" not in compiled_scan.describe_reader():
    pytest.skip(f"no compiled scan: {compiled_scan.describe_reader()}", allow_module_level=True)

PAGES = {
    "empty": "",
    "boxes": "<main class=a><article><header>A</header><p>b</p></article></main><header>C</header><nav>d</nav>",
    "roles": "<div role=NAVIGATION>a<div role='navigation '>b</div></div><p role=search>c"
    "<p itemprop=x itemtype=y id=z>d",
    "spaces": "<p> a\tb\x0c c\xa0d\u2003e\x1cf\x85g \u3000<b> h </b> i<br> j <div> </div>k",
    "characters": "<p>a\0b\1c\x0ed\x1be\x7ff <b>\2 </b>\3\4 \x10g<svg><title>a\0 b</title>c\0</svg>",
    "marks": "<p>a <b>b <i>c</b> d</i> e<b>f<br>g</b><strong></strong><code> h </code><kbd>i<div>j</div></kbd>k",
    "links": "<p><a href=1> a </a><a href=2><!-- --></a><a href=3></a><a href=4 title=t></a><a href=5 aria-label=l></a>"
    "<a href>e</a><a>f</a><a href=6 rel='x NoFollow'>g</a><a href=7 rel=alternate hreflang=de>h</a><area href=8>",
    "images": "<img src=a alt='b c' content=d><a href=x><img></a><div hidden><img src=e></div>",
    "preformatted": "<pre>a\n  b <b>c</b>\1\n<code class=x>d</code></pre>"
    "<pre id=i><code class=' y '>e</code>f</pre><xmp> g</xmp>",
    "code classes": "<pre>"
    + "<code class=abc></code>" * 600
    + "<pre class=x>"
    + "<code class='\xa0\u65e5 '></code>" * 400,
    "hidden": "<p hidden>a<p style='x:y;DISPLAY :\nnone'>b<p style='display:nonesuch'>c<script>d</script><br>e"
    "<p style='di\u017fplay:none'>f",
    "head": "<html xml:lang=fr><title> a  b </title><title>c</title><meta name=n content=c property=p><meta name=x>"
    "<link rel='prev x' href=1 type=t><link rel=next><base><base href><base href=/b>",
    "titles": "<svg><title>a<b>c</b></title></svg><title>d</title><svg><title>e</title></svg>",
    "frames": "<iframe src=a href=b>x</iframe><iframe src=c></iframe><frame src=d><frameset><frame src=d></frameset>",
    "nested scripts": "<svg><script type=a>x<script>y</script></script><script src=b><script>z</script></script>",
    "long hints": "".join(
        f"<pre id={hint}><code class=b></code></pre>" for hint in ("a" * 5000, "\u65e5" * 999, "\U0001f600" * 1000)
    ),
    "scripts": "<script>a</script><script src=x>b</script><svg><script type=t>c<d>e</d></script></svg>",
    "blank": "<ul></ul><div id=a> <!-- x --> </div><div></div><table id=t></table><main>\xa0</main>"
    "<ol><!----></ol><p id=x></p>",
    "signs": "<input type=PassWord><div id=root>Loading<script>x</script></div><noscript>You need a script</noscript>",
    "filled root": f"<div id=app>{'word ' * 50}</div><section id=__next><a href=x>y</a></section><body id=root>",
    "message": f"<noscript>{'x' * 996} a b c</noscript>"
    "<noscript><p>Please</p> <p>turn on</p> <b>scripts</b></noscript>",
    "hidden until opened": "<p hidden class='x MyAccordion'>a<p hidden id=S:1f>b<p hidden id=S>c<p hidden role=Region>d"
    "<p style=display:none class='tab tabs'>e<p hidden=Until-Found>f<p hidden class='accordio n'>g<p hidden id=xS:>h",
    "custom elements": "<x-a hidden>a</x-a><x-b>b<annotation>c</annotation><my-div class=x>d</my-div></x-b><a:b>e",
    "foreign": "<svg><a href=1 xlink:href=2>x</a><foreignObject><p>y</p></foreignObject><desc>z</desc>"
    "<![CDATA[<q>\0]]></svg>"
    "<math><mi>x</mi><annotation-xml encoding=text/html><p>y</math>",
    "templates": "<template><p>a</template><table><template><td>b</template><tr><td>c",
    "not ASCII": "<p class=\u65e5 id=\xe9>\u65e5\u672c \U0001f600<b>\xe9</b>\ufffd",
}


def assert_equal_scans(page: str) -> None:
    tree = LexborHTMLParser(page)
    assert compiled_scan.scan_tree(tree) == scan.scan_tree(tree)


@pytest.mark.parametrize("name", PAGES)
def test_scan_is_equal(name: str) -> None:
    assert_equal_scans(PAGES[name])


def test_scan_of_many_scripts_ends_at_the_same_character() -> None:
    assert_equal_scans(("<script>\xe9" + "\u65e5a" * 200_000 + "</script>") * 2 + "<script>b</script>")


def test_deep_page_is_scanned_without_recursion() -> None:
    assert_equal_scans("<div><b>" * 5000 + "x")


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    "page",
    ["<svg>" + "<script>" * 200_000, f"<pre id={'a' * 4_000_000}>" + "<code class=x></code>" * 50_000],
    ids=["scripts", "hints"],
)
def test_hostile_page_is_scanned_in_linear_time(page: str) -> None:
    assert compiled_scan.scan_tree(LexborHTMLParser(page)).box_tags


def test_ignored_and_watched_elements_are_equal() -> None:
    tree = LexborHTMLParser("".join(PAGES.values()))
    assert tree.root is not None
    nodes = [node.mem_id for node in tree.root.traverse()]
    random = Random(1)
    for _ in range(50):
        ignored, watched = random.sample(nodes, 3), random.sample(nodes, random.randrange(8))
        found = compiled_scan.scan_tree(tree, ignored=ignored, watched=watched)
        assert found == scan.scan_tree(tree, ignored=ignored, watched=watched)
        assert compiled_scan.scan_tree(tree, ignored=ignored) == scan.scan_tree(tree, ignored=ignored)


NAMES = sorted(
    scan.OPENED_TAGS | {"span", "x-y", "math", "mi", "foreignObject", "template", "frameset", "u", "font", "image"}
)
VALUES = ["", "a", " a  b ", "next", "prev nofollow", "alternate", "de", "password", "root", "search", "banner", "\xa0"]
VALUES += ["display:none", "display : NONE", "\u65e5\xe9", "\0\1", "&#0;&amp;&lt", "/x?y", "robots"]
ATTRIBUTES = [
    "id",
    "role",
    "itemprop",
    "itemtype",
    "alt",
    "aria-label",
    "class",
    "content",
    "hidden",
    "href",
    "hreflang",
]
ATTRIBUTES += [
    "http-equiv",
    "lang",
    "name",
    "property",
    "rel",
    "src",
    "style",
    "title",
    "type",
    "xml:lang",
    "xlink:href",
]
TEXTS = [
    "a",
    "words of text",
    " ",
    "\n",
    "\t\x0c",
    "\xa0",
    "\u2003",
    "\u3000",
    "\x1c",
    "\x85",
    "\0",
    "\1",
    "\2 \3",
    "\x10",
]
TEXTS += [
    "\x1b",
    "\u65e5\u672c",
    "\xe9",
    "\u0301",
    "\U0001f600",
    "\ud800",
    "\ufffd",
    "&nbsp;",
    "&#1;",
    "&#xD800;",
    "&notit;",
]
TEXTS += [
    "<!-- c -->",
    "<!-->",
    "<![CDATA[x\0]]>",
    "<?pi?>",
    "<!doctype html>",
    "</",
    "<",
    ">",
    "=",
    '"',
    "'",
    "<svg>",
    "</svg>",
]

tags = st.sampled_from(NAMES)
attributes = st.tuples(st.sampled_from(ATTRIBUTES), st.sampled_from(VALUES)).map(lambda pair: f" {pair[0]}='{pair[1]}'")
starts = st.tuples(tags, st.lists(attributes, max_size=3)).map(lambda pair: f"<{pair[0]}{''.join(pair[1])}>")
ends = tags.map(lambda tag: f"</{tag}>")
pages = st.lists(st.one_of(starts, st.sampled_from(TEXTS), ends), max_size=40).map("".join)


@given(pages)
@settings(max_examples=400, deadline=None)
def test_scan_of_any_page_is_equal(page: str) -> None:
    assert_equal_scans(page)


MARKUP = [
    "<a",
    "<B",
    "</a",
    "</b>",
    "<p",
    "<svg",
    "</svg>",
    "/>",
    ">",
    "/",
    "=",
    '="',
    "='",
    '"',
    "'",
    " ",
    "\xa0",
    "x",
    "<!--",
]
MARKUP += [
    "-->",
    "--!>",
    "-",
    "!",
    "<script",
    "</SCRIPT",
    "</\u017fcript",
    "<title>",
    "</title",
    "<i\xe9",
    "<",
    "</",
    "<x1>",
    "\ud800",
]


@pytest.fixture(scope="module")
def _low_bounds() -> Iterator[None]:
    """Lower the bounds of the cost in both versions."""
    with patch.multiple(page_cost, FREE_TAGS=-1, TREE_STEPS=600, FORMATTED_NODES=300, MANY_ATTRIBUTES_CHARS=20):
        compiled_scan.forget_library()  # loads the library again
        assert compiled_scan.describe_reader() == "compiled"
        yield
    compiled_scan.forget_library()


@pytest.mark.usefixtures("_low_bounds")
@given(
    st.lists(st.sampled_from(MARKUP), max_size=60).map("".join),
    st.sampled_from(["", " x" * 500, "<u>" * 30, "<s a='>'>" * 9, "<q>" * 40]),
)
@settings(max_examples=400, deadline=None)
def test_affordable_part_of_any_page_is_equal(markup: str, more: str) -> None:
    for page in (markup + more + markup, more + markup * 3):
        assert cut(page) == page[: page_cost.count_affordable_chars(page)]


def cut(page: str) -> str:
    return compiled_scan.cut_to_affordable(page, page.encode("utf-8", "surrogatepass")).decode("utf-8", "surrogatepass")


@pytest.mark.parametrize(
    "page",
    [
        "<b>\xe9" * 40_000,
        "<p " + "a='>' " * 100_000,
        "<p>\xe9" * 250_000,
        "".join(f"<x{n}>" for n in range(7000)),
        "<svg>" + "<script>" * 9000,
    ],
    ids=["formatting", "attributes", "tags", "names", "drawing"],
)
def test_affordable_part_of_a_hostile_page_is_equal(page: str) -> None:
    assert cut(page) == page[: page_cost.count_affordable_chars(page)] != page


@given(
    st.lists(
        st.sampled_from([*TEXTS[:20], "\u30fb", "\u3040", "x_1", "\n", "-", "\xaa", "\uffdc", "1.5", "\u212a"])
    ).map("".join)
)
def test_words_of_any_text_have_equal_hashes(text: str) -> None:
    found, wanted = compiled_scan.hash_words(text, max_words=1000), hash_text_words(text, max_words=1000)
    assert found.hashes.tolist() == wanted.hashes.tolist() == list(map(xxh3_64_intdigest, split_text_words(text)))
    assert found.marks.tolist() == wanted.marks.tolist()


def test_hashes_end_at_the_maximum_number_of_words() -> None:
    assert len(compiled_scan.hash_words("a " * 200_000, max_words=100_000)) == 100_000


@pytest.mark.usefixtures("_forgotten")
def test_missing_library_leaves_pages_to_python() -> None:
    with patch.object(compiled_scan, "get_library_path", lambda: Path("missing.so")):
        assert compiled_scan.describe_reader().startswith("Python, because no C compiler was found")
    tree = LexborHTMLParser("<p>a")
    assert compiled_scan.scan_tree(tree) == scan.scan_tree(tree)
    words = compiled_scan.hash_words("A b", max_words=9)
    assert words.hashes.tolist() == [xxh3_64_intdigest(b"a"), xxh3_64_intdigest(b"b")]


@pytest.mark.usefixtures("_forgotten")
def test_variable_turns_the_library_off() -> None:
    choose_reader("Python")
    assert compiled_scan.describe_reader() == "Python, because RECRAWL_READER is python"


@pytest.mark.usefixtures("_forgotten")
def test_library_that_reads_differently_is_not_used() -> None:
    with patch.object(compiled_scan, "_get_marks", lambda _: 0):
        assert "reads a sample page differently" in compiled_scan.describe_reader()
