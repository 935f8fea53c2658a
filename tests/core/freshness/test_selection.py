from datetime import timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct
from msgspec.structs import replace

from crawler.core.freshness.selection import (
    CHECK_SHARE,
    FLOOR_RETRY_DAYS,
    MIN_SCORE,
    CandidateColumns,
    Candidates,
    DayBudget,
    Selection,
    build_candidates,
    find_outdated_due_times,
    join_candidates,
    select_pages,
)
from crawler.core.freshness.visit_terms import RequestReason, VisitTerms
from crawler.core.freshness.visit_value import compute_values, solve_gap

pytestmark = pytest.mark.filterwarnings("error")


class Candidate(Struct, frozen=True):
    """One page of Candidates."""

    a: float
    b: float
    weight: float
    shadow_price: float
    min_interval: float
    max_interval: float
    unseen: float = 0.0
    due_in: float = 0.0
    is_unfetched: bool = False
    is_requested: bool = False
    is_timed: bool = False
    is_dead: bool = False
    is_duplicate: bool = False
    is_ruled: bool = False
    cash: float = 0.0
    phase: float = 1.0
    gap: float = float("nan")
    activity_ahead: float = 0.0
    recall: float = 0.0
    signal_days_ahead: float = 0.0


PAGE = Candidate(
    a=0.7, b=20.0, weight=1.0, shadow_price=2.0, min_interval=0.01, max_interval=180.0, unseen=30.0, due_in=-1.0
)
NEW = replace(PAGE, is_unfetched=True, unseen=0.0, due_in=0.0)
FRANTIC = replace(PAGE, a=300.0, b=0.1)  # changes thousands of times a day: never reaches its price
EARLY = replace(PAGE, unseen=1.0, due_in=-0.1)  # due by its stored time, but below its price


def head_in(candidates: list[Candidate]) -> Candidates:
    columns = (
        np.array([getattr(candidate, name) for candidate in candidates], bool if name[:3] == "is_" else float)
        for name in Candidates.__struct_fields__
    )
    return Candidates(*columns)


def chosen(
    candidates: list[Candidate],
    *,
    slots: int = 10,
    floor_left: int | None = None,
    budget_per_day: float | None = None,
    slots_before: int = 0,
    last_window: int = 0,
    fills_slots: bool = False,
) -> Selection:
    budget = None
    if floor_left is not None or budget_per_day is not None:
        per_day = 100.0 if budget_per_day is None else budget_per_day
        budget = DayBudget(per_day, 0 if floor_left is None else floor_left)
    return select_pages(
        head_in(candidates),
        slots=slots,
        discovery_share=0.3,
        refresh_share=0.3,
        budget=budget,
        slots_before=slots_before,
        last_window=last_window,
        fills_slots=fills_slots,
    )


def test_highest_value_over_price_comes_first() -> None:
    pages = [replace(PAGE, weight=2.0), replace(PAGE, weight=8.0), replace(PAGE, weight=8.0, shadow_price=8.0)]

    assert chosen(pages).chosen.tolist() == [1, 0, 2]


def test_longest_overdue_page_comes_first_among_equal_values() -> None:
    pages = [replace(PAGE, due_in=-days) for days in (1.0, 9.0, 4.0)]

    assert chosen(pages).chosen.tolist() == [1, 2, 0]


def test_page_whose_value_reaches_its_price_is_selected_before_its_stored_due_time() -> None:
    assert chosen([replace(PAGE, due_in=12.0)]).chosen.tolist() == [0]


def test_page_below_its_price_is_deferred_until_its_value_reaches_it() -> None:
    done = chosen([EARLY])

    assert done.chosen.tolist() == []
    assert done.rescheduled.tolist() == [0]
    gap = float(solve_gap(EARLY.a, EARLY.b, EARLY.weight, EARLY.shadow_price))
    assert done.due_in[0] == pytest.approx(gap - EARLY.unseen)


def test_due_time_that_is_still_right_is_not_rewritten() -> None:
    right = float(solve_gap(EARLY.a, EARLY.b, EARLY.weight, EARLY.shadow_price)) - EARLY.unseen

    assert chosen([replace(EARLY, due_in=right * 1.001)]).rescheduled.tolist() == []
    assert chosen([replace(EARLY, due_in=right * 2)]).rescheduled.tolist() == [0]


def test_no_page_is_visited_before_its_minimum_interval() -> None:
    done = chosen([replace(PAGE, weight=1000.0, min_interval=31.0)])

    assert done.chosen.tolist() == []
    assert done.due_in == pytest.approx([1.0])


def test_page_past_its_longest_interval_is_selected_below_its_price() -> None:
    pages = [replace(FRANTIC, unseen=days) for days in (179.0, 181.0, 400.0)]

    done = chosen(pages)

    assert done.chosen.tolist() == [2, 1]
    assert done.floor_visits == 2
    assert (done.rescheduled.tolist(), done.due_in.tolist()) == ([0], [pytest.approx(1.0)])


def test_visit_required_by_a_rule_is_not_a_floor_visit() -> None:
    ruled = replace(FRANTIC, max_interval=2.0, is_ruled=True)

    done = chosen([replace(ruled, unseen=days) for days in (1.9, 2.1, 5.0)], floor_left=0)

    assert done.chosen.tolist() == [2, 1]
    assert done.floor_visits == 0
    assert (done.rescheduled.tolist(), done.due_in.tolist()) == ([0], [pytest.approx(0.1)])


def test_floor_visits_beyond_the_share_of_the_day_are_due_tomorrow() -> None:
    done = chosen([replace(FRANTIC, unseen=days) for days in (181.0, 400.0, 300.0)], floor_left=1)

    assert done.chosen.tolist() == [1]
    assert (done.rescheduled.tolist(), done.due_in.tolist()) == ([0, 2], [FLOOR_RETRY_DAYS] * 2)


def test_floor_visit_gets_a_slot_among_pages_of_higher_value() -> None:
    pages = [PAGE] * 50 + [replace(FRANTIC, unseen=2000.0)]

    assert 50 in chosen(pages, slots=5).chosen


def test_discovery_and_revisits_have_guaranteed_shares() -> None:
    high_value = [replace(NEW, weight=100.0)] * 50
    low_value = [replace(NEW, weight=0.05, shadow_price=1e6)] * 50

    assert sum(n >= 50 for n in chosen(high_value + [PAGE] * 50).chosen) == 3  # revisits keep their 30%
    assert sum(n < 50 for n in chosen(low_value + [PAGE] * 50).chosen) == 3  # so does discovery, at any price
    assert len(chosen(high_value).chosen) == len(chosen([PAGE] * 50).chosen) == 10  # each can use all slots


@pytest.mark.parametrize("slots", [1, 7, *(pytest.param(slots, marks=pytest.mark.soak) for slots in (2, 3))])
@pytest.mark.parametrize(("discovery", "refresh"), [(0.3, 0.3), (0.5, 0.5), (0.1, 0.6), (0.0, 0.25)])
def test_shares_hold_over_many_small_batches(slots: int, discovery: float, refresh: float) -> None:
    dear, cheap = replace(PAGE, weight=1000.0), replace(NEW, weight=0.05)
    flood, known = replace(NEW, weight=1000.0), replace(PAGE, weight=1.7)

    def counted(head: Candidates) -> list[int]:
        """Return how many slots of 100 batches go to unfetched and to fetched pages."""
        turns = range(5, 5 + 100 * slots, slots)
        chosen = [
            select_pages(head, slots=slots, discovery_share=discovery, refresh_share=refresh, slots_before=turn).chosen
            for turn in turns
        ]
        new = sum(int(head.is_unfetched[each].sum()) for each in chosen)
        return [new, sum(len(each) for each in chosen) - new]

    scarce_new, _ = counted(head_in([dear] * 10 + [cheap] * 10))
    _, scarce_known = counted(head_in([flood] * 10 + [known] * 10))

    assert scarce_new == pytest.approx(100 * slots * discovery, abs=2)
    assert scarce_known >= 100 * slots * refresh - 2


def test_many_unimportant_new_pages_leave_the_rest_to_revisits() -> None:
    flood = [replace(NEW, weight=0.05, shadow_price=1e3)] * 1000

    assert sum(n >= 1000 for n in chosen([*flood, *[PAGE] * 20], slots=10).chosen) == 7


def test_new_pages_are_ordered_by_cash() -> None:
    pages = [replace(NEW, cash=cash, weight=weight) for cash, weight in ((5, 1.0), (9, 0.1), (7, 9.0))]

    assert chosen(pages).chosen.tolist() == [1, 2, 0]


def test_truncated_batch_keeps_the_mix() -> None:
    kinds = [n < 20 for n in chosen([NEW] * 20 + [PAGE] * 20, slots=20).chosen]

    assert 3 <= sum(kinds[:10]) <= 8


def test_requested_page_comes_first_at_any_value() -> None:
    assert chosen([PAGE, replace(EARLY, is_requested=True)]).chosen.tolist() == [1, 0]


def test_retry_waits_for_its_time_and_is_not_deferred() -> None:
    early, due = replace(PAGE, is_timed=True, due_in=0.5), replace(EARLY, is_timed=True)

    done = chosen([early, due])

    assert done.chosen.tolist() == [1]
    assert done.rescheduled.tolist() == []


def test_another_window_is_read_only_if_the_last_one_is_productive() -> None:
    assert chosen([PAGE, EARLY]).needs_more_candidates
    assert not chosen([EARLY]).needs_more_candidates
    assert not chosen([PAGE] * 10).needs_more_candidates  # no slots are left
    assert not chosen([]).needs_more_candidates


def test_window_with_hardly_any_selectable_page_is_the_last() -> None:
    """Further windows would be read for a page or two each, and their pages are due later anyway."""
    assert not chosen([PAGE] + [EARLY] * 30, slots=50).needs_more_candidates
    assert chosen([PAGE] * 2 + [EARLY] * 30, slots=50).needs_more_candidates


def test_only_the_last_window_has_to_be_productive() -> None:
    first, last = [PAGE, EARLY], [EARLY, EARLY]

    assert chosen(first + last, slots=50).needs_more_candidates
    assert not chosen(first + last, slots=50, last_window=2).needs_more_candidates
    assert chosen(last + first, slots=50, last_window=2).needs_more_candidates


def test_each_page_uses_its_own_terms() -> None:
    defaults = VisitTerms(shadow_price=2.0, min_interval=timedelta(hours=12), max_interval=timedelta(days=90))
    dear = replace(defaults, shadow_price=8.0, once=True, is_ruled=True)

    head = build_candidates(
        CandidateColumns(
            [defaults, dear, defaults],
            a=[0.5, 1.5, 2.5],
            b=[8.0, 8.0, 40.0],
            importance=[1.0, 0.0, 3.0],
            unseen=[1.0, 2.0, 3.0],
            due_in=[0.0, -1.0, 1.0],
            is_unfetched=[True, False, False],
            has_version=[False, False, True],
            request_reason=[RequestReason.NONE, RequestReason.NONE, RequestReason.BY_AUDIT],
            is_timed=[False, False, True],
            is_dead=[False] * 3,
            is_duplicate=[False] * 3,
            phase=[1.0] * 3,
            magnitude_factor=[1.0] * 3,
            gap=[float("nan")] * 3,
            activity_ahead=[0.0] * 3,
            signals=[()] * 3,
        )
    )

    assert head.b.tolist() == [8.0, 8.0, 40.0]
    assert head.shadow_price.tolist() == [2.0, 8.0, 2.0]
    assert head.weight.tolist() == [1.0, 0.05, 3.0]  # weights have a lower bound
    assert (head.min_interval.tolist(), head.max_interval.tolist()) == ([0.5] * 3, [90.0] * 3)
    assert (head.is_timed.tolist(), head.is_ruled.tolist()) == ([False, True, True], [False, True, False])
    assert np.all(np.diff(head.cash) < 0)


def test_fetched_page_with_rule_once_is_only_revisited_for_a_user() -> None:
    wanted = [RequestReason.NONE, RequestReason.BY_AUDIT, RequestReason.BY_USER, RequestReason.NONE, RequestReason.NONE]
    count = len(wanted)
    head = build_candidates(
        CandidateColumns(
            [
                VisitTerms(
                    shadow_price=1e-6,
                    min_interval=timedelta(minutes=1),
                    max_interval=timedelta(days=1),
                    once=True,
                    is_ruled=True,
                )
            ]
            * count,
            a=[1.0] * count,
            b=[1.0] * count,
            importance=[100.0] * count,
            unseen=[50.0] * count,
            due_in=[-1.0, -1.0, -1.0, 2.9e6, -1.0],
            is_unfetched=[False] * count,
            has_version=[True, True, True, True, False],
            request_reason=wanted,
            is_timed=[False, False, False, False, True],  # the last one was not fetched yet
            is_dead=[False] * count,
            is_duplicate=[False] * count,
            phase=[1.0] * count,
            magnitude_factor=[1.0] * count,
            gap=[float("nan")] * count,
            activity_ahead=[0.0] * count,
            signals=[()] * count,
        )
    )

    done = select_pages(head, slots=10, discovery_share=0.3, refresh_share=0.3)

    assert sorted(done.chosen.tolist()) == [2, 4]
    assert done.rescheduled.tolist() == [0, 1]  # the fourth is never due already
    assert np.isinf(done.due_in).all()
    assert done.needs_more_candidates


def test_first_gap_stays_spread_when_a_claim_reads_it() -> None:
    gap = float(solve_gap(PAGE.a, PAGE.b, PAGE.weight, PAGE.shadow_price))
    parts = [0.1, 0.5, 0.9]
    waiting = [replace(PAGE, unseen=0.05 * gap, due_in=(part - 0.05) * gap, phase=part) for part in parts]
    waited = [replace(PAGE, unseen=1.001 * part * gap, due_in=-0.001, phase=part) for part in parts]

    assert chosen(waiting).chosen.tolist() == chosen(waiting).rescheduled.tolist() == []
    assert sorted(chosen(waited).chosen.tolist()) == [0, 1, 2]
    dearer = head_in([replace(page, shadow_price=2 * PAGE.shadow_price) for page in waiting])
    again = float(solve_gap(PAGE.a, PAGE.b, PAGE.weight, 2 * PAGE.shadow_price))
    assert find_outdated_due_times(dearer)[1].tolist() == pytest.approx([part * again - 0.05 * gap for part in parts])


def test_joined_candidates_are_selected_together() -> None:
    worse, better = [replace(PAGE, weight=weight) for weight in (1.0, 2.0)], [replace(PAGE, weight=9.0)]

    both = join_candidates(head_in(worse), head_in(better))

    assert select_pages(both, slots=2, discovery_share=0.3, refresh_share=0.3).chosen.tolist() == [2, 1]


def test_no_candidates_give_an_empty_selection() -> None:
    head = build_candidates(
        CandidateColumns(
            [],
            a=[],
            b=[],
            importance=[],
            unseen=[],
            due_in=[],
            is_unfetched=[],
            has_version=[],
            request_reason=[],
            is_timed=[],
            is_dead=[False] * 0,
            is_duplicate=[False] * 0,
            phase=[],
            magnitude_factor=[],
            gap=[],
            activity_ahead=[],
            signals=[],
        )
    )

    assert select_pages(head, slots=5, discovery_share=0.3, refresh_share=0.3).chosen.tolist() == []


candidates = st.lists(
    st.builds(
        Candidate,
        a=st.floats(1e-2, 1e4),
        b=st.floats(1e-3, 1e4),
        weight=st.floats(0.05, 1000),
        shadow_price=st.floats(1e-6, 1e6),
        min_interval=st.floats(1e-3, 1),
        max_interval=st.floats(2, 1e3),
        unseen=st.floats(0, 1e4),
        due_in=st.floats(-1e3, 1e3),
        is_unfetched=st.booleans(),
        is_requested=st.booleans(),
        is_timed=st.booleans(),
        is_ruled=st.booleans(),
        cash=st.floats(0, 1e15),
    ),
    max_size=40,
)


@given(
    candidates=candidates, slots=st.integers(0, 50), floor_left=st.none() | st.integers(0, 5), share=st.floats(0, 0.5)
)
def test_each_candidate_is_selected_deferred_or_waits(
    candidates: list[Candidate], slots: int, floor_left: int | None, share: float
) -> None:
    budget = None if floor_left is None else DayBudget(100.0, floor_left)
    done = select_pages(head_in(candidates), slots=slots, discovery_share=share, refresh_share=share, budget=budget)

    out = done.chosen.tolist()
    assert len(set(out)) == len(out) <= slots
    assert not set(out) & set(done.rescheduled.tolist())
    assert floor_left is None or done.floor_visits <= floor_left
    assert np.all(done.due_in > 0)
    for n, days in zip(done.rescheduled, done.due_in, strict=True):
        page = candidates[n]
        assert not page.is_unfetched
        assert page.unseen + days >= page.min_interval * (1 - 1e-9)
        assert page.unseen + days <= max(page.max_interval, page.unseen + FLOOR_RETRY_DAYS) + 1e-3
    for n in out:
        page = candidates[n]
        reaches_price = float(
            compute_values(page.a, page.b, page.weight, page.unseen)
        ) >= MIN_SCORE * page.shadow_price * (1 - 1e-9)
        due = page.due_in <= 0 if page.is_timed else reaches_price or page.unseen >= page.max_interval
        assert page.is_unfetched or page.is_requested or due


@given(
    candidates=candidates,
    slots_before=st.integers(0, 100),
    floor_left=st.none() | st.integers(0, 2),
    discovery=st.floats(0, 0.5),
    refresh=st.floats(0, 0.5),
)
def test_small_grant_is_left_over_only_if_no_page_waits(
    candidates: list[Candidate], slots_before: int, floor_left: int | None, discovery: float, refresh: float
) -> None:
    """A domain stays awake while a page is unfetched or due, so one of these must use even a single slot."""
    found = [
        select_pages(
            head_in(candidates),
            slots=slots,
            discovery_share=discovery,
            refresh_share=refresh,
            slots_before=slots_before,
            budget=None if floor_left is None else DayBudget(100.0, floor_left),
        )
        for slots in (1, 2, 3)
    ]

    assert [len(each.chosen) for each in found] == [min(slots, len(found[-1].chosen)) for slots in (1, 2, 3)]
    if not len(found[0].chosen):
        deferred = set(found[0].rescheduled.tolist())
        assert not [
            n for n, page in enumerate(candidates) if n not in deferred and (page.is_unfetched or page.due_in <= 0)
        ]


def test_slots_left_over_go_to_the_highest_values_below_the_price() -> None:
    little, more = replace(EARLY, unseen=2.0), replace(EARLY, unseen=4.0)
    too_soon, timed = replace(EARLY, min_interval=2.0), replace(EARLY, is_timed=True, due_in=1.0)
    pages = [little, PAGE, too_soon, more, timed]

    wasted = chosen(pages, slots=4)
    filled = chosen(pages, slots=4, fills_slots=True)
    one_left = chosen(pages, slots=2, fills_slots=True)

    assert list(wasted.chosen) == [1]
    assert (list(filled.chosen), filled.filler_visits) == ([1, 3, 0], 2)
    assert (list(one_left.chosen), one_left.filler_visits) == ([1, 3], 1)
    assert 0 in one_left.rescheduled
    assert 3 not in one_left.rescheduled


def test_equal_pages_do_not_starve_each_other() -> None:
    """With fifty equal pages and five slots a day, each is visited within ten days, the longest overdue first."""
    unseen = np.full(50, 30.0)
    for _ in range(100):
        pages = [replace(PAGE, unseen=days, due_in=20 - days) for days in unseen]
        unseen[chosen(pages, slots=5).chosen] = 0
        unseen += 1

    assert unseen.max() <= 11


DEAD = replace(PAGE, is_dead=True, is_timed=True, unseen=31.0, due_in=-1.0, weight=9.0, phase=0.5)


def test_dead_link_comes_after_all_pages_that_reach_their_price() -> None:
    assert chosen([DEAD, PAGE, DEAD, PAGE], slots=3).chosen.tolist()[:2] == [1, 3]
    by_its_floor, new = replace(EARLY, unseen=181.0), replace(NEW, weight=90.0)
    assert chosen([DEAD, by_its_floor], slots=1).chosen.tolist() == [1]
    assert chosen([replace(DEAD, unseen=900.0), new], slots=1).chosen.tolist() == [1]


@pytest.mark.parametrize("kind", [DEAD, replace(DEAD, is_dead=False, is_duplicate=True)], ids=["dead", "duplicate"])
def test_dead_links_and_duplicates_get_their_share_of_a_budget_first(kind: Candidate) -> None:
    found = [
        chosen([PAGE] * 9 + [kind] * 9, slots=5, slots_before=before, budget_per_day=50.0)
        for before in range(0, 1000, 5)
    ]

    many = [int((each.chosen >= 9).sum()) for each in found]
    assert set(many) == {0, 1}
    assert sum(many) == round(CHECK_SHARE * 1000)
    assert all(each.chosen[0] >= 9 for each in found if max(each.chosen) >= 9)


def test_checks_without_a_slot_are_due_one_after_another() -> None:
    dead = [replace(DEAD, due_in=-float(days)) for days in (1, 3, 2)]

    done = chosen(dead, slots=20, floor_left=3, budget_per_day=1 / CHECK_SHARE)

    assert (list(done.chosen), list(done.rescheduled), list(done.due_in)) == ([1], [0, 2], [2, 1])
    assert done.needs_more_candidates  # the pages after them in the due index must be read


@pytest.mark.parametrize("budget", [0.0, 0.1])
def test_checks_without_a_slot_wait_at_most_half_a_year(budget: float) -> None:
    assert list(chosen([DEAD] * 2, slots=1, budget_per_day=budget).due_in) == [180.0] * 2


def test_without_a_budget_dead_links_are_visited_when_due_or_requested() -> None:
    assert len(chosen([DEAD] * 5).chosen) == 5
    assert chosen([replace(DEAD, due_in=3.0)]).chosen.tolist() == []
    assert chosen([PAGE, replace(DEAD, is_dead=False, is_requested=True)], slots=1).chosen.tolist() == [1]


@pytest.mark.parametrize("turn", range(4))
def test_dead_links_come_after_new_pages_of_any_value(turn: int) -> None:
    dead = replace(PAGE, is_dead=True, is_timed=True, unseen=40.0, max_interval=30.0, due_in=-1.0)
    cheap = replace(NEW, weight=0.001, shadow_price=200.0)

    found = select_pages(head_in([dead, cheap]), slots=1, slots_before=turn, discovery_share=0.3, refresh_share=0.3)

    assert found.chosen.tolist() == [1]
