"""Moves that may be outages, and other visits that bring no page."""

from collections import Counter
from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from crawler.core.change.change import Change
from crawler.core.freshness.visit_terms import VisitTerms
from crawler.core.http.response import FailureReason, Fetched, NotModified, Unreached
from crawler.core.http.urls import Url, compute_page_key
from crawler.core.page.content import PageContent
from crawler.core.visit.lifecycle import (
    BULK_REDIRECT_PAGES,
    REVISIT_GONE_AFTER,
    MoveTarget,
    build_excluded_visit,
    compute_redirect_deferral,
    confirm_move,
    count_redirects_to_new,
)
from crawler.core.visit.links import compute_redirect_key, find_canonical, resolve_links
from crawler.core.visit.state import State
from crawler.core.visit.visit import Target, Visit
from tests.core.visit.test_visit import DAY, KNOWN, NOW, ROOT, after, fetched, html, looked, seen, target

BULK = MoveTarget(other_pages=BULK_REDIRECT_PAGES - 1)
HOME = fetched(status=301, location=Url(ROOT))


def moved(before: Target, *, at: datetime = NOW, move_target: MoveTarget = BULK) -> Visit:
    return confirm_move(looked(before, HOME, at=at), move_target)


def test_fifth_page_that_redirects_to_one_target_does_not_move() -> None:
    before = seen()

    alone, bulk = moved(before, move_target=MoveTarget(other_pages=BULK_REDIRECT_PAGES - 2)), moved(before)

    assert (alone.change, alone.state) == (Change.MOVED, State.MOVED)
    assert (bulk.change, bulk.state, bulk.reason) == (Change.UNKNOWN, State.FETCHED, "bulk_redirect")
    kept = after(bulk)
    assert (kept.version, kept.validators, kept.rate_estimate, kept.outlinks) == (
        before.version, before.validators, before.rate_estimate, before.outlinks
    )  # fmt: skip
    assert bulk.recipients is None


def test_page_of_a_bulk_redirect_is_gone_after_a_week() -> None:
    visit = moved(seen())
    visits = [visit]
    while visit.state is State.FETCHED:
        visit = moved(after(visit), at=visit.due_at)
        visits.append(visit)

    assert [(look.at - NOW) / DAY for look in visits] == [0, 1, 3, 7]
    assert (visit.change, visit.moved_to) == (Change.GONE, None)
    assert moved(after(visit), at=visit.due_at).change is Change.UNCHANGED


def test_visits_in_quick_succession_do_not_confirm_a_bulk_redirect() -> None:
    visit = moved(seen())
    for n in range(1, 60):
        visit = moved(after(visit), at=NOW + n * timedelta(hours=5))

    assert visit.state is State.FETCHED


def test_page_that_returns_from_a_bulk_redirect_is_unchanged() -> None:
    away = after(moved(seen()))

    visit = looked(away, NotModified(elapsed=timedelta(0)), at=NOW + DAY)

    assert (visit.change, visit.failures) == (Change.UNCHANGED, 0)


def test_gone_page_stays_gone_in_a_bulk_redirect() -> None:
    gone = after(looked(seen(), fetched(status=410)))

    visit = moved(gone, at=NOW + DAY)

    assert (visit.change, visit.state) == (Change.UNCHANGED, State.GONE)


def test_page_without_a_version_is_not_part_of_a_bulk_redirect() -> None:
    assert moved(target()).state is State.MOVED


def test_moved_page_stays_moved_if_others_follow() -> None:
    there = after(moved(seen(), move_target=MoveTarget()))

    assert (moved(there, at=NOW + DAY).change, moved(there, at=NOW + DAY).state) == (Change.UNCHANGED, State.MOVED)


def test_move_to_an_existing_page_needs_a_second_visit() -> None:
    before = seen()
    beside = MoveTarget(first_seen_at=NOW - 9 * DAY)

    once = moved(before, move_target=beside)
    too_soon = moved(after(once), move_target=beside, at=NOW + timedelta(minutes=5))
    twice = moved(after(once), move_target=beside, at=once.due_at)

    assert (once.state, once.reason) == (State.FETCHED, "redirect_to_existing")
    assert too_soon.state is State.FETCHED
    assert (twice.change, twice.state) == (Change.MOVED, State.MOVED)
    assert moved(before, move_target=MoveTarget(first_seen_at=NOW)).state is State.MOVED


@pytest.mark.parametrize("before", [seen(), target()], ids=["known", "new"])
def test_redirect_loops_are_failures_with_growing_waits(before: Target) -> None:
    circle = MoveTarget(is_loop=True)

    once = moved(before, move_target=circle)
    twice = moved(after(once), move_target=circle, at=once.due_at)

    assert (once.change, once.reason, once.moved_to) == (Change.UNKNOWN, "redirects_in_a_circle", None)
    assert once.state is State.FETCHED
    assert once.due_at - once.at < twice.due_at - twice.at


@given(
    others=st.integers(0, 1000),
    seen_since=st.none() | st.timedeltas(timedelta(0), 900 * DAY),
    is_circle=st.booleans(),
    days=st.lists(st.floats(0.01, 40), max_size=12),
)
def test_no_target_of_a_move_discards_what_was_learned(
    others: int, seen_since: timedelta | None, is_circle: bool, days: list[float]
) -> None:
    before = page = seen()
    move_target = MoveTarget(others, None if seen_since is None else NOW - seen_since, is_circle)
    at = NOW
    for gap in days:
        at += gap * DAY
        visit = moved(page, at=at, move_target=move_target)
        assert at < visit.due_at <= at + page.terms.max_interval
        page = after(visit)

    assert (page.version, page.rate_estimate, page.validators) == (
        before.version,
        before.rate_estimate,
        before.validators,
    )


@pytest.mark.parametrize(
    "visit",
    [
        looked(seen(), NotModified(elapsed=timedelta(0))),
        looked(seen(), fetched(html("<p>new"))),
        looked(seen(), fetched(status=404)),
        looked(seen(), fetched(status=302, location=Url(ROOT))),
    ],
    ids=["304", "200", "404", "302"],
)
def test_visit_without_a_move_stays_as_it_is(visit: Visit) -> None:
    assert confirm_move(visit, BULK) == visit
    assert visit.led_to is not None or confirm_move(visit, replace(BULK, is_loop=True)) == visit


def test_temporary_redirect_loop_is_a_failure_and_rarely_retried_without_a_version() -> None:
    circle = MoveTarget(is_loop=True)
    response = fetched(status=302, location=Url(f"{ROOT}other"))
    kept = confirm_move(looked(seen(), response), circle)
    never = confirm_move(looked(replace(target(), failures=2), response), circle)

    assert (kept.state, kept.reason, kept.failures) == (State.FETCHED, "redirects_in_a_circle", 1)
    assert never.reason == "redirects_in_a_circle"
    assert never.due_at - never.at == REVISIT_GONE_AFTER


def test_bulk_redirect_out_of_the_domain_is_recognized() -> None:
    away = looked(seen(), fetched(status=301, location=Url("http://parked.test/")))

    bulk = confirm_move(away, BULK)

    assert (away.moved_to, confirm_move(away, MoveTarget()).state) == (None, State.MOVED)
    assert (bulk.change, bulk.state, bulk.reason) == (Change.UNKNOWN, State.FETCHED, "bulk_redirect")


def test_login_page_with_return_address_is_one_target_for_all_pages() -> None:
    one, other = (target(url=Url(f"{ROOT}{name}")) for name in ("one", "two?page=2"))
    sign_on = "http://sign-on.test/login?back="

    assert compute_redirect_key(one, Url(f"{sign_on}%2Fone")) == compute_redirect_key(
        other, Url(f"{sign_on}{ROOT}two%3Fpage=2")
    )
    assert compute_redirect_key(one, Url("http://new.test/item?no=1")) != compute_redirect_key(
        other, Url("http://new.test/item?no=2")
    )


@pytest.mark.parametrize("status", [302, 303, 307])
def test_temporary_redirect_keeps_the_links_and_is_retried_soon(status: int) -> None:
    before = seen()
    soft_error = looked(before, fetched(status=status, location=Url(ROOT + "login")))

    assert soft_error.links is not None
    assert [link.url for link in soft_error.links] == [ROOT + "login"]
    assert soft_error.recipients == before.outlinks != ()
    assert (soft_error.external_links, soft_error.failures) == (None, 1)
    assert soft_error.due_at - NOW == timedelta(hours=1)
    assert looked(target(), fetched(status=status, location=Url(ROOT + "login"))).recipients == (
        compute_page_key(Url(ROOT + "login")),
    )


@pytest.mark.parametrize("status", [301, 410])
def test_gone_or_moved_page_with_a_304_is_restored(status: int) -> None:
    away = after(looked(seen(), fetched(status=status, location=Url(ROOT + "new") if status == 301 else None)))

    visit = looked(away, NotModified(elapsed=timedelta(0)), at=NOW + DAY)

    assert (visit.change, visit.state, visit.snapshot) == (Change.RESTORED, State.FETCHED, None)
    assert visit.rate_estimate == away.rate_estimate  # the time away is no evidence of its changes


def test_gone_page_stays_gone_while_robots_txt_excludes_it() -> None:
    gone = after(looked(seen(), fetched(status=410)))

    hidden = build_excluded_visit(gone, reason="robots", now=NOW + DAY)
    again = looked(after(hidden), fetched(html("<p>price 19.99")), at=NOW + 9 * DAY)

    assert (hidden.state, hidden.requests) == (State.GONE, 0)
    assert again.change is Change.RESTORED
    assert build_excluded_visit(seen(), reason="robots", now=NOW).state is State.EXCLUDED


KINDS: dict[str, Fetched | Unreached] = {
    "404": fetched(status=404),
    "410": fetched(status=410),
    "429": fetched(status=429, retry_after="7200"),
    "500": fetched(status=500),
    "301": fetched(status=301, location=Url(ROOT + "new")),
    "302": fetched(status=302, location=Url(ROOT + "new")),
    "dns": Unreached(FailureReason.DNS, timedelta(seconds=1)),
    "robots": Unreached(FailureReason.ROBOTS, timedelta(0)),
}


def test_each_kind_of_failure_has_its_own_consequences() -> None:
    visits = {name: looked(seen(), response) for name, response in KINDS.items()}

    def names_of(holds: object) -> set[str]:
        return {name for name, visit in visits.items() if holds(visit)}  # type: ignore[operator]

    assert names_of(lambda v: v.state is State.GONE) == {"410"}
    assert names_of(lambda v: v.state is State.MOVED) == {"301"}
    assert names_of(lambda v: v.state is State.EXCLUDED) == {"robots"}
    assert names_of(lambda v: v.overloaded) == {"429"}
    assert names_of(lambda v: v.no_response) == {"dns"}
    assert names_of(lambda v: v.is_good) == {"301", "410"}  # these two are events
    waits = {name: (visit.due_at - NOW) / timedelta(hours=1) for name, visit in visits.items()}
    assert (waits["404"], waits["410"], waits["500"]) == (0.5, 30 * 24, 1)
    assert waits["429"] < 1  # its domain is suspended for two hours; after that, this page does not come last
    assert visits["429"].retry_after == timedelta(hours=2)


@pytest.mark.parametrize("response", KINDS.values(), ids=KINDS)
def test_longest_interval_of_a_rule_limits_every_retry(response: Fetched | Unreached) -> None:
    terms = VisitTerms(max_interval=timedelta(hours=6))
    for before in (seen(), target()):
        page = replace(before, terms=terms)
        for n in range(12):
            visit = looked(page, response, at=NOW + n * DAY)
            page = after(visit)
            assert visit.due_at - visit.at <= terms.max_interval


def test_canonical_page_must_be_in_the_domain() -> None:
    def original(url: str) -> object:
        reading = PageContent(canonical=Url(url), links=(Url(f"{ROOT}a"),))
        links, _ = resolve_links(reading, target=target(), knowledge=KNOWN)
        return find_canonical(reading, links, knowledge=KNOWN)

    assert original(f"{ROOT}original") == compute_page_key(Url(f"{ROOT}original"))
    assert original(f"{ROOT}page") is None  # itself
    assert original("http://else.test/") is None


def refresh(seconds: int) -> Fetched:
    body = html("<p>moved", title="Moved")
    return fetched(body.replace(b"<title>", b"<meta http-equiv=refresh content='%d;url=/new'><title>" % seconds))


def test_page_with_an_instant_refresh_has_moved_and_keeps_its_version() -> None:
    before = seen()

    visit = looked(before, refresh(0))
    again = looked(after(visit), refresh(0), at=visit.due_at)

    assert (visit.change, visit.state, visit.status, visit.snapshot) == (Change.MOVED, State.MOVED, 200, None)
    assert visit.moved_to is not None
    assert visit.moved_to.url == ROOT + "new"
    assert after(visit).version == before.version
    assert (again.change, again.state) == (Change.UNCHANGED, State.MOVED)


def test_delayed_refresh_is_a_link() -> None:
    visit = looked(seen(), refresh(5))

    assert (visit.change, visit.state) == (Change.CHANGED, State.FETCHED)
    assert visit.links is not None
    assert ROOT + "new" in {link.url for link in visit.links}


def test_bulk_redirect_by_refresh_is_retried_like_others() -> None:
    visit = confirm_move(looked(seen(), refresh(0)), BULK)
    while visit.state is State.FETCHED:
        visit = confirm_move(looked(after(visit), refresh(0), at=visit.due_at), BULK)

    assert (visit.at - NOW, visit.change) == (7 * DAY, Change.GONE)


def url_named(n: int, **more: object) -> Target:
    url = Url(f"{ROOT}dead{n}")
    return target(url=url, key=compute_page_key(url), **more)


def waits_of(page: Target, response: Fetched, visits: int) -> list[float]:
    """Return the days between consecutive visits, each made when it is due."""
    waits, at = [], NOW
    for _ in range(visits):
        visit = looked(page, response, at=at)
        waits.append((visit.due_at - at) / DAY)
        page, at = after(visit), visit.due_at
    return waits


def test_waits_of_a_dead_link_grow() -> None:
    waits = waits_of(url_named(1), fetched(status=404), 5)

    assert 30 <= waits[0] < 45
    assert waits[1:3] == pytest.approx([2 * waits[0], 4 * waits[0]])
    assert waits[3:] == [180, 180]


def test_dead_links_found_together_are_spread() -> None:
    days = Counter(int(waits_of(url_named(n), fetched(status=404), 1)[0]) for n in range(167))

    assert max(days.values()) <= 167 * 0.15


def test_requested_visit_of_a_dead_link_does_not_extend_its_wait() -> None:
    page = url_named(1)
    for hours in range(6):
        visit = looked(page, fetched(status=404), at=NOW + timedelta(hours=hours))
        page = replace(after(visit), due_at=visit.at + timedelta(hours=1))  # the request makes it due

    assert visit.due_at - visit.at < 45 * DAY


def test_waits_of_redirecting_urls_grow() -> None:
    response = fetched(status=302, location=Url(ROOT + "next"))

    linked, led_to = waits_of(url_named(1), response, 3), waits_of(url_named(1, redirects=2), response, 2)

    assert 7 <= linked[0] < 10.5
    assert linked[1:] == pytest.approx([2 * linked[0], 4 * linked[0]])
    assert led_to[0] >= 60
    assert waits_of(url_named(1, depth=0), response, 3) == [7, 7, 7]  # of a seed


def test_url_that_always_fails_waits_longer_than_a_week() -> None:
    waits = waits_of(url_named(1), fetched(status=403), 14)

    assert waits == sorted(waits)
    assert waits[-1] > 100
    assert max(waits_of(seen(), fetched(status=403), 14)) == 7


def test_target_of_many_redirects_in_a_row_is_deferred_longer() -> None:
    response = fetched(status=302, location=Url(ROOT + "next"))
    found = [count_redirects_to_new(looked(url_named(1, redirects=n), response)) for n in range(8)]
    again = looked(url_named(1, state=State.FETCHED, status=302), response)

    assert found == list(range(1, 9))
    assert [compute_redirect_deferral(n) / DAY for n in found] == [0, 0, 0, 0, 0, 1, 2, 4]
    assert compute_redirect_deferral(count_redirects_to_new(again)) == DAY
    assert count_redirects_to_new(looked(seen(), response)) == 0
    assert count_redirects_to_new(looked(target(), fetched(html("<p>text <a href=/x>x</a>")))) == 0


def test_excluded_page_withholds_no_content() -> None:
    doubtful = replace(seen(), withheld_since=NOW)

    assert build_excluded_visit(doubtful, reason="robots", now=NOW + DAY).withheld_since is None
