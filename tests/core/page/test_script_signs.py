"""Signs in a page's HTML that its scripts write a part of it."""

import pytest

from crawler.core.http.urls import Url
from crawler.core.page.content import extract_content
from crawler.core.page.script_signs import ScriptSign

TEXT = (
    "<p>" + "This page tells a story of its own, from its beginning to its end, and leaves nothing out. " * 5 + "</p>"
)
RUN = "<script src=/app.js></script>"


def signs(body: str) -> set[ScriptSign]:
    found = extract_content(body.encode(), url=Url("http://site.test/a"), content_type="text/html; charset=utf-8")
    return set(found.script_signs)


@pytest.mark.parametrize(
    ("body", "sign"),
    [
        ("<div id=root></div>", ScriptSign.SHELL),
        (f"{TEXT}<div id=app><i></i>Loading</div>", ScriptSign.EMPTY_ELEMENT),
        (f"{TEXT}<ul class=results> </ul>", ScriptSign.EMPTY_ELEMENT),
        (f"{TEXT}<table><thead><tr><th>Price<tbody></tbody></table>", ScriptSign.EMPTY_ELEMENT),
        (f"{TEXT}<div id=products></div>", ScriptSign.EMPTY_ELEMENT),
        (f"{TEXT}<product-list from=/x> </product-list>", ScriptSign.EMPTY_ELEMENT),
        (f"{TEXT}<p>Loading...</p>", ScriptSign.PLACEHOLDER),
        (f"{TEXT}<div aria-busy=true>x</div>", ScriptSign.PLACEHOLDER),
        (f"{TEXT}<h1>{{{{ product.title }}}}</h1>", ScriptSign.PLACEHOLDER),
        (f"{TEXT}<noscript><p>Please switch your scripts on, dear reader.</noscript>", ScriptSign.NOSCRIPT),
        (f"{TEXT}<script>const all = ['/p/1', '/p/2', '/p/3']</script>", ScriptSign.DATA_LINKS),
        (f'{TEXT}<script type=application/json>["\\/p/1", "\\/p/2", "\\/p/3"]</script>', ScriptSign.DATA_LINKS),
        (f"{TEXT}<script>{'x = 1;' * 20_000}</script>", ScriptSign.LITTLE_TEXT),
    ],
    ids=[
        "root",
        "root_that_loads",
        "list",
        "table",
        "named_block",
        "custom_element",
        "loading",
        "busy",
        "template",
        "noscript",
        "program",
        "json",
        "mostly_program",
    ],
)
def test_missing_part_shows_in_the_html(body: str, sign: ScriptSign) -> None:
    assert sign in signs(f"<body>{body}{RUN}")
    if "<script" not in body:
        assert not signs(f"<body>{body}")  # without a script, nothing fills it


@pytest.mark.parametrize(
    "body",
    [
        TEXT,
        f"{TEXT}<div class=clearer></div><div id=cookie-banner></div><div id=modal-root></div>",
        f"{TEXT}<noscript><img src=/count.gif></noscript>",
        f"{TEXT}<p>Loading and saving of files is told of elsewhere.",
        f"{TEXT}<div id=app><p>{TEXT}</div>",
        f"{TEXT}<a href=/p/1>1</a><a href=/p/2>2</a><a href=/p/3>3</a><script>['/p/1', '/p/2', '/p/3']</script>",
        f"{TEXT}<script>['/x.js', '/y.css', '/api/z', '/static/w']</script>",
    ],
    ids=["text", "furniture", "counter", "words", "written_root", "links", "files"],
)
def test_complete_page_with_scripts_shows_no_sign(body: str) -> None:
    assert not signs(f"<body>{body}{RUN}")
