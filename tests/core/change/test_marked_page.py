"""A stored page as safe HTML: what is marked where, and that nothing of the page can act."""

import re
from collections.abc import Sequence
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.core.change.marked_page import mark_page, split_runs
from crawler.core.change.word_diff import PageDiff, RunKind, WordRun, diff_pages, diff_words
from crawler.core.http.urls import Url
from crawler.core.page.outline import extract_blocks
from crawler.core.page.selector_finder import describe_element
from tests.hostile_html import ATTACKS

URL = Url("http://a.example/")
HTML = "text/html; charset=utf-8"
BEFORE = """<title>Mill</title><nav><ul><li><a href=/home>Home</a></ul></nav><h1>The <i>old</i> mill</h1>
<p>It opens at <b>nine</b> in the   morning. <a href="/more">More</a></p><p>Rye is sold on Mondays.</p>
<table><tr><td>flour<td>3.50</table><p>Moved: barley and spelt.</p><ul><li>bran<li>meal</ul><p>End.</p>"""


def show(before: str, after: str) -> str:
    blocks = [extract_blocks(each.encode(), url=URL, content_type=HTML) for each in (before, after)]
    one, other = (tuple(block for block in each if block.text) for each in blocks)
    return mark_page(after.encode(), url=URL, content_type=HTML, diff=diff_pages(one, other))


def edit(*edits: tuple[str, str]) -> str:
    text = BEFORE
    for old, new in edits:
        assert old in text
        text = text.replace(old, new)
    return show(BEFORE, text)


def test_changed_words_are_marked_within_their_elements() -> None:
    html = edit(("<b>nine</b>", "<b>ten</b>"), ("3.50", "3.70"))
    assert '<b><del data-mark="news">nine</del><ins data-mark="news">ten</ins></b> in the   morning' in html
    assert '<td><del data-mark="news">3.50</del><ins data-mark="news">3.70</ins></td>' in html
    assert len(re.findall("<ins", html)) == 2


def test_added_block_is_marked_through_its_inline_elements() -> None:
    html = edit(("</h1>", "</h1><p>New <em>oats</em> here.</p>"))
    marked = '<p><ins data-mark="news">New </ins><em><ins data-mark="news">oats</ins></em>'
    assert f'{marked}<ins data-mark="news"> here.</ins></p>' in html
    assert "<del" not in html


def test_removed_block_is_shown_after_the_block_before_it() -> None:
    html = edit(("<li>meal", ""))
    assert '<li>bran<small data-mark="note"><del data-mark="news">meal</del></small></li>' in html


def test_changes_of_title_and_links_are_notes() -> None:
    html = edit(("Mill", "Mills"), ("/more", "/less"))
    assert html.startswith('<div data-mark="head"><small data-mark="note">title: ')
    note = html.partition('<small data-mark="note">link: ')[2]
    assert note.index("more</del>") < note.index("less</ins>") < note.index("Rye")


def test_moved_block_is_outlined() -> None:
    html = edit(("<p>Moved: barley and spelt.</p>", ""), ("<h1>", "<p>Moved: barley and spelt.</p><h1>"))
    assert '<p data-mark="moved">Moved: barley and spelt.</p>' in html


def test_marks_of_the_page_itself_are_dropped_and_hidden_text_stays_hidden() -> None:
    page = '<p>a <ins data-mark="news">page</ins><p style="display: none">no<details><p>yes</details>'
    html = show(page, page)
    assert "<ins>page</ins>" in html
    assert '<p hidden="">no' in html
    assert '<details open=""><p>' in html


def test_each_link_picks_the_element_that_it_covers() -> None:
    html = mark_page(BEFORE.encode(), url=URL, content_type=HTML, pick_prefix="/blocks?url=x&picked=")
    found = re.findall(r'<(\w+) data-mark="element"><a data-mark="pick" href="/blocks\?url=x&amp;picked=(\d+)"', html)
    picked = [describe_element(BEFORE.encode(), HTML, int(number)) for _, number in found]
    assert [tag for tag, _ in found] == ["li", "h1", "p", "p", "td", "td", "p", "li", "li", "p"]
    assert [each.text if each else "" for each in picked][:6] == [
        *("Home", "The old mill", "It opens at nine in the morning. More", "Rye is sold on Mondays.", "flour", "3.50"),
    ]


def test_link_is_within_an_element_that_is_displayed() -> None:
    page = "<div><p>One<form>Two<p>Three</form><dialog open>Four</dialog></div><form>Five</form>"
    html = mark_page(page.encode(), url=URL, content_type=HTML, pick_prefix="/blocks?picked=")
    found = re.findall(r'<(\w+) data-mark="element"><a data-mark="pick"[^>]* aria-label="(\w+)"', html)
    assert found == [("div", "Two"), ("p", "One"), ("p", "Three")]
    assert html.count('data-mark="pick"') == len(found)


PARSED_IN_TWO_WAYS = (
    "<form><math><mtext></form><form><mglyph><style></math>"
    '<a href="{}" target=_top data-mark=pick aria-label=Log>MX</a>'
)


@pytest.mark.parametrize("link", ["//evil.example/f", "/blocks?picked=1&next=//evil.example", "/logout", "/blocks"])
@pytest.mark.parametrize("prefix", ["", "/blocks?picked="])
def test_link_that_only_the_sanitizer_finds_is_dropped(link: str, prefix: str) -> None:
    page = f"<p>text</p>{PARSED_IN_TWO_WAYS.format(link)}<p>new</p>"
    html = mark_page(page.encode(), url=URL, content_type=HTML, pick_prefix=prefix)
    assert "MX" in html
    assert "evil" not in html
    assert all(re.fullmatch(r"/blocks\?picked=[0-9]+", each) for each in re.findall(r'href="([^"]*)', html))


class Acting(HTMLParser):
    """Collects what may act."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[object] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        allowed = {"data-mark", "dir", "lang", "hidden", "colspan", "rowspan", "start", "open"}
        self.found += [(tag, name, value) for name, value in attrs if name not in allowed]
        if tag in {
            "script",
            "style",
            "link",
            "meta",
            "base",
            "img",
            "svg",
            "math",
            "form",
            "input",
            "button",
            "iframe",
        }:
            self.found.append(tag)


@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS)
@pytest.mark.parametrize("frame", ["{}", "<table><tr><td>{}", "<svg><title>{}", "<math><mtext>{}", "<select>{}"])
def test_nothing_of_a_page_can_act(attack: str, frame: str) -> None:
    after = "<p>text</p>" + frame.format(attack.format(origin="http://127.0.0.1:9")) + "<p>new</p>"
    for html in (show("<p>text</p>", after), mark_page(after.encode(), url=URL, content_type=HTML)):
        acting = Acting()
        acting.feed(html)
        assert not acting.found


@given(st.text(alphabet="ab <>/=\"'pdiv!-&;\0\n", max_size=60), st.text(alphabet="ab <>/pdiv", max_size=60))
def test_any_page_is_accepted(before: str, after: str) -> None:
    show(before, after)
    mark_page(after.encode(), url=URL, content_type=HTML, pick_prefix="/blocks?x=")


@given(st.lists(st.text(alphabet="ab \n\t", max_size=8), min_size=1, max_size=5), st.text(alphabet="abc ", max_size=20))
def test_parts_of_split_runs_are_the_texts(texts: Sequence[str], before: str) -> None:
    line = " ".join("".join(texts).split())
    runs = diff_words(" ".join(before.split()), line)
    parts = list(split_runs(texts, runs))
    assert ["".join(text for kind, text in each if kind is not RunKind.OLD) for each in parts] == list(texts)
    old = ["".join(text for kind, text in each if kind is RunKind.OLD) for each in parts]
    assert "".join(old) == "".join(run.text for run in runs if run.kind is RunKind.OLD)
    new = "".join(text for each in parts for kind, text in each if kind is RunKind.NEW)
    assert "".join(new.split()) == "".join("".join(run.text for run in runs if run.kind is RunKind.NEW).split())


def test_run_without_text_is_ignored() -> None:
    assert list(split_runs(["a"], (WordRun(RunKind.KEPT, ""), WordRun(RunKind.NEW, "a")))) == [[(RunKind.NEW, "a")]]
    assert show("<p>a", "<p>a") == '<div data-mark="head"></div><p>a</p>'
    assert mark_page(b"", url=URL, content_type=HTML, diff=PageDiff()) == ""
