"""Why a domain waits: every surface shows the same reason, and requested pages come first."""

from datetime import UTC, datetime, timedelta

import pytest

from crawler.app.status import Wait, WaitReason, format_wait
from crawler.core.domain import Domain
from crawler.core.domain_settings import DomainSettings
from crawler.core.http.urls import Authority
from tests.commands import Recrawl, Site
from tests.databases import execute

FIRST = "2026-01-01T00:00Z"
AN_HOUR_LATER = "2026-01-01T01:00Z"
NEXT_DAY = "2026-01-02T00:00Z"
SPENT = "has spent its daily budget of 6 requests and continues at 2026-01-02 00:00Z"


def crawl_once(recrawl: Recrawl, site: Site, *, budget: int) -> None:
    """Crawl the three pages and robots.txt with this daily budget."""
    done = recrawl("crawl", site.url, "--allow-private", "--budget", str(budget), "--at", FIRST, "--json")
    assert done.json["visits"] == 3


def test_a_refresh_is_fetched_before_the_pace_of_the_budget_allows_it(recrawl: Recrawl, site: Site) -> None:
    crawl_once(recrawl, site, budget=24)
    recrawl("refresh", site.name, "--at", AN_HOUR_LATER)

    done = recrawl("crawl", "--due", "--at", AN_HOUR_LATER, "--json")

    assert done.json["visits"] == 3
    assert recrawl("report", "--json", "--at", "2026-01-01T02:00Z").json["domains"][0]["spent_today"] == 7


def test_a_spent_budget_delays_a_refresh_and_every_surface_shows_it(recrawl: Recrawl, site: Site) -> None:
    crawl_once(recrawl, site, budget=6)
    refreshed = recrawl("refresh", site.name, "--at", AN_HOUR_LATER)

    scheduled = recrawl("crawl", "--due", "--at", AN_HOUR_LATER)

    assert "Visited" in scheduled.out
    assert f"{site.name} {SPENT}" in scheduled.out
    assert "1 requested page waiting" in scheduled.out
    assert "Nothing was due" not in scheduled.out
    assert "They wait" not in refreshed.out  # two requests were left at that time
    later = ("--at", "2026-01-01T02:00Z")
    surfaces = [
        recrawl("crawl", site.name, *later).out,
        recrawl("crawl", "--due", *later).out,
        recrawl("crawl", site.name, "--dry-run", *later).out,
        recrawl("refresh", site.name, *later).out,
        recrawl("domains", "show", site.name, *later).out,
        recrawl("explain", site.url, *later).out,
        recrawl("report", site.name, *later).err,
    ]
    for said in surfaces:
        assert SPENT in " ".join(said.split()), said
    shown = recrawl("domains", "show", site.name, "--json", *later).json["wait"]
    assert (shown["reason"], shown["until"]) == ("budget_spent", "2026-01-02T00:00:00+00:00")
    assert recrawl("crawl", "--due", "--at", NEXT_DAY, "--json").json["visits"] == 3


def test_unread_lists_are_not_counted_as_requested_pages(recrawl: Recrawl, site: Site, database_url: str) -> None:
    crawl_once(recrawl, site, budget=6)
    recrawl("refresh", site.name, "--at", AN_HOUR_LATER)
    recrawl("crawl", "--due", "--at", AN_HOUR_LATER)
    before = recrawl("domains", "show", site.name, "--at", "2026-01-01T02:00Z").out
    execute(
        database_url,
        "UPDATE page SET version = 0",
        "INSERT INTO url_list (domain_id, key, found_by, found_at) SELECT domain_id, key, 'robots', now() FROM page",
    )

    after = recrawl("domains", "show", site.name, "--at", "2026-01-01T02:00Z").out

    assert "1 requested page waiting" in " ".join(before.split())
    assert SPENT in " ".join(after.split())
    assert "requested page" not in after


def test_a_paced_domain_shows_its_next_time_and_is_crawled_when_named(recrawl: Recrawl, site: Site) -> None:
    recrawl("domains", "add", site.url, "--allow-private", "--budget", "24", "--at", FIRST, "--offline")
    first = recrawl("crawl", "--due", "--at", FIRST, "--json").json

    again = recrawl("crawl", "--due", "--at", "2026-01-01T00:10Z")
    planned = recrawl("crawl", site.name, "--dry-run", "--at", "2026-01-01T00:10Z", "--json").json["plans"][0]
    named = recrawl("crawl", site.name, "--at", "2026-01-01T00:10Z", "--json").json

    assert first["visits"] < 3
    assert f"{site.name} spreads its daily budget over the day and fetches its next page at 2026-01-01 0" in again.out
    assert planned["wait"] is None
    assert planned["requests"] == named["visits"] == 3 - first["visits"]


def test_a_clock_that_was_ahead_is_noticed_and_mended_by_one_command(recrawl: Recrawl, site: Site) -> None:
    recrawl("crawl", site.url, "--allow-private", "--at", "2090-01-01T00:00Z")

    frozen = recrawl("crawl", "--due")
    reported = recrawl("report", site.name)
    mended = recrawl("domains", "reset-clock", site.name)
    again = recrawl("domains", "reset-clock", site.name)
    checked = recrawl("db", "check")
    recrawl("refresh", site.name)
    crawled = recrawl("crawl", "--due", "--json")

    remedy = f"recrawl domains reset-clock {site.name}"
    assert frozen.code == 1
    assert remedy in frozen.complaint
    assert remedy in reported.err
    assert mended.out.startswith(f"{site.name}: visits in the future, up to 2090-01-01")
    assert "nothing changed" in again.out
    assert checked.code == 0, checked.out
    assert (crawled.code, crawled.json["visits"], crawled.json["unchanged"]) == (0, 3, 3)


@pytest.mark.parametrize("reason", WaitReason)
def test_every_reason_has_a_sentence(reason: WaitReason) -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    domain = Domain(1, Authority("a.test"), "http", frozenset(), False, now, DomainSettings())

    ending = format_wait(Wait(reason, now + timedelta(hours=3), "detail"), domain, now=now)
    open_ended = format_wait(Wait(reason), domain, now=now)

    assert "{" not in ending + open_ended
    assert "None" not in ending + open_ended
