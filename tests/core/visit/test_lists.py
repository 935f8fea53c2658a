"""Visits to URL lists: what a date reveals about a page, the value of a list, and what is stored of it."""

from datetime import UTC, datetime, timedelta

import pytest
from msgspec.structs import replace

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
from crawler.core.visit.state import State
from crawler.core.visit.visit import DomainKnowledge, ListResult, ListStats, Target, find_exclusion

NOW = datetime(2026, 11, 23, 12, tzinfo=UTC)
HOUR, DAY = timedelta(hours=1), timedelta(days=1)
HERE = Url("https://example.com/sitemap.xml")
PAGE = Url("https://example.com/a")
KNOWN = DomainKnowledge(
    scope=Scope("example.com", include=("/docs/",), exclude=("/docs/old/", "/old.xml"), max_depth=1),  # type: ignore[arg-type]
    rules=parse_robots(b"User-agent: *\nDisallow: /docs/closed/\nDisallow: /closed.xml"),
    agent="recrawl",
)


def find_time(date: ListDate, *, before: datetime | None, seen: datetime | None) -> datetime | None:
    return find_signal_time(date, before=before, last_good_at=seen, now=NOW)


def test_date_is_a_signal_only_if_it_moved_past_the_last_visit() -> None:
    exact = ListDate(NOW - HOUR)
    assert find_time(exact, before=None, seen=NOW - 2 * HOUR) == NOW - HOUR
    assert find_time(exact, before=NOW - DAY, seen=NOW - 2 * HOUR) == NOW - HOUR
    assert find_time(exact, before=exact.at, seen=NOW - 2 * HOUR) is None  # the date has not moved
    assert find_time(exact, before=NOW, seen=NOW - 2 * HOUR) is None  # the date moved back
    assert find_time(exact, before=NOW - DAY, seen=NOW - HOUR / 2) is None  # the visit was later
    assert find_time(exact, before=NOW - DAY, seen=None) is None  # not visited yet


def test_moved_day_may_include_the_visit_and_first_day_must_be_after_it() -> None:
    today = ListDate(NOW.replace(hour=0), DAY)
    assert find_time(today, before=NOW - 3 * DAY, seen=NOW - HOUR) == NOW
    assert find_time(today, before=None, seen=NOW - HOUR) is None
    assert find_time(today, before=None, seen=NOW - DAY) == NOW


def test_date_far_in_the_future_is_ignored() -> None:
    assert find_time(ListDate(NOW + HOUR), before=NOW - DAY, seen=NOW - HOUR) == NOW
    assert find_time(ListDate(NOW + 2 * DAY), before=NOW - DAY, seen=NOW - HOUR) is None


def test_hints_no_better_than_chance_have_no_value() -> None:
    assert ListStats().hint_value == pytest.approx(0.2)
    assert ListStats(hints_checked=100, hints_true=100, hints_expected=5.0).hint_value > 0.9
    assert ListStats(hints_checked=1000, hints_true=50, hints_expected=50.0).hint_value < 0.01
    assert ListStats(hints_checked=1000, hints_true=0, hints_expected=50.0).hint_value == 0


def test_value_of_a_list_is_the_mean_of_recent_informative_reads() -> None:
    known = ListStats(kind="sitemap", reads=1)
    assert update_list_value(ListStats(), 400.0) == 1.0  # the first read does not count
    assert update_list_value(known, 0.0) == 1.0  # a list that reveals nothing is visited less because it changes less
    assert update_list_value(known, 6.0) == 6.0
    assert update_list_value(replace(known, informative_reads=7, value=8.0), 0.5) == pytest.approx(8.0 - 7.5 / 8)
    assert update_list_value(known, 10_000.0) == MAX_NEWS


def listed(body: str) -> UrlList:
    return read_url_list(body.encode(), url=HERE, content_type="text/xml")


def test_entries_on_other_hosts_are_skipped() -> None:
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


def test_include_patterns_do_not_apply_to_lists_but_exclusions_do() -> None:
    refusals = {
        name: find_exclusion(Url(f"https://example.com/{name}"), depth=0, knowledge=KNOWN, is_list=True)
        for name in ("sitemap.xml", "old.xml", "closed.xml")
    }
    assert refusals == {"sitemap.xml": "", "old.xml": "excluded", "closed.xml": "robots"}


def revisit(target: Target, body: str, *, new_pages: int = 0) -> tuple[Change, Evidence, Target]:
    """Return the findings of a visit, and the target of the next one."""
    found = listed(body)
    response = Fetched(200, body.encode(), len(body), HOUR / 3600)
    assert found.kind is not None
    visit = build_list_visit(target, response, found, ListResult(found.kind, new_pages=new_pages), now=NOW)
    assert visit.recipients == () == visit.links
    version = visit.snapshot.version if visit.snapshot else target.version
    known = ListStats(kind=found.kind.value, reads=1)
    after = replace(target, state=State.FETCHED, version=version, list_stats=known, last_good_at=NOW - DAY)
    return visit.change, visit.verdict.evidence, after


def test_list_has_changed_only_if_it_is_informative() -> None:
    target = Target(compute_page_key(HERE), HERE, 0, State.UNFETCHED, PRIOR, list_stats=ListStats())
    one, two = "<urlset><url><loc>/a</loc></url>", "<urlset><url><loc>/a</loc></url><url><loc>/b</loc></url>"
    change, _, target = revisit(target, one, new_pages=1)
    assert change is Change.ADDED
    assert revisit(target, one + "<!-- written today -->")[:2] == (Change.UNCHANGED, Evidence.BYTES)
    assert revisit(target, two)[:2] == (Change.COSMETIC, Evidence.ENTRIES)  # the page was known by a link
    assert revisit(target, two, new_pages=1)[:2] == (Change.CHANGED, Evidence.ENTRIES)


def test_url_that_never_was_a_list_is_rarely_revisited() -> None:
    response = Fetched(200, b"<html>", 6, HOUR / 3600)
    never = Target(compute_page_key(HERE), HERE, 0, State.UNFETCHED, PRIOR, list_stats=ListStats())
    visit = build_no_list_visit(never, response, "no_list", now=NOW)
    assert (visit.state, visit.reason, visit.due_at - NOW) == (State.GONE, "no_list", 30 * DAY)
    _, _, was = revisit(never, "<urlset><url><loc>/a</loc></url>", new_pages=1)
    visit = build_no_list_visit(was, response, "no_list", now=NOW)
    assert (visit.state, visit.reason, visit.due_at - NOW) == (State.FETCHED, "no_list", HOUR)
