"""recrawl try: shows what would be compared, and records nothing."""

from pathlib import Path

import psycopg
import pytest

from crawler.fetch.browser import BrowserMissing, find_browser
from tests.commands import Answer, Recrawl, Site

PAGE = "<title>Pumps</title><h1>{head}</h1><p class=clock>It is {time}</p><p class=price>Costs {price}</p>"


def put(site: Site, *, head: str = "Pumps", time: str = "10:15", price: str = "19.99") -> None:
    body = PAGE.format(head=head, time=time, price=price).encode()
    site.answers["/"] = Answer(body)


@pytest.fixture
def crawled(recrawl: Recrawl, site: Site) -> Site:
    put(site)
    assert recrawl("crawl", site.url, "--allow-private").code == 0
    return site


def rows(database_url: str, statement: str) -> list[tuple[object, ...]]:
    with psycopg.connect(database_url) as connection:
        return connection.execute(statement.encode()).fetchall()


def dump(database_url: str) -> list[list[str]]:
    """Return everything that is recorded about pages."""
    tables = ("page", "frontier", "visit", "snapshot", "event", "domain_memory", "inbox", "cash")
    return [sorted(map(str, rows(database_url, f"SELECT * FROM {table}"))) for table in tables]


def test_a_fetched_page_shows_differences_and_which_of_them_count(recrawl: Recrawl, crawled: Site) -> None:
    put(crawled, price="19.98", time="10:20")

    told = recrawl("try", crawled.url, "--json").json
    shown = recrawl("try", crawled.url)

    assert (told["change"], told["evidence"], told["parts"], told["version"]) == ("changed", "blocks", ["text"], 1)
    assert [(each["before"], each["after"], each["is_significant"]) for each in told["differences"]] == [
        ("It is 10:15", "It is 10:20", True),
        ("Costs 19.99", "Costs 19.98", True),
    ]
    assert [block["part"] for block in told["blocks"]] == ["title", "text", "text", "text"]
    assert shown.code == 0
    assert "changed, by blocks: text" in shown.out
    assert "\x1b" not in shown.out


def test_nothing_of_the_page_is_recorded_and_the_day_is_charged(
    recrawl: Recrawl, crawled: Site, database_url: str
) -> None:
    put(crawled, price="5.00")
    before = dump(database_url)
    state = "SELECT spent_requests, lease_token FROM domain_state"
    ((spent, _),) = rows(database_url, state)

    assert recrawl("try", crawled.url).code == 0

    assert dump(database_url) == before
    assert isinstance(spent, int)
    assert rows(database_url, state) == [(spent + 1, None)]


def test_what_it_receives_counts_against_the_budget_of_all_domains(
    recrawl: Recrawl, crawled: Site, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RECRAWL_BYTES_PER_DAY", "1000000000")
    put(crawled, price="5.00")
    ledger = "SELECT spent_bytes FROM ledger"
    of_domain = "SELECT spent_bytes FROM domain_state"
    ((shared,),), ((own,),) = rows(database_url, ledger), rows(database_url, of_domain)
    assert isinstance(shared, int)
    assert isinstance(own, int)

    assert recrawl("try", crawled.url).code == 0

    ((shared_after,),), ((own_after,),) = rows(database_url, ledger), rows(database_url, of_domain)
    assert isinstance(shared_after, int)
    assert isinstance(own_after, int)
    assert shared_after - shared == own_after - own > 0


def test_repeat_shows_what_differs_seconds_later(recrawl: Recrawl, crawled: Site) -> None:
    ticking = iter(range(10, 60))
    pages = crawled.answers

    class Clock(dict[str, Answer]):
        def get(self, path: str, default: Answer | None = None) -> Answer | None:  # type: ignore[override]
            body = PAGE.format(head="Pumps", time=f"11:{next(ticking)}", price="19.99").encode()
            return Answer(body) if path == "/" else pages.get(path, default)

    crawled.answers = Clock()

    told = recrawl("try", crawled.url, "--repeat", "--json").json
    shown = recrawl("try", crawled.url, "--repeat").out

    assert (told["change"], told["evidence"]) == ("cosmetic", "volatile")
    (lesson,) = told["seconds_later"]
    assert lesson["before"].startswith("It is 11:")
    clock = next(block for block in told["blocks"] if block["text"].startswith("It is"))
    assert clock["reason"] == "words"
    assert len(clock["masked"]) == 1
    assert "It is [11:" in shown
    assert "words that differ at every visit" in shown


def test_an_error_page_at_the_second_fetch_is_ignored(recrawl: Recrawl, crawled: Site) -> None:
    pages, asked = crawled.answers, iter(range(100))
    soft_error = b"<title>Checking</title><h1>One moment</h1><p>You are asking too fast, and have to wait.</p>"

    class Blocked(dict[str, Answer]):
        def get(self, path: str, default: Answer | None = None) -> Answer | None:  # type: ignore[override]
            body = PAGE.format(head="Pumps", time="10:15", price="24.99").encode()
            return Answer(soft_error if next(asked) else body) if path == "/" else pages.get(path, default)

    crawled.answers = Blocked()

    told = recrawl("try", crawled.url, "--repeat", "--json").json

    assert (told["change"], told["evidence"]) == ("changed", "blocks")
    assert [(each["before"], each["after"], each["is_significant"]) for each in told["differences"]] == [
        ("Costs 19.99", "Costs 24.99", True)
    ]
    assert told["seconds_later"] == []
    assert all(not block["masked"] for block in told["blocks"])


def test_a_page_that_was_never_seen_is_shown_and_not_admitted(
    recrawl: Recrawl, crawled: Site, database_url: str
) -> None:
    crawled.page("/new", text="never linked")

    told = recrawl("try", f"{crawled.url}new", "--json").json

    assert (told["version"], told["change"], told["differences"]) == (None, "added", [])
    assert rows(database_url, "SELECT count(*) FROM page WHERE url LIKE '%new'") == [(0,)]


def test_boilerplate_is_marked(recrawl: Recrawl, site: Site) -> None:
    for n in range(5):
        site.answers[f"/{n}"] = Answer(f"<nav>Home and docs</nav><p>Page {n} says {n * 7}</p>".encode())
    site.page("/", *(f"/{n}" for n in range(5)))
    recrawl("crawl", site.url, "--allow-private")

    told = recrawl("try", f"{site.url}3", "--json").json

    assert [(block["text"], block["reason"], block["is_masked"]) for block in told["blocks"]] == [
        ("Home and docs", "boilerplate", True),
        ("Page 3 says 21", "", False),
    ]


def test_forbidden_urls_are_not_requested(recrawl: Recrawl, crawled: Site) -> None:
    pausing = recrawl("domains", "pause", crawled.name)
    paused = recrawl("try", crawled.url)
    recrawl("domains", "resume", crawled.name)

    assert pausing.code == 0
    assert (paused.code, crawled.asked.count("/")) == (1, 1)
    assert "is paused" in paused.out
    unknown = recrawl("try", "https://nobody.test/")
    assert unknown.code == 2
    assert "is not registered" in unknown.complaint


def test_robots_txt_and_scope_are_checked_first(recrawl: Recrawl, site: Site) -> None:
    site.answers["/robots.txt"] = Answer(
        b"User-agent: *\nDisallow: /private", headers=(("Content-Type", "text/plain"),)
    )
    site.page("/private/x")
    recrawl("crawl", site.url, "--allow-private", "--exclude", "*.pdf$")

    refused = recrawl("try", f"{site.url}private/x")
    excluded = recrawl("try", f"{site.url}a.pdf", "--json")

    assert (refused.code, excluded.code) == (1, 1)
    assert "robots" in refused.out
    assert excluded.json["problem"] == "excluded"
    assert {"/private/x", "/a.pdf"}.isdisjoint(site.asked)


def test_an_unavailable_page_gives_exit_code_1(recrawl: Recrawl, crawled: Site) -> None:
    done = recrawl("try", f"{crawled.url}nowhere")

    assert done.code == 1
    assert "404" in done.out


def test_a_domain_with_a_spent_budget_is_not_requested(recrawl: Recrawl, crawled: Site) -> None:
    recrawl("domains", "set", crawled.name, "--budget", "1")

    done = recrawl("try", crawled.url)

    assert done.code == 1
    assert "its daily budget" in done.out


@pytest.mark.soak
def test_rules_steer_what_is_compared_and_make_no_page_changed(recrawl: Recrawl, crawled: Site) -> None:
    def news() -> list[str]:
        recrawl("refresh", crawled.name)
        assert recrawl("crawl", "--due").code == 0
        return [each["change"] for each in recrawl("changes", "--json").json["changes"]]

    recrawl("rules", "add", crawled.name, "/", "--ignore", ".clock", "--ignore-text", "Costs")
    put(crawled, time="10:20")
    assert news() == ["added"]
    told = recrawl("try", crawled.url, "--json").json
    assert [(block["text"], block["reason"]) for block in told["blocks"]] == [
        ("Pumps", ""),
        ("Pumps", ""),
        ("It is 10:20", "rule"),
        ("19.99", ""),
    ]
    assert "[It is 10:20]  <- ignored by a rule" in recrawl("try", crawled.url).out

    recrawl("rules", "add", crawled.name, "/", "--watch", ".price")
    put(crawled, time="10:25", head="Tools")
    assert news() == ["added"]
    put(crawled, time="10:25", head="Tools", price="19.98")
    assert news() == ["added", "changed"]

    recrawl("rules", "remove", crawled.name, "/")
    assert news() == ["added", "changed"]


def test_a_place_that_is_none_is_refused(recrawl: Recrawl, crawled: Site) -> None:
    for option, text in (
        ("--ignore", "p["),
        ("--watch", "//p"),
        ("--ignore-text", "("),
        ("--ignore", "xpath://p["),
        ("--watch", "xpath:count(//p)"),
    ):
        done = recrawl("rules", "add", crawled.name, "/", option, text)

        assert done.code == 2
        assert repr(text.removeprefix("xpath:")) in done.complaint
        assert len(done.complaint.splitlines()) == 1
    assert recrawl("rules", "list", crawled.name, "--json").json["rules"] == []


def test_the_rule_that_ignores_a_block_is_named(recrawl: Recrawl, crawled: Site) -> None:
    path = "xpath://p[starts-with(., 'It is')]"
    recrawl("rules", "add", crawled.name, "/", "--ignore", path, "--ignore", "h1", "--ignore-text", "Costs")

    told = recrawl("try", crawled.url, "--json").json
    shown = recrawl("try", crawled.url).out

    by_text = {block["text"]: (block["reason"], block["rule"]) for block in told["blocks"] if block["part"] == "text"}
    assert by_text["It is 10:15"] == ("rule", path)
    assert by_text["Pumps"] == ("rule", "h1")
    assert by_text["19.99"] == ("", "Costs")
    assert f"[It is 10:15]  <- ignored by a rule: {path}" in shown
    assert "19.99  <- a rule ignores part of it: Costs" in shown

    recrawl(
        "rules", "add", crawled.name, "/", "--watch", "xpath://*[contains(., '19.99')][last()]/..//b", "--watch", "h1"
    )
    told = recrawl("try", crawled.url, "--json").json
    assert {block["rule"] for block in told["blocks"] if block["reason"] == "rule"} == {
        "only xpath://*[contains(., '19.99')][last()]/..//b and h1"
    }


def test_the_gain_of_rendering_is_shown_with_a_screenshot(recrawl: Recrawl, crawled: Site, tmp_path: Path) -> None:
    try:
        find_browser()
    except BrowserMissing as missing:
        pytest.skip(str(missing))
    script = b"<script>document.body.append('Seven words that nobody else has said')</script>"
    crawled.answers["/"] = Answer(b"<title>Pumps</title><p>Pumps" + script)

    shown = recrawl("try", crawled.url, "--screenshot", str(tmp_path / "page.png"))
    lost = recrawl("try", crawled.url, "--screenshot", str(tmp_path / "no" / "page.png"))

    assert (
        "1 word and 0 links without scripts, which add 7 words and 0 links; the rendered version is stored" in shown.out
    )
    assert (tmp_path / "page.png").read_bytes().startswith(b"\x89PNG")
    assert lost.code != 0
    assert "cannot be written" in lost.err


def test_a_page_that_only_a_link_named_is_shown_as_it_would_be_compared(recrawl: Recrawl, site: Site) -> None:
    site.answers |= {"/": Answer(b"<title>All</title><a href=/pump>a pump</a>"), "/pump": Answer(PAGE.encode())}
    assert recrawl("crawl", site.url, "--allow-private", "--max-pages", "1").code == 0

    told = recrawl("try", f"{site.url}pump", "--json").json

    assert [(block["part"], block["reason"]) for block in told["blocks"]] == [("title", ""), *[("text", "")] * 3]
