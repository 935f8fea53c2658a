"""The commands changes, diff, versions, show, and pages --at."""

import io
import re
from itertools import product

import pytest
from rich.console import Console

from crawler.cli import marked_text, output
from crawler.cli.pages import versions_output
from tests.commands import Answer, Recrawl, Site

DAYS = ("2099-01-01", "2099-02-01", "2099-03-01")
TEA = {
    DAYS[0]: ("Tea shop", "Green tea costs 4.50 a cup, and every pot of it comes with biscuits.", "We open at nine."),
    DAYS[1]: ("Tea shop", "Green tea costs 4.90 a cup, and every pot of it comes with biscuits.", "We open at nine."),
    DAYS[2]: ("Tea house", "Green tea costs 4.90 a cup, and every pot of it comes with cake.", "We open at nine."),
}


def page(title: str, *lines: str) -> Answer:
    body = "".join(f"<p>{line}</p>" for line in lines)
    return Answer(f"<html><title>{title}</title><main>{body}</main></html>".encode())


def crawl_on_three_days(recrawl: Recrawl, site: Site) -> None:
    """Crawl a site of which one page changes twice, one is gone, and one is gone and restored."""
    site.page("/", "/tea", "/gone", "/back")
    del site.answers["/one"], site.answers["/two"]
    for n, day in enumerate(DAYS):
        site.answers["/tea"] = page(*TEA[day])
        site.answers["/gone"] = page("Old", "An offer of winter that ends soon") if n == 0 else Answer(status=410)
        site.answers["/back"] = page("Pots", "Pots made by hand of clay") if n != 1 else Answer(status=410)
        if n:
            recrawl("refresh", site.name, "--at", day)
        arguments = ("crawl", site.name) if n else ("crawl", site.url, "--allow-private")
        assert recrawl(*arguments, "--at", day).code == 0


@pytest.fixture(scope="module")
def shop(read: Recrawl, shared_site: Site) -> Site:
    """Return a site that was crawled on three days, for tests that only read."""
    crawl_on_three_days(read, shared_site)
    return shared_site


@pytest.fixture
def console(monkeypatch: pytest.MonkeyPatch) -> list[Console]:
    """Replace stdout by terminals; the last one in the list is used."""
    made = [terminal(100)]
    for module in (output, marked_text, versions_output):
        monkeypatch.setattr(module, "get_stdout", lambda: made[-1])
    monkeypatch.setattr(output, "is_terminal", lambda _stream: True)
    return made


def told_by(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def terminal(width: int, *, colour: bool = True) -> Console:
    return Console(
        file=io.StringIO(),
        width=width,
        force_terminal=True,
        color_system="truecolor" if colour else None,
        markup=False,
        highlight=False,
    )


def test_the_newest_change_comes_first_with_title_address_importance_and_its_words(read: Recrawl, shop: Site) -> None:
    done = read("changes")

    heading, *lines = [line.strip() for line in done.out.splitlines() if line.strip()]
    kinds = [line.split()[0] for line in done.out.splitlines() if re.match(r"(changed|gone|restored|added) ", line)]
    at = lines.index(f"{shop.url}tea")
    assert heading == "Changes: 2 changed, 2 gone, 1 restored"
    assert sorted(kinds[:2]) == ["changed", "restored"]
    assert sorted(kinds[2:]) == ["changed", "gone", "gone"]
    assert re.fullmatch(r"changed +Tea house", lines[at - 1])
    assert re.fullmatch(r"2099-03-01 00:00Z \(in \d+ days\), importance [\d.]+", lines[at + 1])
    assert lines[at + 2 : at + 4] == [
        "title  Tea [-shop-]{+house+}",
        "text   …a cup, and every pot of it comes with [-biscuits-]{+cake+}.",
    ]
    assert lines[-1] == "4 pages added: recrawl changes --kind added"
    assert f"recrawl diff {shop.url}tea" in done.complaint


def test_changes_of_a_domain_a_page_what_lies_beneath_and_of_kinds(read: Recrawl, shop: Site) -> None:
    def told(*arguments: str) -> list[tuple[str, str]]:
        found = read("changes", *arguments, "--json").json["changes"]
        return [(item["change"], item["url"].removeprefix(shop.url)) for item in found]

    assert told(f"{shop.url}tea") == [("added", "tea"), ("changed", "tea"), ("changed", "tea")]
    assert told(f"{shop.url}te", "--kind", "changed,gone") == [("changed", "tea"), ("changed", "tea")]
    assert sorted(told(shop.name, "--kind", "gone")) == [("gone", "back"), ("gone", "gone")]
    assert told("--kind", "restored", "--domain", shop.name) == [("restored", "back")]
    assert set(told("--since", "2099-02-15", "--at", "2099-03-02")) == {("restored", "back"), ("changed", "tea")}
    item = read("changes", "--kind", "changed", "--json").json["changes"][-1]
    assert (item["title"], item["moved_to"]) == ("Tea house", None)
    assert item["importance"] > 0


def test_the_heading_shows_the_period_and_the_remark_how_many_more_there_are(read: Recrawl, shop: Site) -> None:
    late = read("changes", "--since", "2099-02-15", "--at", "2099-03-02")
    few = read("changes", "--limit", "1")

    assert late.out.startswith("Changes since 2099-02-15 00:00Z (15 days ago): 1 changed, 1 restored\n")
    assert "4 more with --limit 5" in few.complaint
    assert read("changes", "--since", "1d", "--at", "2099-06-01").out.startswith("No changes since")


def test_figures_stand_behind_why_and_not_before(read: Recrawl, shop: Site) -> None:
    plain, figures = read("changes").out, read("changes", "--why").out
    explained = read("explain", f"{shop.url}tea").out
    why = read("explain", f"{shop.url}tea", "--why").out

    assert "SimHash" not in plain
    assert re.search(r"cursor \d+, version 3, [\d.]+% of the page, SimHash distance \d+ of 64 bits", figures)
    for word in ("the page is due when the value reaches", "Change rate", "Cash", "Method"):
        assert word not in explained
        assert word in why


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("changes", "--kind", "changed,odd"), "'odd' is not a kind of change: use added, changed"),
        (("changes", "--kind", ","), "choose at least one kind of change"),
        (("changes", "nowhere.test"), "nowhere.test is not registered"),
        (("diff", "http://nowhere.test/"), "nowhere.test is not registered"),
        (("diff", "http://nowhere.test/", "--from", "xyz"), "'xyz' is not a version number, a duration such as 7d"),
        (("show", "http://nowhere.test/", "--at", "xyz"), "'xyz' is not a time, a duration such as 7d"),
        (("show", "http://nowhere.test/", "--text", "--html"), "--text and --html cannot be combined"),
        (("show", "http://nowhere.test/", "--at", "1d", "--version", "2"), "--at and --version cannot be combined"),
        (("show", "http://nowhere.test/", "--at", "3"), "'3' is not a time; did you mean --version 3?"),
        (("pages",), "no domain is given"),
        (("pages", "--state", "odd"), "'odd' is not a page state: use one of unfetched, fetched"),
    ],
)
def test_an_invalid_request_is_a_one_line_error(recrawl: Recrawl, arguments: tuple[str, ...], complaint: str) -> None:
    done = recrawl(*arguments)

    assert (done.code, done.out) == (2, "")
    assert complaint in done.complaint


def test_two_versions_are_compared_word_by_word(read: Recrawl, shop: Site) -> None:
    last = read("diff", f"{shop.url}tea")
    whole = read("diff", f"{shop.url}tea", "--from", "1", "--to", "2099-02-15").out
    found = read("diff", f"{shop.url}tea", "--from", "1", "--json").json

    assert last.out.splitlines() == [
        "Tea house",
        f"{shop.url}tea",
        *[line for line in last.out.splitlines() if re.match(r"[-+] version", line)],
        "Blocks: 2 changed, 1 unchanged",
        "  ~ title: Tea [-shop-]{+house+}",
        "  ~ Green tea costs 4.90 a cup, and every pot of it comes with [-biscuits-]{+cake+}.",
        "    We open at nine.",
    ]
    assert "- version 2, 2099-02-01" in last.out
    assert "+ version 3, 2099-03-01" in last.out
    assert "~ Green tea costs [-4.50-]{+4.90+} a cup, and every pot of it comes with biscuits." in whole
    assert (found["from"]["number"], found["to"]["number"]) == (1, 3)
    assert found["diff"]["counts"] == {"changed": 2, "unchanged": 1}
    assert found["diff"]["hunks"][0]["blocks"][0]["runs"] == [
        {"kind": "kept", "text": "Tea "},
        {"kind": "old", "text": "shop"},
        {"kind": "new", "text": "house"},
    ]


def test_a_page_with_one_version_has_nothing_to_compare(read: Recrawl, shop: Site) -> None:
    done = read("diff", f"{shop.url}gone")

    assert done.code == 1
    assert "has only one version, of 2099-01-01 00:00Z" in done.complaint
    assert f"recrawl show {shop.url}gone" in done.complaint


def test_the_versions_of_a_page_are_listed(read: Recrawl, shop: Site) -> None:
    done = read("versions", f"{shop.url}tea")
    found = read("versions", f"{shop.url}tea", "--json").json["versions"]

    assert done.out.splitlines()[0] == f"3 versions of {shop.url}tea"
    rows = [re.split(r"  +", line.strip()) for line in done.out.splitlines()[3:]]
    assert [(row[0], row[1], row[2], row[3], row[-1]) for row in rows] == [
        ("3", "2099-03-01 00:00Z", "current", "changed", "Tea house"),
        ("2", "2099-02-01 00:00Z", "28 days", "changed", "Tea shop"),
        ("1", "2099-01-01 00:00Z", "31 days", "added", "Tea shop"),
    ]
    assert [version["number"] for version in found] == [3, 2, 1]
    assert f"recrawl diff {shop.url}tea" in done.complaint


def test_a_page_is_shown_as_it_is_and_as_it_was(read: Recrawl, shop: Site) -> None:
    now = read("show", f"{shop.url}tea")
    then = read("show", f"{shop.url}tea", "--at", "2099-01-15", "--text")
    html = read("show", f"{shop.url}tea", "--version", "1", "--html")
    headers = read("show", f"{shop.url}tea", "--headers")
    gone = read("show", f"{shop.url}gone")
    document = read("show", f"{shop.url}tea", "--json").json

    assert "comes with cake.\nWe open at nine.\n" in now.out
    assert re.search(r"Version +3, since 2099-03-01 00:00Z", now.out)
    assert then.out == "\n".join(TEA[DAYS[0]][1:]) + "\n"
    assert then.err == ""
    assert html.out.rstrip("\n").encode() == page(*TEA[DAYS[0]]).body
    assert re.search(r"Content-Type +text/html; charset=utf-8", headers.out)
    assert "No other headers of this version are stored" not in headers.complaint
    assert "Server " in headers.out
    assert re.search(r"State +gone since 2099-02-01 .*; this is its last version", gone.out)
    assert (document["version"]["number"], document["state"]) == (3, "fetched")
    assert document["html"].encode() == page(*TEA[DAYS[2]]).body


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("--version", "9"), "has no version 9; its newest is 3: recrawl versions "),
        (("--at", "2020-01-01"), "it was first fetched at 2099-01-01 00:00Z"),
    ],
)
def test_a_missing_version_is_an_error(read: Recrawl, shop: Site, arguments: tuple[str, ...], complaint: str) -> None:
    assert complaint in read("show", f"{shop.url}tea", *arguments).complaint
    assert "no version of" in read("show", f"{shop.url}unknown").complaint


def test_the_site_as_it_was(read: Recrawl, shop: Site) -> None:
    then = read("pages", shop.name, "--at", "2099-02-15", "--json").json["pages"]
    shown = read("pages", shop.name, "--at", "2099-02-15")
    before = read("pages", shop.name, "--at", "2098-01-01")

    assert [(page["url"].removeprefix(shop.url), page["state"], page["version"]) for page in then] == [
        ("", "fetched", 1),
        ("back", "gone", 1),
        ("gone", "gone", 1),
        ("tea", "fetched", 2),
    ]
    assert shown.out.startswith(f"{shop.name} as it was at 2099-02-15 00:00Z: 4 pages\n")
    assert before.out == f"{shop.name} had no pages at 2098-01-01 00:00Z\n"


def test_pages_of_a_state_and_those_that_fail(recrawl: Recrawl, site: Site) -> None:
    crawl_on_three_days(recrawl, site)
    site.answers["/tea"] = Answer(status=404)
    recrawl("crawl", f"{site.url}tea", "--at", "2099-04-01")

    failed = recrawl("pages", "--state", "failed")
    gone = recrawl("pages", site.name, "--state", "gone", "--json").json["pages"]

    assert failed.out.startswith("1 page without a usable response\n")
    assert f"{site.url}tea" in failed.out
    assert "status 404" in failed.out
    assert f"recrawl explain {site.url}tea" in failed.complaint
    assert [page["url"] for page in gone] == [f"{site.url}gone"]
    assert recrawl("pages", "--state", "moved").out == "No page has the state moved\n"


HOSTILE = "\x1b]0;owned\x07\x1b[2J=HYPERLINK(1) \u202egnp.exe [-old-] <script>alert(1)</script>"


def test_text_from_servers_cannot_control_the_terminal(recrawl: Recrawl, site: Site, console: list[Console]) -> None:
    safe = HOSTILE.replace("<", "&lt;")
    site.page("/", "/a")
    site.answers["/a"] = page(f"Title {safe}", f"Some words before {safe}")
    recrawl("crawl", site.url, "--allow-private", "--at", DAYS[0])
    site.answers["/a"] = page(f"Title {safe}", f"Other words after all {safe} and much more of it")
    recrawl("crawl", f"{site.url}a", "--at", DAYS[1])

    said = ""
    for arguments in (
        ("changes", "--diff"),
        ("changes", "--kind", "added"),
        ("diff", f"{site.url}a"),
        ("versions", f"{site.url}a"),
        ("show", f"{site.url}a"),
        ("show", f"{site.url}a", "--html"),
        ("pages", site.name),
        ("pages", site.name, "--at", "2099-01-15"),
        ("explain", f"{site.url}a"),
    ):
        console.append(terminal(100, colour=False))
        assert recrawl(*arguments).code == 0
        said += told_by(console[-1])
    assert "Title" in said
    assert [character for character in said if not character.isprintable() and character != "\n"] == []


def test_it_is_readable_in_narrow_and_wide_terminals(read: Recrawl, shop: Site, console: list[Console]) -> None:
    for width, arguments in product(
        (60, 200),
        (
            ("changes", "--why"),
            ("diff", f"{shop.url}tea", "--from", "1"),
            ("versions", f"{shop.url}tea", "--why"),
            ("show", f"{shop.url}tea"),
            ("pages", shop.name, "--why"),
            ("pages", shop.name, "--at", "2099-02-15"),
            ("pages", "--state", "gone"),
            ("explain", f"{shop.url}tea"),
        ),
    ):
        console.append(terminal(width, colour=False))
        assert read(*arguments).code == 0
        lines = told_by(console[-1]).splitlines()
        assert lines
        broken = [line for line in lines if len(line) > width and "://" not in line]
        assert broken == [], (width, arguments)
        assert "/tea" in "".join(lines) or "gone" in arguments


def test_colours_stand_for_marks_where_there_are_some(read: Recrawl, shop: Site, console: list[Console]) -> None:
    console.append(terminal(100))
    read("diff", f"{shop.url}tea")

    said = told_by(console[-1])
    assert "[-" not in said
    assert "\x1b[9;31mbiscuits\x1b[0m\x1b[1;32mcake\x1b[0m" in said


def test_headers_are_those_of_the_versions_response_without_secrets(recrawl: Recrawl, site: Site) -> None:
    plain = ("Content-Type", "text/html; charset=utf-8")

    def answers(said: str, cache: str) -> None:
        headers = (plain, ("X-Cache", cache), ("Set-Cookie", "id=mill-secret"), ("X-Auth-Token", "mill-secret"))
        site.answers["/"] = Answer(f"<title>Mill</title><p>{said}</p>".encode(), headers=headers)

    def shown(*more: str) -> str:
        return " ".join(recrawl("show", site.url, "--headers", *more).out.split())

    answers("The mill opens at nine.", "first")
    assert recrawl("crawl", site.url, "--allow-private").code == 0
    assert "X-Cache first" in shown()
    answers("The mill opens at nine.", "unchanged")
    recrawl("refresh", site.name)
    recrawl("crawl", site.name)
    assert "X-Cache first" in shown(), "an unchanged page keeps what it has"
    answers("The mill opens at ten.", "second")
    recrawl("refresh", site.name)
    recrawl("crawl", site.name)
    assert "X-Cache second" in shown()
    assert "X-Cache first" in shown("--version", "1")
    document = recrawl("show", site.url, "--json")
    assert ["X-Cache", "second"] in document.json["headers"]["others"]
    assert "mill-secret" not in shown() + document.out


def test_a_cursor_beyond_the_end_is_an_error_and_an_empty_result_has_a_cursor(read: Recrawl, shop: Site) -> None:
    end = read("changes", "--json").json["next"]

    assert read("changes", "--since", "1", "--kind", "deferred", "--json").json == {
        "changes": [],
        "next": end,
        "more": False,
    }
    assert read("changes", "--since", str(end)).code == 0
    for more in ((), ("--follow",), ("--atom",), (shop.name,)):
        done = read("changes", *more, "--since", str(end + 1))
        assert (done.code, done.out) == (2, "")
        assert f"the feed ends at {end}, before cursor {end + 1}" in done.complaint
    told = read("changes", "--since", str(end + 1), "--json")
    assert (told.code, told.json["error"], told.json["ends_at"]) == (2, "cursor_ahead", end)
    assert "before cursor" in told.complaint
