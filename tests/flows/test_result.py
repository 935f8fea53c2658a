"""The results of crawl runs."""

from collections import Counter
from datetime import UTC, datetime, timedelta

from markdown_it import MarkdownIt

from crawler.app.crawl import CrawlStats, NotablePage, ShiftResult, has_effect
from crawler.app.status import Wait, WaitReason, format_waits_briefly
from crawler.core.change.change import Change
from crawler.core.domain import Domain, Suspension
from crawler.core.domain_settings import DomainSettings
from crawler.core.http.urls import Authority, Url
from crawler.core.page.block import BlockKind
from crawler.store.report import BlockChange, EventKind, FeedItem
from flows.result import escape_markdown, format_state, has_findings, render_link, render_markdown, summarize_shift

NOW = datetime(2026, 1, 2, 8, 40, tzinfo=UTC)
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
        (_, inline, _) = reader.parse(render_link("page", url))
        opened, shown, closed = inline.children or []
        assert (opened.type, shown.content, closed.type) == ("link_open", "page", "link_close")
        assert str(opened.attrs["href"]).replace("%3C", "<").replace("%3E", ">").startswith("http://127.0.0.1/")


def item(url: Url, *edits: BlockChange, title: str = "", version: int = 2) -> FeedItem:
    return FeedItem(
        position=1,
        domain="a.test",
        at=NOW,
        url=url,
        change=EventKind.CHANGED,
        version=version,
        distance_bits=None,
        magnitude=None,
        blocks=edits,
        title=title,
    )


def test_an_artifact_begins_with_the_pages_and_ends_with_a_line_of_figures() -> None:
    found = CrawlStats(visits=9, requests=10, changes=Counter({Change.CHANGED: 3, Change.GONE: 1}), failed=1)
    one, two = Url("http://a.test/one"), Url("http://a.test/two")
    found.notable_pages[Change.GONE] = [NotablePage(Url("http://a.test/old"))]
    found.notable_pages[Change.UNKNOWN] = [NotablePage(Url("http://a.test/slow"), "deadline")]
    found.notable_pages[Change.CHANGED] = [NotablePage(one), NotablePage(two)]
    edit = BlockChange(BlockKind.TEXT, "It costs 12 euros today.", "It costs 9 euros today.")
    changes = {one: item(one, edit, title="The mill <shop>")}
    done = ShiftResult(stats=found, by_domain={"a.test": found})

    said = render_markdown(done, changes, origin="http://127.0.0.1:4280")

    parts = said.split("### ")
    assert parts[0] == ""
    assert [part.splitlines()[0] for part in parts[1:]] == ["Changed", "Gone", "Failed"]
    first, second, more = parts[1].splitlines()[2:5]
    assert first.startswith(
        r"- **The mill \<shop\>** ([difference](<http://127.0.0.1:4280/page?url=http%3A%2F%2Fa.test%2Fone&to=2>),"
        " [page](<http://a.test/one>))"
    )
    assert first.endswith(r"<br>It costs ~~12~~ **9** euros today\.")
    assert "[history](<http://127.0.0.1:4280/page?url=http%3A%2F%2Fa.test%2Ftwo>)" in second
    assert more == "- and 1 more"
    assert parts[3].splitlines()[2].endswith(": no response in time")
    figures = said.splitlines()[-1].replace("\\", "")
    assert figures == "Visited 9 pages of 1 domain: 3 changed, 1 gone, 1 failed; 10 requests in 0.0 s"
    assert " 0 " not in figures
    assert "127.0.0.1:4280" not in render_markdown(done, changes)


def test_a_run_that_finds_nothing_makes_no_artifact() -> None:
    assert not has_findings(shift())
    assert not has_findings(shift(visits=40, requests=40, not_modified=40, changes=Counter({Change.UNCHANGED: 40})))
    assert has_findings(shift(visits=1, failed=1))
    assert has_findings(ShiftResult(stats=CrawlStats(), suspensions={"a.test": Suspension(NOW, "503", rejections=1)}))


def test_the_state_says_what_happened_and_what_waits() -> None:
    found = shift(visits=44, changes=Counter({Change.CHANGED: 3, Change.GONE: 1, Change.UNCHANGED: 40}))
    assert format_state(found, ["64 paced until 09:40Z"]) == "3 changed, 1 gone, 64 paced until 09:40Z"
    assert format_state(shift(visits=40)) == "40 unchanged"
    assert format_state(shift()) == "Nothing was due"
    assert format_state(shift(), ["a.test paused"]) == "a.test paused"
    reasons = {"a.test": "http_503", "b.test": "http_503", "c.test": "no_secret env:KEY is not set"}
    suspensions = {name: Suspension(NOW, reason, rejections=1) for name, reason in reasons.items()}
    assert format_state(ShiftResult(stats=CrawlStats(), suspensions=suspensions)) == (
        "2 domains suspended (503 Service Unavailable), 1 domain suspended (the secret env:KEY is not set)"
    )


def test_waits_are_summed_by_reason_with_the_earliest_end() -> None:
    one, two = (Domain(n, Authority(f"{n}.test"), "http", frozenset(), False, NOW, DomainSettings()) for n in (1, 2))
    soon, late = NOW + timedelta(hours=1), NOW + timedelta(days=2)
    waits = [
        (one, Wait(WaitReason.PACED, late), 60),
        (two, Wait(WaitReason.PACED, soon), 4),
        (one, Wait(WaitReason.PAUSED), None),
        (two, Wait(WaitReason.OUTSIDE_HOURS, late), 1),
        (one, Wait(WaitReason.SUSPENDED, late, "http_503"), None),
        (two, Wait(WaitReason.SUSPENDED, late, "no_secret env:KEY is not set"), None),
    ]
    day = f"{late.astimezone():%Y-%m-%d}"
    paced, paused, outside, overloaded, locked = format_waits_briefly(waits, now=NOW)
    assert paced.startswith("64 paced until ")
    assert f"{soon.astimezone():%Y-%m-%d}" not in paced
    assert paused == "1.test paused"
    assert outside.startswith(f"1 outside crawl hours until {day} ")
    assert overloaded.startswith("1.test suspended until ")
    assert overloaded.endswith(" (503 Service Unavailable)")
    assert locked.endswith(" (the secret env:KEY is not set)")


def test_a_run_without_due_pages_logs_a_line() -> None:
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
    assert second == "13 requests, 2.5 MB received in 4.0 s"
    assert third.startswith("Suspended: a.test until ")
