"""Looks at URL lists: what a date says of a page, what a list is worth, and what is kept of it."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from crawler.core.change.change import Change, Evidence
from crawler.core.freshness.estimates import PRIOR
from crawler.core.http.response import Fetched
from crawler.core.http.robots import parse_robots
from crawler.core.http.urls import Scope, Url, compute_page_key
from crawler.core.page.lists.dates import ListDate
from crawler.core.page.lists.url_list import UrlList, read_url_list
from crawler.core.visit.lists import (
    MAX_NEWS,
    build_list_visit,
    build_no_list_visit,
    find_signal_time,
    resolve_entries,
    update_list_value,
)
from crawler.core.visit.visit import DomainKnowledge, ListResult, ListStats, State, Target, find_exclusion

NOW = datetime(2026, 11, 23, 12, tzinfo=UTC)
HOUR, DAY = timedelta(hours=1), timedelta(days=1)
HERE = Url("https://example.com/sitemap.xml")
PAGE = Url("https://example.com/a")
KNOWN = DomainKnowledge(
    scope=Scope("example.com", include=("/docs/",), exclude=("/docs/old/", "/old.xml"), max_depth=1),  # type: ignore[arg-type]
    rules=parse_robots(b"User-agent: *\nDisallow: /docs/closed/\nDisallow: /closed.xml"),
    agent="recrawl",
)


def said(date: ListDate, *, before: datetime | None, seen: datetime | None) -> datetime | None:
    return find_signal_time(date, before=before, last_good_at=seen, now=NOW)


def test_a_date_tells_of_a_change_only_where_it_moved_to_after_the_last_look() -> None:
    exact = ListDate(NOW - HOUR)
    assert said(exact, before=None, seen=NOW - 2 * HOUR) == NOW - HOUR
    assert said(exact, before=NOW - DAY, seen=NOW - 2 * HOUR) == NOW - HOUR
    assert said(exact, before=exact.at, seen=NOW - 2 * HOUR) is None  # it has not moved
    assert said(exact, before=NOW, seen=NOW - 2 * HOUR) is None  # it went back
    assert said(exact, before=NOW - DAY, seen=NOW - HOUR / 2) is None  # the look was later
    assert said(exact, before=NOW - DAY, seen=None) is None  # nobody has looked yet


def test_a_day_that_moved_may_be_later_than_the_look_and_one_read_first_has_to_be() -> None:
    today = ListDate(NOW.replace(hour=0), DAY)
    assert said(today, before=NOW - 3 * DAY, seen=NOW - HOUR) == NOW
    assert said(today, before=None, seen=NOW - HOUR) is None
    assert said(today, before=None, seen=NOW - DAY) == NOW


def test_a_date_in_the_future_tells_nothing_but_for_clocks_and_zones() -> None:
    assert said(ListDate(NOW + HOUR), before=NOW - DAY, seen=NOW - HOUR) == NOW
    assert said(ListDate(NOW + 2 * DAY), before=NOW - DAY, seen=NOW - HOUR) is None


def test_hints_of_a_list_that_is_right_as_often_as_chance_are_worth_nothing() -> None:
    assert ListStats().hint_value == pytest.approx(0.2)
    assert ListStats(hints_checked=100, hints_true=100, hints_expected=5.0).hint_value > 0.9
    assert ListStats(hints_checked=1000, hints_true=50, hints_expected=50.0).hint_value < 0.01
    assert ListStats(hints_checked=1000, hints_true=0, hints_expected=50.0).hint_value == 0


def test_a_list_is_worth_what_its_telling_looks_have_told_of_late() -> None:
    known = ListStats(kind="sitemap", reads=1)
    assert update_list_value(ListStats(), 400.0) == 1.0  # the first look says nothing of what will come
    assert update_list_value(known, 0.0) == 1.0  # who tells nothing is asked less since it changes less
    assert update_list_value(known, 6.0) == 6.0
    assert update_list_value(replace(known, informative_reads=7, value=8.0), 0.5) == pytest.approx(8.0 - 7.5 / 8)
    assert update_list_value(known, 10_000.0) == MAX_NEWS


def listed(body: str) -> UrlList:
    return read_url_list(body.encode(), url=HERE, content_type="text/xml")


def test_entries_are_links_of_the_domain_and_others_are_left_out() -> None:
    paths = ("/docs/a", "https://other.org/docs/a", "/blog", "/docs/old/b", "/docs/closed/c")
    entries = listed("".join(("<urlset>", *(f"<url><loc>{path}</loc></url>" for path in paths)))).entries
    links = [
        each and (each.link.url, each.link.exclusion) for each in resolve_entries(entries, depth=1, knowledge=KNOWN)
    ]
    assert links == [
        ("https://example.com/docs/a", ""),
        None,
        ("https://example.com/blog", "not_included"),
        ("https://example.com/docs/old/b", "excluded"),
        ("https://example.com/docs/closed/c", "robots"),
    ]
    too_deep = next(resolve_entries(entries, depth=2, knowledge=KNOWN))
    assert too_deep is not None
    assert too_deep.link.exclusion == "too_deep"


def test_a_list_need_not_match_what_pages_must_and_is_refused_what_they_are() -> None:
    refusals = {
        name: find_exclusion(Url(f"https://example.com/{name}"), depth=0, knowledge=KNOWN, is_list=True)
        for name in ("sitemap.xml", "old.xml", "closed.xml")
    }
    assert refusals == {"sitemap.xml": "", "old.xml": "excluded", "closed.xml": "robots"}


def look(target: Target, body: str, *, new_pages: int = 0) -> tuple[Change, Evidence, Target]:
    """What a look finds, and the target of the next one."""
    found = listed(body)
    answer = Fetched(200, body.encode(), len(body), HOUR / 3600)
    assert found.kind is not None
    visit = build_list_visit(target, answer, found, ListResult(found.kind, new_pages=new_pages), now=NOW)
    assert visit.recipients == () == visit.links
    version = visit.snapshot.version if visit.snapshot else target.version
    known = ListStats(kind=found.kind.value, reads=1)
    after = replace(target, state=State.FETCHED, version=version, list_stats=known, last_good_at=NOW - DAY)
    return visit.change, visit.verdict.evidence, after


def test_a_list_has_changed_where_it_tells_something_and_not_where_its_bytes_differ() -> None:
    target = Target(compute_page_key(HERE), HERE, 0, State.UNFETCHED, PRIOR, list_stats=ListStats())
    one, two = "<urlset><url><loc>/a</loc></url>", "<urlset><url><loc>/a</loc></url><url><loc>/b</loc></url>"
    change, _, target = look(target, one, new_pages=1)
    assert change is Change.ADDED
    assert look(target, one + "<!-- written today -->")[:2] == (Change.UNCHANGED, Evidence.BYTES)
    assert look(target, two)[:2] == (Change.COSMETIC, Evidence.ENTRIES)  # the page was known by a link
    assert look(target, two, new_pages=1)[:2] == (Change.CHANGED, Evidence.ENTRIES)


def test_what_never_was_a_list_is_hardly_asked_for_again_and_what_was_one_soon() -> None:
    answer = Fetched(200, b"<html>", 6, HOUR / 3600)
    never = Target(compute_page_key(HERE), HERE, 0, State.UNFETCHED, PRIOR, list_stats=ListStats())
    visit = build_no_list_visit(never, answer, "no_list", now=NOW)
    assert (visit.state, visit.reason, visit.due_at - NOW) == (State.GONE, "no_list", 30 * DAY)
    _, _, was = look(never, "<urlset><url><loc>/a</loc></url>", new_pages=1)
    visit = build_no_list_visit(was, answer, "no_list", now=NOW)
    assert (visit.state, visit.reason, visit.due_at - NOW) == (State.FETCHED, "no_list", HOUR)
