"""The output of commands is correct and readable."""

import io
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import typer
from rich.console import Console

from crawler.cli import output
from crawler.cli.domains.register import warn_about_missing_contact
from crawler.cli.values import parse_since
from crawler.core.domain_settings import DomainSettings
from crawler.errors import BadInput
from crawler.format.values import format_instant, format_when
from crawler.settings import get_settings
from crawler.times import parse_instant
from tests.commands import Answer, Recrawl, Site

NOON = datetime(2026, 11, 22, 12, 30, tzinfo=UTC)
ADDRESS = "http://127.0.0.1:25778/runs/flow-run/61ce57a0-f05d-476d-ada3-f8302f34427b"


@pytest.fixture
def narrow(monkeypatch: pytest.MonkeyPatch) -> Console:
    """Return a terminal of 60 columns."""
    console = Console(
        file=io.StringIO(), width=60, force_terminal=True, color_system=None, markup=False, highlight=False
    )
    monkeypatch.setattr(output, "get_stdout", lambda: console)
    return console


def lines(console: Console) -> list[str]:
    assert isinstance(console.file, io.StringIO)
    return [line.rstrip() for line in console.file.getvalue().splitlines()]


def test_a_named_url_is_fetched_first(recrawl: Recrawl, site: Site) -> None:
    recrawl("crawl", site.url, "--allow-private", "--at", "2026-01-01")
    site.asked.clear()

    done = recrawl("crawl", f"{site.url}two", "--pages", "1", "--at", "2026-12-01", "--json")

    assert done.json["visits"] == 1
    assert [path for path in site.asked if path != "/robots.txt"] == ["/two"]


def test_a_page_that_returns_404_is_not_fresh(recrawl: Recrawl, site: Site) -> None:
    recrawl("crawl", site.url, "--allow-private")
    site.answers["/one"] = Answer(status=404)
    recrawl("crawl", f"{site.url}one")

    told = recrawl("explain", f"{site.url}one").out
    fresh = {page["url"]: page["freshness"] for page in recrawl("pages", site.name, "--json").json["pages"]}

    assert "0%: the server returned 404 at" in told
    assert "found 0 changes" not in told
    assert fresh[f"{site.url}one"] == 0
    assert fresh[f"{site.url}two"] > 0.9


def test_a_preview_counts_inbox_entries(recrawl: Recrawl, site: Site) -> None:
    recrawl("crawl", site.url, "--allow-private")
    recrawl("refresh", site.name)

    (plan,) = recrawl("crawl", site.name, "--dry-run", "--json").json["plans"]
    done = recrawl("crawl", site.name, "--json").json

    assert plan["requests"] == done["visits"] == 3


def test_a_refresh_at_another_time_shows_it_and_the_next_command(recrawl: Recrawl, site: Site) -> None:
    recrawl("crawl", site.url, "--allow-private")

    told = recrawl("refresh", site.name, "--at", "2030-01-01").out

    assert f"are due at {format_instant(datetime(2030, 1, 1, tzinfo=UTC))}" in told
    assert f"recrawl crawl {site.name} --at 2030-01-01" in told


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("4711", 4711),
        ("7d", timedelta(days=7)),
        ("today", datetime(2026, 11, 22, tzinfo=UTC)),
        ("Yesterday", datetime(2026, 11, 21, tzinfo=UTC)),
        ("2026-11-20", datetime(2026, 11, 20, tzinfo=UTC)),
        ("2026-11-20T10:00+02:00", datetime(2026, 11, 20, 8, tzinfo=UTC)),
    ],
)
def test_the_feed_begins_at_a_cursor_a_span_a_day_or_an_instant(text: str, meant: object) -> None:
    assert parse_since(text, now=NOON) == meant


def test_an_invalid_since_is_an_error_with_examples() -> None:
    with pytest.raises(typer.BadParameter, match="a day such as yesterday or 2026-11-22"):
        parse_since("lately", now=NOON)


def test_the_address_of_a_run_is_never_broken(narrow: Console) -> None:
    output.show_facts([("Domain", "docs.example.com"), ("Runs", f"{ADDRESS}\n{ADDRESS}"), ("Words", "word " * 30)])

    shown = lines(narrow)
    assert shown[1:3] == [f"Runs    {ADDRESS}", f"        {ADDRESS}"]
    assert shown[0] == "Domain  docs.example.com"
    assert all(len(line) <= 60 for line in shown if ADDRESS not in line)


def test_a_table_that_is_too_wide_is_shown_row_by_row(narrow: Console) -> None:
    names = ["domain", *(f"number {n}" for n in range(9))]

    output.show_table(names, [("docs.example.com", *"123456789")] * 2, right=names[1:])

    shown = lines(narrow)
    assert shown[:3] == ["domain    docs.example.com", "number 0  1", "number 1  2"]
    assert shown.count("domain    docs.example.com") == 2


def test_a_table_that_fits_stays_one(narrow: Console) -> None:
    output.show_table(["url", "visits"], [("http://site.test/" + "a" * 80, "7")], right=["visits"])

    assert "url" in lines(narrow)[0]
    assert "visits" in lines(narrow)[0]


def test_the_home_is_found_from_any_folder_of_its_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("RECRAWL_HOME", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "user"))
    inside = tmp_path / "project" / "a" / "b"
    inside.mkdir(parents=True)

    def home() -> Path:
        get_settings.cache_clear()
        return get_settings().home

    monkeypatch.chdir(inside)
    assert home() == tmp_path / "user" / ".local" / "share" / "recrawl"
    (tmp_path / "project" / ".recrawl").mkdir()
    assert home() == tmp_path / "project" / ".recrawl"
    monkeypatch.setenv("RECRAWL_HOME", "elsewhere")
    assert home() == Path("elsewhere")
    get_settings.cache_clear()


def test_shares_of_more_than_everything_are_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECRAWL_MIN_DISCOVERY_SHARE", "0.8")  # 0.3 of revisits by default
    get_settings.cache_clear()
    with pytest.raises(BadInput, match="RECRAWL_MIN_REVISIT_SHARE: more than 1 together"):
        get_settings()
    get_settings.cache_clear()


def test_crawling_public_sites_without_a_contact_is_remarked(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def warned(contact: str, *, allow_private: bool = False) -> bool:
        monkeypatch.setenv("RECRAWL_CONTACT", contact)
        for remembered in (get_settings, output.get_stderr):
            remembered.cache_clear()
        warn_about_missing_contact(DomainSettings(allow_private=allow_private))
        return "RECRAWL_CONTACT" in capsys.readouterr().err

    assert warned("")
    assert not warned("", allow_private=True)
    assert not warned("https://crawler.example.com")
    get_settings.cache_clear()
    output.get_stderr.cache_clear()


def test_times_are_shown_in_the_local_time_zone_and_relative_to_now(monkeypatch: pytest.MonkeyPatch) -> None:
    at = datetime(2026, 11, 22, 14, 3, tzinfo=UTC)
    monkeypatch.setenv("TZ", "CET-1")
    time.tzset()
    try:
        assert format_instant(at) == "2026-11-22 15:03+01:00"
        assert parse_instant(format_instant(at)) == at
        assert format_when(at, now=at - timedelta(hours=5)) == "2026-11-22 15:03+01:00 (in 5 hours)"
        assert format_when(at, now=at + timedelta(days=20)) == "2026-11-22 15:03+01:00 (20 days ago)"
    finally:
        monkeypatch.undo()
        time.tzset()
    assert format_when(None, now=at) == "never"
