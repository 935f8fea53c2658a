"""The results of crawl runs."""

from collections import Counter
from datetime import UTC, datetime, timedelta

from markdown_it import MarkdownIt

from crawler.app.crawl import CrawlStats, NotablePage, ShiftResult, has_effect
from crawler.core.change.change import Change
from crawler.core.domain import Suspension
from crawler.core.http.urls import Url
from flows.result import escape_markdown, render_link, render_markdown, summarize_shift

HOSTILE = [
    "<script>alert(1)</script>",
    "![x](http://evil.example/pixel)",
    "[click](javascript:alert(1))",
    "<http://evil.example>",
    "| a | b |\n|---|---|\n| c | d |",
    "# heading\n- item\n1. item",
    "**bold** _it_ `code` ~~gone~~ $x$ &lt;b&gt;",
    "http://evil.example/auto",
    "\x1b[31mred\x1b[0m",
]


def shift(**found: object) -> ShiftResult:
    return ShiftResult(stats=CrawlStats(**found))  # type: ignore[arg-type]


def test_text_from_servers_is_escaped() -> None:
    reader = MarkdownIt("gfm-like", {"html": True, "linkify": False})
    for words in HOSTILE:
        tokens = reader.parse(escape_markdown(words))
        assert [token.type for token in tokens] == ["paragraph_open", "inline", "paragraph_close"], words
        assert {child.type for child in tokens[1].children or ()} <= {"text", "text_special"}, words
        shown = "".join(child.content for child in tokens[1].children or ())
        assert shown == " ".join(words.split())


def test_a_link_leads_to_its_page_whatever_the_url_contains() -> None:
    reader = MarkdownIt("gfm-like", {"html": True, "linkify": False})
    for path in ("plain", "a)b](x", "a_b*c", "q?x=[y](z)&<b>", "long" * 100):
        url = Url(f"http://127.0.0.1/{path}")
        (_, inline, _) = reader.parse(render_link(url))
        opened, *shown, closed = inline.children or []
        assert (opened.type, closed.type) == ("link_open", "link_close")
        assert str(opened.attrs["href"]).replace("%3C", "<").replace("%3E", ">").startswith("http://127.0.0.1/")
        assert {each.type for each in shown} <= {"text", "text_special"}


def test_an_artifact_names_the_pages_by_what_was_found_and_counts_the_rest() -> None:
    found = CrawlStats(visits=9, requests=10, changes=Counter({Change.CHANGED: 3, Change.GONE: 1}), failed=1)
    found.reasons["deadline"] = 1
    found.notable_pages[Change.CHANGED] = [NotablePage(Url("http://a.test/one")), NotablePage(Url("http://a.test/two"))]
    found.notable_pages[Change.GONE] = [NotablePage(Url("http://a.test/old"))]
    found.notable_pages[Change.UNKNOWN] = [NotablePage(Url("http://a.test/slow"), "deadline")]

    said = render_markdown(ShiftResult(stats=found, by_domain={"a.test": found}))

    parts = said.split("### ")
    assert [part.splitlines()[0] for part in parts[1:]] == ["Changed", "Gone", "Failed"]
    assert parts[1].count("- [") == 2
    assert "- and 1 more" in parts[1]
    own = render_markdown(ShiftResult(stats=found), origin="http://127.0.0.1:4280")
    assert "([history](<http://127.0.0.1:4280/page?url=http%3A%2F%2Fa.test%2Fone>))" in own
    assert parts[3].rstrip().endswith(": no response in time")


def test_a_run_without_due_pages_logs_a_line_and_shows_no_artifact() -> None:
    assert not has_effect(shift())
    assert summarize_shift(shift()) == ["Nothing was due"]


def test_a_run_is_summarized_in_three_lines() -> None:
    found = CrawlStats(visits=12, requests=13, received_bytes=2_500_000, changes=Counter({Change.CHANGED: 2}))
    until = datetime(2026, 1, 2, tzinfo=UTC)
    done = ShiftResult(
        stats=found, by_domain={"a.test": found}, suspensions={"a.test": Suspension(until, "503", rejections=1)}
    )
    found.elapsed = timedelta(seconds=4)

    first, second, third = summarize_shift(done)

    assert first == "Visited 12 pages of 1 domain: 2 changed"
    assert second == "13 requests, 2.5 MB received in 4.0 s; 0 B saved"
    assert third.startswith("Suspended: a.test until ")
