"""Pages as Markdown, read again by a CommonMark parser."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from crawler.core.http.urls import Url
from crawler.core.page.html import parse_html
from crawler.core.page.markdown_text import MAX_DEPTH, render_markdown
from crawler.core.page.scan import ALL_MARKS, PageScan, scan_tree

BASE = Url("https://site.test/guide/start")
PARSER = MarkdownIt("commonmark", {"maxNesting": 100}).enable("table")


def scan(html: str) -> PageScan:
    return scan_tree(parse_html(html.encode(), "text/html; charset=utf-8").tree)


def render(html: str, **options: bool) -> str:
    page = scan(html)
    lines = range(len(page.texts))
    return render_markdown(page, lines, base=BASE, **options).rstrip("\n")


def read_words(markdown: str) -> list[str]:
    """Return the words of a Markdown text without its markup."""
    texts = []
    for token in PARSER.parse(markdown):
        assert token.type not in ("code_block", "hr", "html_block")
        if token.type == "fence":
            texts.append(token.content)
        for child in token.children or ():
            assert child.type != "html_inline" or child.content == "<br>"
            texts.append(child.content if child.type in ("text", "code_inline") else "")
            texts.append("\n" if child.type in ("softbreak", "hardbreak", "html_inline") else "")
        texts.append("\n")
    return "".join(texts).split()


def read_html(html: str) -> str:
    """Return the HTML of a page's Markdown."""
    return str(PARSER.render(render(html)))


@pytest.mark.parametrize(
    ("html", "markdown"),
    [
        ("<p>one<p>two", "one\n\ntwo"),
        ("<p>one<br>two<p>three", "one  \ntwo\n\nthree"),
        ("<h1>One</h1><h3>Two<br>lines</h3>", "# One\n\n### Two lines"),
        ("<h2>Set up<a href=#set-up>¶</a></h2><h2><a href=#x>#</a> Use</h2>", "## Set up\n\n## Use"),
        ("<h2>C #</h2>", "## C \\#"),
        (
            "<blockquote>one<p>two<blockquote>three</blockquote></blockquote>four",
            "> one\n>\n> two\n>\n> > three\n\nfour",
        ),
    ],
    ids=["paragraphs", "line-break", "headings", "permalinks", "hash-at-end", "quotes"],
)
def test_block_is_rendered(html: str, markdown: str) -> None:
    assert render(html) == markdown


@pytest.mark.parametrize(
    ("html", "markdown"),
    [
        ("<ul><li>a<ul><li>b<li>c</ul><li>d</ul>", "- a\n  - b\n  - c\n- d"),
        ("<ol><li>a<p>more</p><ul><li>b</ul><li>c</ol>", "1. a\n\n   more\n\n   - b\n2. c"),
        ("<ol><li><li>b<li>c</ol>", "2. b\n3. c"),
        ("<ul><li><ul><li>a</ul></ul>", "- - a"),
        ("<ul><li>a<ol><li><li>b</ol></ul>", "- a\n\n  2. b"),
        ("<ul><li><h3>a</h3><p>b</ul>", "- ### a\n\n  b"),
        ("<ul><li><pre>a\n\nb</pre><li>c</ul>", "- ```\n  a\n\n  b\n  ```\n- c"),
        ("<ul><li>a<blockquote>b</blockquote></ul>", "- a\n\n  > b"),
        ("<ul><li><a href=#>¶</a><li>b</ul>", "- b"),
        ("<dl><dt>a<dd>b<p>c</p><dt>d<dt>e<dd>f</dl>", "- a\n\n  b\n\n  c\n\n- d\n- e\n\n  f"),
        ("<dl><div><dt>a<dd>b<dl><dt>c<dd>d</dl></div></dl>", "- a\n\n  b\n\n  - c\n\n    d"),
        ("<dl><dd>a<dd>b</dl>", "- a\n- b"),
    ],
    ids=[
        *("nested", "several-blocks", "empty-item-counts", "list-first", "does-not-start-with-1", "heading", "code"),
        *("quote", "only-a-permalink", "definitions", "nested-definitions", "no-terms"),
    ],
)
def test_list_is_rendered(html: str, markdown: str) -> None:
    assert render(html) == markdown


@pytest.mark.parametrize(
    ("html", "markdown"),
    [
        ("<pre>  def f():\n\n    pass  \n\n</pre>", "```\n  def f():\n\n    pass\n```"),
        ("<pre>a<br>  b<br>c</pre>", "```\na\n  b\nc\n```"),
        ("<pre>a *b* &lt;c&gt; <b>d</b></pre>", "```\na *b* <c> d\n```"),
        ("<pre>```\na\n````\n</pre>", "`````\n```\na\n````\n`````"),
        ("<pre><code class='language-python hljs'>a</code></pre>", "```python\na\n```"),
        ("<pre class='brush: js; x'>a</pre>", "```js\na\n```"),
        ("<div class='highlight-pycon notranslate'><div class=highlight><pre>a</pre></div></div>", "```pycon\na\n```"),
        ("<div class='highlight highlight-source-shell'><pre>a</pre></div>", "```shell\na\n```"),
        ("<div class=highlight-default><pre>a</pre></div>", "```\na\n```"),
    ],
    ids=["spaces", "br", "no-escapes", "fence-inside", "code-class", "brush", "sphinx", "github", "default"],
)
def test_code_is_fenced(html: str, markdown: str) -> None:
    assert render(html) == markdown


@pytest.mark.parametrize(
    ("html", "markdown"),
    [
        ("<table><tr><th>a<th>b<tr><td>1<td>2</table>", "| a | b |\n| --- | --- |\n| 1 | 2 |"),
        ("<table><thead><tr><td>a<td>b</thead><tr><td>1<td></table>", "| a | b |\n| --- | --- |\n| 1 |  |"),
        ("<table><tr><td>a<td>b</table>", "|  |  |\n| --- | --- |\n| a | b |"),
        ("<table><tr><th>a<td>b</table>", "|  |  |\n| --- | --- |\n| a | b |"),
        ("<table><tr><th>a<tr><td>1<td>2</table>", "| a |  |\n| --- | --- |\n| 1 | 2 |"),
        (
            "<table><tr><th>a<tr><td>1<br>2<ul><li>3</ul><td>x|y</table>",
            "| a |  |\n| --- | --- |\n| 1<br>2<br>3 | x\\|y |",
        ),
        ("<table><caption>About</caption><tr><th>a<th>b</table>", "About\n\n| a | b |\n| --- | --- |"),
        ("<ul><li><table><tr><th>a<tr><td>b</table></ul>", "- | a |\n  | --- |\n  | b |"),
        ("<table><tr><td>a<td><table><tr><td>b<td>c</table></table>", "a\n\n|  |  |\n| --- | --- |\n| b | c |"),
        ("<table><tr><td>a<td><h2>b</h2></table>", "a\n\n## b"),
        ("<table role=presentation><tr><td>a<td>b</table>", "a\n\nb"),
        ("<table><tr><td><pre>1\n2</pre><td><pre>a\nb</pre></table>", "```\n1\n2\n```\n\n```\na\nb\n```"),
    ],
    ids=[
        *(
            "header",
            "thead",
            "no-header",
            "row-header",
            "short-header",
            "lines-and-pipes",
            "caption",
            "in-list",
            "nested",
        ),
        *("layout", "presentation", "code"),
    ],
)
def test_table_is_rendered(html: str, markdown: str) -> None:
    assert render(html) == markdown


def test_cells_are_padded_on_request_but_not_to_the_width_of_a_huge_one() -> None:
    huge = "x" * 500
    padded = render(f"<table><tr><th>a<th>b<tr><td>long<td>{huge}</table>", pads_tables=True).split("\n")

    assert padded[0] == f"| a    | b{' ' * 39} |"
    assert padded[2] == f"| long | {huge} |"


@pytest.mark.parametrize(
    ("html", "markdown"),
    [
        ("a <b>b</b> <i>c <strong>d</strong></i> <code>e</code>", "a **b** *c **d*** `e`"),
        ("<b> a </b>b<b><br>c</b>", "**a** b  \n**c**"),
        ("<b>a<strong>b</strong></b><b>c</b>", "**abc**"),
        ("a<b>(b)</b>c <b>d</b>", "a(b)c **d**"),
        ("<code>a`b</code> <code>`</code>", "``a`b`` `` ` ``"),
        ("<kbd><kbd>A</kbd>+<kbd>B</kbd></kbd> <code>c<b>d</b>*e*</code><code>f</code>", "`A+B` `cd*e*f`"),
        ("<a href=/a>b <b>c</b></a>", "[b **c**](https://site.test/a)"),
        ("<a href=a?b=(c>d</a>", "[d](<https://site.test/guide/a?b=(c>)"),
        (
            "<a href=/a>[1]</a> [2] wow!<a href=/a>b</a>",
            "[\\[1\\]](https://site.test/a) [2] wow\\![b](https://site.test/a)",
        ),
        ("<a href=/a>b<br>c</a>", "[b](https://site.test/a)  \n[c](https://site.test/a)"),
        ("<a href=/a><code>b</code></a>", "[`b`](https://site.test/a)"),
        ("<code>a <a href=/b>c</a></code>", "`a` [`c`](https://site.test/b)"),
        ("<a href=#b>c</a> <a href=''>d</a> <a href=javascript:e()>f</a>", "c d f"),
        ("<code>&lt;<a href=mailto:a@b.test>a@b.test</a>&gt;</code>", "`<a@b.test>`"),
    ],
    ids=[
        *("emphasis", "spaces-outside", "nested", "no-emphasis-before-punctuation", "backticks", "nested-code", "link"),
        *("parenthesis", "brackets", "link-over-lines", "code-in-link", "link-in-code", "no-target", "mail-in-code"),
    ],
)
def test_inline_element_is_rendered(html: str, markdown: str) -> None:
    assert render(f"<p>{html}") == markdown


def test_images_follow_their_line_on_request() -> None:
    html = "<p>one <img src=a.png alt='A [b]'> two<p><img src=/c.png><p><img src=data:x alt=d>"

    assert render(html) == "one two"
    assert render(html, with_images=True) == (
        "one two ![A \\[b\\]](https://site.test/guide/a.png) ![](https://site.test/c.png)"
    )


@pytest.mark.parametrize(
    "text",
    [
        *(
            "snake_case",
            "a__b",
            "2 * 3",
            "a < b",
            "R&D",
            "[1]",
            "wow!",
            "#tag",
            "-1",
            "1.5",
            "a - b",
            "x > y",
            "C:\\dir",
        ),
        *("a | b", "1st.", "+1", "--option", "~/home", "f(x) = y", "100 %", "a: b"),
    ],
)
def test_text_that_is_no_markdown_is_not_escaped(text: str) -> None:
    assert render(f"<p>{text.replace('&', '&amp;').replace('<', '&lt;')}") == text


@pytest.mark.parametrize(
    "text",
    [
        *("# a", "- a", "+ a", "* a", "> a", ">a", "1. a", "1) a", "---", "===", "***", "* * *", "_ _ _", "~~~", "```"),
        *("*a*", "**a**", "_a_", "__init__", "`a`", "[a](b)", "![a](b)", "[a]: b", "<b>", "</b>", "<!-- a", "a\\*b"),
        *("<a@b.test>", "<http://a.test>", "&amp;", "&#35;", "\\", "a *b c* d", "| --- | --- |", "#", "-", "12."),
    ],
)
def test_text_that_would_be_markdown_is_escaped(text: str) -> None:
    source = text.replace("&", "&amp;").replace("<", "&lt;")
    html = read_html(f"<p>{source}</p><p>a<br>{source}</p><ul><li>{source}</ul>")
    shown = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")

    assert html == f"<p>{shown}</p>\n<p>a<br />\n{shown}</p>\n<ul>\n<li>{shown}</li>\n</ul>\n"


def test_only_chosen_lines_are_rendered() -> None:
    page = scan("<h1>a</h1><ul><li>b<li>c</ul><table><tr><th>d<th>e<tr><td>f<td>g</table>")

    assert render_markdown(page, [0, 2, 4, 6], base=BASE) == "# a\n\n- c\n\n|  | e |\n| --- | --- |\n|  | g |\n"
    assert render_markdown(page, [], base=BASE) == ""


def test_deep_nesting_is_rendered_in_linear_size() -> None:
    for tag in ("blockquote", "ul><li", "ol><li", "div", "table><tr><td", "dl><dd"):
        text = render(f"<{tag}>a" * 1000)
        assert len(text) < 1000 * (MAX_DEPTH * 4 + 4)
        assert text.count("a") == 1000


PIECES = st.lists(
    st.sampled_from(
        [
            *(
                "<p>",
                "</p>",
                "<br>",
                "<ul>",
                "<ol>",
                "<li>",
                "</li>",
                "</ul>",
                "</ol>",
                "<dl>",
                "<dt>",
                "<dd>",
                "</dl>",
            ),
            *(
                "<blockquote>",
                "</blockquote>",
                "<h1>",
                "</h1>",
                "<h2>",
                "</h2>",
                "<div>",
                "</div>",
                "<hr>",
                "<img src=x>",
            ),
            *("<pre>", "</pre>", "<table>", "<tr>", "<td>", "<th>", "</table>", "<thead>", "<tbody>", "<caption>"),
            *(
                "<b>",
                "</b>",
                "<i>",
                "</i>",
                "<code>",
                "</code>",
                "<kbd>",
                "</kbd>",
                "<a href=/x>",
                "<a href=mailto:y>",
                "</a>",
            ),
            *(" ", "\n", "word", "snake_case", "1", "1.", "-", "+", "# ", "*", "**", "_", "__", "`", "```", "~~~", "|"),
            *(
                "[",
                "]",
                "(",
                ")",
                "!",
                "&lt;",
                "&lt;b>",
                "&amp;lt;",
                "\\",
                ">",
                "---",
                "===",
                ": ",
                "é",
                "語",
                "€",
                "\u200b",
            ),
        ]
    ),
    max_size=40,
)


@given(PIECES)
def test_markdown_of_any_page_has_the_words_of_its_lines(pieces: list[str]) -> None:
    page = scan("".join(pieces))
    lines = [ALL_MARKS.sub("", marked) for marked in page.marked]

    assert "".join(read_words(render("".join(pieces)))) == "".join("".join(lines).split())


@given(st.text())
def test_any_text_is_rendered(text: str) -> None:
    assert isinstance(render(text, with_images=True, pads_tables=True), str)


def test_links_may_lose_their_targets_but_not_their_text() -> None:
    page = "<h2>Oil<a href=#oil>¶</a></h2><p>See <a href=/x>the <b>store</b></a> and <img src=/i alt=lamp>"

    assert render(page, with_links=False) == "## Oil\n\nSee the **store** and"
