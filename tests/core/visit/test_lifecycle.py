"""Moves that may be outages, and other looks that bring no page."""

from collections import Counter
from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.core.change.change import Change
from crawler.core.freshness.terms import VisitTerms
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
from crawler.core.visit.visit import State, Target, Visit
from tests.core.visit.test_visit import DAY, KNOWN, NOW, ROOT, after, fetched, html, looked, seen, target

CROWDED = MoveTarget(other_pages=BULK_REDIRECT_PAGES - 1)
HOME = fetched(status=301, location=Url(ROOT))


def moved(before: Target, *, at: datetime = NOW, move_target: MoveTarget = CROWDED) -> Visit:
    return confirm_move(looked(before, HOME, at=at), move_target)


def test_the_fifth_page_to_one_target_is_no_move_and_keeps_what_it_was() -> None:
    before = seen()

    alone, crowded = moved(before, move_target=MoveTarget(other_pages=BULK_REDIRECT_PAGES - 2)), moved(before)

    assert (alone.change, alone.state) == (Change.MOVED, State.MOVED)
    assert (crowded.change, crowded.state, crowded.reason) == (Change.UNKNOWN, State.FETCHED, "bulk_redirect")
    kept = after(crowded)
    assert (kept.version, kept.validators, kept.belief, kept.outlinks) == (
        before.version, before.validators, before.belief, before.outlinks
    )  # fmt: skip
    assert crowded.recipients is None


def test_one_of_a_crowd_is_gone_after_a_week_of_ever_later_looks_and_has_no_heir() -> None:
    visit = moved(seen())
    visits = [visit]
    while visit.state is State.FETCHED:
        visit = moved(after(visit), at=visit.due_at)
        visits.append(visit)

    assert [(look.at - NOW) / DAY for look in visits] == [0, 1, 3, 7]
    assert (visit.change, visit.moved_to) == (Change.GONE, None)
    assert moved(after(visit), at=visit.due_at).change is Change.UNCHANGED


def test_looks_at_one_of_a_crowd_in_quick_succession_prove_nothing() -> None:
    visit = moved(seen())
    for n in range(1, 60):
        visit = moved(after(visit), at=NOW + n * timedelta(hours=5))

    assert visit.state is State.FETCHED


def test_a_page_of_a_crowd_that_is_there_again_was_never_away() -> None:
    away = after(moved(seen()))

    visit = looked(away, NotModified(elapsed=timedelta(0)), at=NOW + DAY)

    assert (visit.change, visit.failures) == (Change.UNCHANGED, 0)


def test_a_tombstone_stays_one_where_the_whole_site_leads_to_one_page() -> None:
    gone = after(looked(seen(), fetched(status=410)))

    visit = moved(gone, at=NOW + DAY)

    assert (visit.change, visit.state) == (Change.UNCHANGED, State.GONE)


def test_a_page_that_never_had_a_version_is_no_part_of_a_crowd() -> None:
    assert moved(target()).state is State.MOVED


def test_a_page_that_has_moved_does_not_come_back_because_others_follow() -> None:
    there = after(moved(seen(), move_target=MoveTarget()))

    assert (moved(there, at=NOW + DAY).change, moved(there, at=NOW + DAY).state) == (Change.UNCHANGED, State.MOVED)


def test_a_move_onto_a_page_that_existed_beside_it_needs_a_second_look() -> None:
    before = seen()
    beside = MoveTarget(first_read_at=NOW - 9 * DAY)

    once = moved(before, move_target=beside)
    too_soon = moved(after(once), move_target=beside, at=NOW + timedelta(minutes=5))
    twice = moved(after(once), move_target=beside, at=once.due_at)

    assert (once.state, once.reason) == (State.FETCHED, "redirect_to_existing")
    assert too_soon.state is State.FETCHED
    assert (twice.change, twice.state) == (Change.MOVED, State.MOVED)
    assert moved(before, move_target=MoveTarget(first_read_at=NOW)).state is State.MOVED


@pytest.mark.parametrize("before", [seen(), target()], ids=["known", "new"])
def test_redirects_in_a_circle_are_failures_that_come_ever_later(before: Target) -> None:
    circle = MoveTarget(is_loop=True)

    once = moved(before, move_target=circle)
    twice = moved(after(once), move_target=circle, at=once.due_at)

    assert (once.change, once.reason, once.moved_to) == (Change.UNKNOWN, "redirects_in_a_circle", None)
    assert once.state is State.FETCHED
    assert once.due_at - once.at < twice.due_at - twice.at


@given(
    others=st.integers(0, 1000),
    read_since=st.none() | st.timedeltas(timedelta(0), 900 * DAY),
    is_circle=st.booleans(),
    days=st.lists(st.floats(0.01, 40), max_size=12),
)
def test_whatever_the_target_of_a_move_is_nothing_that_was_learnt_is_lost(
    others: int, read_since: timedelta | None, is_circle: bool, days: list[float]
) -> None:
    before = page = seen()
    move_target = MoveTarget(others, None if read_since is None else NOW - read_since, is_circle)
    at = NOW
    for gap in days:
        at += gap * DAY
        visit = moved(page, at=at, move_target=move_target)
        assert at < visit.due_at <= at + page.terms.max_interval
        page = after(visit)

    assert (page.version, page.belief, page.validators) == (before.version, before.belief, before.validators)


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
def test_what_is_no_move_is_left_as_it_is(visit: Visit) -> None:
    assert confirm_move(visit, CROWDED) == visit
    assert visit.led_to is not None or confirm_move(visit, replace(CROWDED, is_loop=True)) == visit


def test_a_redirect_for_now_in_a_circle_is_a_failure_and_of_a_page_that_never_was_hardly_asked_again() -> None:
    circle = MoveTarget(is_loop=True)
    answer = fetched(status=302, location=Url(f"{ROOT}other"))
    kept = confirm_move(looked(seen(), answer), circle)
    never = confirm_move(looked(replace(target(), failures=2), answer), circle)

    assert (kept.state, kept.reason, kept.failures) == (State.FETCHED, "redirects_in_a_circle", 1)
    assert never.reason == "redirects_in_a_circle"
    assert never.due_at - never.at == REVISIT_GONE_AFTER


def test_a_crowd_that_is_led_out_of_the_domain_is_one_as_well() -> None:
    away = looked(seen(), fetched(status=301, location=Url("http://parked.test/")))

    crowded = confirm_move(away, CROWDED)

    assert (away.moved_to, confirm_move(away, MoveTarget()).state) == (None, State.MOVED)
    assert (crowded.change, crowded.state, crowded.reason) == (Change.UNKNOWN, State.FETCHED, "bulk_redirect")


def test_a_sign_on_that_is_told_where_to_send_back_to_is_one_target_for_all_pages() -> None:
    one, other = (target(url=Url(f"{ROOT}{name}")) for name in ("one", "two?page=2"))
    sign_on = "http://sign-on.test/login?back="

    assert compute_redirect_key(one, Url(f"{sign_on}%2Fone")) == compute_redirect_key(
        other, Url(f"{sign_on}{ROOT}two%3Fpage=2")
    )
    assert compute_redirect_key(one, Url("http://new.test/item?no=1")) != compute_redirect_key(
        other, Url("http://new.test/item?no=2")
    )


@pytest.mark.parametrize("status", [302, 303, 307])
def test_a_temporary_redirect_keeps_the_links_of_the_version_and_comes_soon_again(status: int) -> None:
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
def test_what_is_gone_or_moved_and_answers_304_is_back(status: int) -> None:
    away = after(looked(seen(), fetched(status=status, location=Url(ROOT + "new") if status == 301 else None)))

    visit = looked(away, NotModified(elapsed=timedelta(0)), at=NOW + DAY)

    assert (visit.change, visit.state, visit.snapshot) == (Change.RESTORED, State.FETCHED, None)
    assert visit.rate_estimate == away.belief  # how long it was away says nothing about its changes


def test_what_is_gone_stays_gone_while_robots_txt_refuses_it() -> None:
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


def test_404_410_429_and_500_are_four_things_and_redirects_no_response_and_refusals_others() -> None:
    visits = {name: looked(seen(), answer) for name, answer in KINDS.items()}

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
    assert waits["429"] < 1  # its domain is held for two hours, and it is not last after that
    assert visits["429"].retry_after == timedelta(hours=2)


@pytest.mark.parametrize("answer", KINDS.values(), ids=KINDS)
def test_a_rule_of_six_hours_holds_for_every_back_off(answer: Fetched | Unreached) -> None:
    terms = VisitTerms(max_interval=timedelta(hours=6))
    for before in (seen(), target()):
        page = replace(before, terms=terms)
        for n in range(12):
            visit = looked(page, answer, at=NOW + n * DAY)
            page = after(visit)
            assert visit.due_at - visit.at <= terms.max_interval


def test_of_a_copy_only_a_page_of_the_domain_can_be_the_original() -> None:
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


def test_a_page_whose_markup_sends_its_reader_on_at_once_has_moved_and_keeps_its_version() -> None:
    before = seen()

    visit = looked(before, refresh(0))
    again = looked(after(visit), refresh(0), at=visit.due_at)

    assert (visit.change, visit.state, visit.status, visit.snapshot) == (Change.MOVED, State.MOVED, 200, None)
    assert visit.moved_to is not None
    assert visit.moved_to.url == ROOT + "new"
    assert after(visit).version == before.version
    assert (again.change, again.state) == (Change.UNCHANGED, State.MOVED)


def test_a_page_that_lets_its_reader_read_first_has_a_link_more() -> None:
    visit = looked(seen(), refresh(5))

    assert (visit.change, visit.state) == (Change.CHANGED, State.FETCHED)
    assert visit.links is not None
    assert ROOT + "new" in {link.url for link in visit.links}


def test_a_crowd_that_is_sent_on_by_markup_is_asked_as_often_as_any_other() -> None:
    visit = confirm_move(looked(seen(), refresh(0)), CROWDED)
    while visit.state is State.FETCHED:
        visit = confirm_move(looked(after(visit), refresh(0), at=visit.due_at), CROWDED)

    assert (visit.at - NOW, visit.change) == (7 * DAY, Change.GONE)


def url_named(n: int, **more: object) -> Target:
    url = Url(f"{ROOT}dead{n}")
    return target(url=url, key=compute_page_key(url), **more)


def waits_of(page: Target, answer: Fetched, visits: int) -> list[float]:
    """Days from each of so many visits to the next, each made when it is due."""
    waits, at = [], NOW
    for _ in range(visits):
        visit = looked(page, answer, at=at)
        waits.append((visit.due_at - at) / DAY)
        page, at = after(visit), visit.due_at
    return waits


def test_a_dead_link_is_asked_for_ever_less_often() -> None:
    waits = waits_of(url_named(1), fetched(status=404), 5)

    assert 30 <= waits[0] < 45
    assert waits[1:3] == pytest.approx([2 * waits[0], 4 * waits[0]])
    assert waits[3:] == [180, 180]


def test_dead_links_that_were_found_together_do_not_come_back_together() -> None:
    days = Counter(int(waits_of(url_named(n), fetched(status=404), 1)[0]) for n in range(167))

    assert max(days.values()) <= 167 * 0.15


def test_a_refresh_by_hand_of_a_dead_link_does_not_make_it_wait_longer() -> None:
    page = url_named(1)
    for hours in range(6):
        visit = looked(page, fetched(status=404), at=NOW + timedelta(hours=hours))
        page = replace(after(visit), due_at=visit.at + timedelta(hours=1))  # the refresh makes it due

    assert visit.due_at - visit.at < 45 * DAY


def test_a_url_that_only_redirects_and_one_that_redirects_led_to_wait_ever_longer() -> None:
    answer = fetched(status=302, location=Url(ROOT + "next"))

    linked, led_to = waits_of(url_named(1), answer, 3), waits_of(url_named(1, redirects=2), answer, 2)

    assert 7 <= linked[0] < 10.5
    assert linked[1:] == pytest.approx([2 * linked[0], 4 * linked[0]])
    assert led_to[0] >= 60
    assert waits_of(url_named(1, depth=0), answer, 3) == [7, 7, 7]  # of a seed


def test_a_url_that_always_fails_and_never_was_a_page_waits_longer_than_a_week() -> None:
    waits = waits_of(url_named(1), fetched(status=403), 14)

    assert waits == sorted(waits)
    assert waits[-1] > 100
    assert max(waits_of(seen(), fetched(status=403), 14)) == 7


def test_what_many_redirects_in_a_row_lead_to_is_held_back_ever_longer() -> None:
    answer = fetched(status=302, location=Url(ROOT + "next"))
    found = [count_redirects_to_new(looked(url_named(1, redirects=n), answer)) for n in range(8)]
    again = looked(url_named(1, state=State.FETCHED, status=302), answer)

    assert found == list(range(1, 9))
    assert [compute_redirect_deferral(n) / DAY for n in found] == [0, 0, 0, 0, 0, 1, 2, 4]
    assert compute_redirect_deferral(count_redirects_to_new(again)) == DAY
    assert count_redirects_to_new(looked(seen(), answer)) == 0
    assert count_redirects_to_new(looked(target(), fetched(html("<p>text <a href=/x>x</a>")))) == 0


def test_content_is_not_withheld_from_a_page_that_may_not_be_fetched() -> None:
    doubtful = replace(seen(), withheld_since=NOW)

    assert build_excluded_visit(doubtful, reason="robots", now=NOW + DAY).withheld_since is None
