"""How other crawlers fail at importance and scheduling, and the tests that show what happens here instead.

Each failure is a row of a list that was read from the sources and issue trackers of other crawlers; their names follow.
"""

from collections.abc import Callable, Mapping

import pytest

from tests.cli import test_reference
from tests.core.freshness import test_selection, test_value
from tests.core.opic import test_opic
from tests.core.visit import test_visit
from tests.engine import test_changes, test_kill
from tests.labs.experiments import test_estimate, test_time_policies
from tests.store.claim import test_claim_plans
from tests.store.record import test_cash

Shown = tuple[Callable[..., object], ...]

SCHEDULING: Mapping[str, Shown] = {
    "a page keeps its cash after giving it away, so that every re-read inflates scores (Nutch)": (
        test_opic.test_coins_are_conserved_whatever_happens,
        test_cash.test_two_hundred_revisits_of_a_page_do_not_raise_its_importance,
    ),
    "a leaf's cash is lost (Nutch)": (
        test_opic.test_a_leaf_pays_the_reserve,
        test_cash.test_a_leaf_pays_the_virtual_page_which_pays_all_pages,
    ),
    "the next time lands in the past (Nutch)": (
        test_value.test_a_page_is_due_within_bounds_and_exactly_when_it_is_worth_its_price,
        test_visit.test_the_next_look_is_never_in_the_past_and_never_beyond_the_longest_wait,
    ),
    "a ceiling of the interval wipes signature and modified time of the most stable pages (Nutch)": (
        test_visit.test_two_virtual_years_of_a_static_page_stay_conditional,
        test_changes.test_a_year_of_a_static_page_stays_conditional_and_keeps_its_estimates,
    ),
    "one timeout or redirect wipes signature and interval (StormCrawler)": (
        test_visit.test_a_sequence_with_errors_in_between_leaves_the_same_knowledge,
        test_visit.test_a_failure_erases_nothing_that_was_learnt,
    ),
    "the newest due goes first, and the most overdue starves (StormCrawler)": (
        test_selection.test_of_equal_value_the_longest_overdue_goes_first,
        test_selection.test_a_page_is_never_starved_by_others_of_its_kind,
        test_claim_plans.test_of_equal_value_the_longest_overdue_pages_are_selected_first,
    ),
    "the change rate is (changes + 1) / time, biased for fast and for new pages (Aduana)": (
        test_estimate.test_ten_irregular_looks_give_the_rate_within_five_percent_of_bias,
        test_estimate.test_the_usual_estimates_are_further_off,
    ),
    "the interval chases a fixed chance of change whatever importance and budget (Nutch, StormCrawler)": (
        test_time_policies.test_ours_begins_cold_and_is_fresher_than_every_rival,
        test_time_policies.test_the_budget_is_never_exceeded_and_used_where_there_is_work,
    ),
    "a documented default differs from the code's (Nutch)": (
        test_reference.test_the_reference_is_what_the_program_does,
    ),
    "schedule or back-off are kept in memory and lost at a restart (ACHE, URLFrontier)": (
        test_kill.test_after_kill_9_and_restart_due_times_and_backoff_are_the_same,
    ),
}

SHOWN: Mapping[str, Mapping[str, Shown]] = {"Importance and scheduling": SCHEDULING}


@pytest.mark.parametrize("failure", SCHEDULING)
def test_a_failure_of_other_crawlers_has_tests_that_are_collected(failure: str) -> None:
    for shown in SCHEDULING[failure]:
        assert shown.__name__.startswith("test_")
        assert shown.__module__.rpartition(".")[2].startswith("test_")


def test_all_ten_failures_are_there() -> None:
    assert len(SCHEDULING) == 10
