"""Scripts, terminal escapes, Markdown and SQL in crawled titles, URLs and texts are harmless on every page."""

import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import quote

import pytest

from crawler.app.page_list import LISTS
from crawler.core.domain_settings import BY_NAME
from crawler.format.values import sanitize_text
from crawler.server.ui.domain_tabs import Tab
from crawler.server.ui.fields import GROUPS, RULE_FIELDS
from crawler.server.ui.links import get_external_url
from tests.commands import Answer, Recrawl, Site
from tests.server.conftest import Visitor

SCRIPT = "</pre></title><script>alert(1)</script><img src=x onerror=alert(2)>"
ESCAPES = "\x1b[31mred\x1b]0;title\x07\u202egnp.exe\u2066"
MARKDOWN = "[click](javascript:alert(3)) ![x](http://evil.example/x.png)"
SQL = "'; DROP TABLE page; --"
TEMPLATE = "{{ 7 * 7 }} {% include '/etc/passwd' %}"
HEADERS = (("Content-Type", "text/html; charset=utf-8"), ("X-Served-By", f"{SCRIPT} {MARKDOWN} {SQL}"))
ALL = f"{SCRIPT} {ESCAPES} {MARKDOWN} {SQL} {TEMPLATE}"
# The elements of the templates; crawled text can add none.
ELEMENTS = {
    *("html", "head", "meta", "title", "link", "style", "body", "a", "header", "nav", "main", "div", "p", "footer"),
    *("h1", "h2", "h3", "ul", "li", "span", "small", "dl", "dt", "dd", "section", "form", "input", "label", "button"),
    *("article", "bdi", "time", "del", "ins", "table", "caption", "thead", "tbody", "tr", "th", "td", "details"),
    *("summary", "pre", "code", "figure", "figcaption", "fieldset", "legend", "select", "option", "br", "strong"),
    *("textarea", "iframe", "blockquote", "img"),
    *("svg", "path", "g", "text", "circle", "rect"),
}


class Elements(HTMLParser):
    """Collects the elements, attributes and addresses of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.addresses: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        self.addresses += [value or "" for name, value in attrs if name in {"href", "action", "src"}]


def hostile(site: Site, season: str) -> list[str]:
    """Serve hostile pages and return their paths."""
    escaped = ALL.replace("&", "&amp;").replace("<", "&lt;")
    odd = [
        "/%3Cscript%3Ealert(1)%3C/script%3E",
        "/'-alert(1)-'",
        "/x?q=%22onmouseover=alert(1)",
        "/%1B%5B31m",
        "/%E2%80%AEgnp.exe",
    ]
    links = "".join(f'<a href="{path.replace(chr(34), "%22")}">{escaped}</a>' for path in [*odd, "javascript:alert(9)"])
    for n, path in enumerate(["/", *odd]):
        own = f"{escaped} in {season} {'abcdefg'[n] * 4}"
        body = f"<html><title>{own}</title><p>{own}</p>{links}</html>"
        site.answers[path] = Answer(body.encode(), headers=HEADERS)
    return odd


def safe(text: str, *, address: str) -> None:
    """Check that a page has only elements of the templates, no handlers and no script links."""
    found = Elements()
    found.feed(text)
    assert found.tags <= ELEMENTS, found.tags - ELEMENTS
    assert not {name for name in found.attributes if name.startswith("on")}
    assert "style" not in found.attributes
    for each in found.addresses:
        assert each.startswith(("/", "#", address, "http://127.0.0.1:")) or each.partition("#")[0].endswith(".html"), (
            each
        )
    steering = re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", text)
    assert not steering, text[steering.start() - 100 :][:200]
    assert "49" not in re.findall(r"\{\{ 7 \* 7 \}\}|(?<![0-9])49 \{%", text)


@pytest.fixture
def seen_twice(site: Site, recrawl: Recrawl) -> list[str]:
    paths = hostile(site, "summer")
    assert recrawl("crawl", site.url, "--allow-private").code == 0
    hostile(site, "winter")
    assert recrawl("refresh", site.name).code == 0
    assert recrawl("crawl", site.name).code == 0
    return [f"{site.url}{path[1:]}" for path in ["/", *paths]]


def test_crawled_text_is_escaped_on_every_page_and_in_files(
    seen_twice: list[str], site: Site, recrawl: Recrawl, visitor: Visitor, tmp_path: Path
) -> None:
    changes = visitor.get("/changes")
    assert changes.text.count("<article") >= len(seen_twice) - 1
    assert "DROP TABLE page" in changes.words
    name = site.name
    assert (
        "was added" in visitor.send("/rules/new", name=name, pattern=f"/{SCRIPT}", ignore_text=SCRIPT, weight="2").words
    )
    assert "tagged odd" in visitor.send("/domains/tag", domain=name, tag="odd", action="add").words
    tagged = visitor.send("/tags/set", name="odd", group="scope", exclude=f"/{SCRIPT}")
    assert "apply to 1 domain" in tagged.words
    paths = ["/tag?name=odd&group=scope", "/domains?tag=odd", "/changes?tag=odd"]
    paths += ["/", "/domains", "/system", "/changes?kind=added", f"/domains?name={quote(SCRIPT)}"]
    paths += [f"/domain?name={name}&tab={tab.value}" for tab in Tab]
    paths += [f"/domain?name={name}&tab=pages&list={kind}" for kind in (*LISTS, "duplicates")]
    paths += [f"/domain?name={name}&tab=settings&group={group}" for group in GROUPS]
    paths += [f"/search?q={quote(words)}" for words in ("summer", "script", SCRIPT, ESCAPES, TEMPLATE, seen_twice[1])]
    pages = [changes, *map(visitor.get, paths)]
    assert "alert(2)" in pages[paths.index(f"/domain?name={name}&tab=rules") + 1].text
    for url in seen_twice:
        pages += [
            visitor.get(f"/page?url={quote(url)}"),
            visitor.get(f"/page?url={quote(url)}&from=1&to=2&view=sides"),
            visitor.get(f"/blocks?url={quote(url)}"),
            visitor.get(f"/page?url={quote(url)}&from=1&to=2&view=page"),
            visitor.get(f"/blocks?url={quote(url)}&block=2&action=ignore_text&pattern=/"),
            visitor.get(f"/values?url={quote(url)}&selector=p&unit={quote(SCRIPT[:12])}"),
            visitor.get(f"/blocks?url={quote(url)}&version=2&picked=4"),
            visitor.send("/try", url=url),
        ]
    for page in pages:
        assert page.status == 200, page.words
        safe(page.text, address=visitor.address)
    assert recrawl("report", "--html", str(tmp_path / "out")).code == 0
    files = sorted((tmp_path / "out").glob("*.html"))
    assert len(files) >= len(seen_twice) + 3
    for file in files:
        safe(file.read_text(encoding="utf-8"), address="http://127.0.0.1")
    assert visitor.get("/").status == 200, "no table was dropped"


def test_parameters_and_form_fields_are_escaped(crawled: Site, visitor: Visitor) -> None:
    for said in (SCRIPT, SQL, TEMPLATE, ESCAPES, "\x00", "é" * 1500, "%00", "%ff%fe"):
        for path in (
            "/domains?name=",
            "/domain?name=",
            f"/domain?name={crawled.name}&tab=",
            f"/domain?name={crawled.name}&tab=pages&q=",
            f"/domain?name={crawled.name}&tab=pages&after=",
            f"/domain?name={crawled.name}&tab=pages&sort=next&after=",
            f"/domain?name={crawled.name}&tab=changes&since=",
            f"/domain?name={crawled.name}&tab=freshness&range=",
            "/search?q=",
            "/page?url=",
            "/changes?domain=",
            "/changes?before=",
            "/blocks?url=",
            "/values?url=",
            *(f"/values?url={crawled.url}&{name}=" for name in ("selector", "selector=p&unit", "selector=p&pattern")),
            "/notifications/edit?value_name=",
            "/enter?code=",
        ):
            page = visitor.get(f"{path}{quote(said)}")
            assert page.status in {200, 303, 400, 403}, (path, said)
            safe(page.text, address=visitor.address)
        for form in (
            *("/domains/add", "/domains/import", "/domains/set", "/refresh", "/pages/act", "/changes/read"),
            *("/rules/new", "/rules/add", "/rules/remove", "/try", "/values/add", "/values/remove"),
        ):
            page = visitor.send(form, url=said, name=said, pattern=said, text=said, what=said, position=said)
            assert page.status in {200, 400}, (form, said)
            safe(page.text, address=visitor.address)
        typed = dict.fromkeys([*BY_NAME, *(field.name for field in RULE_FIELDS)], said[:300])
        for form in ("/domains/set", "/rules/new"):
            page = visitor.send(form, **typed, name=crawled.name)
            assert page.status == 400, (form, said)
            safe(page.text, address=visitor.address)
        assert visitor.get("/").status == 200
    seen = visitor.send(
        "/rules/add", url=f"{crawled.url}one", action="ignore_text", text=f"{SCRIPT[:80]}", pattern=SCRIPT
    )
    safe(seen.text, address=visitor.address)
    safe(visitor.get(f"/domain?name={crawled.name}&tab=rules").text, address=visitor.address)


@pytest.mark.parametrize(
    "url", ["javascript:alert(1)", "data:text/html,x", " javascript:x", "vbscript:x", "//x", "file:///"]
)
def test_only_http_urls_become_links(url: str) -> None:
    assert get_external_url(url) == ""


def test_control_characters_are_replaced() -> None:
    assert sanitize_text("a\x1b[0m\u202eb\nc\td") == "a\ufffd[0m\ufffdb\nc\td"
