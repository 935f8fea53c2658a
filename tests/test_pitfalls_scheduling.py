"""How other crawlers fail at importance and scheduling, and the tests that show what happens here instead.

Each failure is a row of a list that was read from the sources and issue trackers of other crawlers; their names follow.
"""

from collections.abc import Callable, Mapping

import pytest

from tests.cli import test_reference
from tests.core.freshness import test_selection, test_visit_value
from tests.core.opic import test_opic
from tests.core.visit import test_visit
from tests.engine import test_changes, test_kill
from tests.labs.experiments import test_estimate, test_time_policies
from tests.store.claim import test_claim_plans
from tests.store.record import test_cash

Shown = tuple[Callable[..., object], ...]

SCHEDULING: Mapping[str, Shown] = {
    "a page keeps its cash after giving it away, so that every re-read inflates scores (Nutch)": (
        test_opic.test_total_cash_is_conserved_by_all_operations,
        test_cash.test_two_hundred_revisits_of_a_page_do_not_raise_its_importance,
    ),
    "a leaf's cash is lost (Nutch)": (
        test_opic.test_page_without_links_pays_the_virtual_page,
        test_cash.test_a_leaf_pays_the_virtual_page_which_pays_all_pages,
    ),
    "the next time lands in the past (Nutch)": (
        test_visit_value.test_page_is_due_within_bounds_when_its_value_reaches_the_price,
        test_visit.test_next_visit_is_never_in_the_past_and_within_the_longest_interval,
    ),
    "a ceiling of the interval wipes signature and modified time of the most stable pages (Nutch)": (
        test_visit.test_two_virtual_years_of_a_static_page_stay_conditional,
        test_changes.test_a_year_of_a_static_page_stays_conditional_and_keeps_what_was_learnt,
    ),
    "one timeout or redirect wipes signature and interval (StormCrawler)": (
        test_visit.test_errors_in_between_leave_the_same_knowledge,
        test_visit.test_failure_keeps_what_was_learned,
    ),
    "the newest due goes first, and the most overdue starves (StormCrawler)": (
        test_selection.test_longest_overdue_page_comes_first_among_equal_values,
        test_selection.test_equal_pages_do_not_starve_each_other,
        test_claim_plans.test_of_equal_value_the_longest_overdue_pages_are_selected_first,
    ),
    "the change rate is (changes + 1) / time, biased for fast and for new pages (Aduana)": (
        test_estimate.test_bias_of_ten_irregular_visits_is_within_five_percent,
        test_estimate.test_the_usual_estimates_are_further_off,
    ),
    "the interval chases a fixed chance of change whatever importance and budget (Nutch, StormCrawler)": (
        test_time_policies.test_our_policy_starts_cold_and_is_fresher_than_every_rival,
        test_time_policies.test_the_budget_is_never_exceeded_and_used_where_there_is_work,
    ),
    "a documented default differs from the code's (Nutch)": (
        test_reference.test_the_reference_is_what_the_program_does,
    ),
    "schedule or back-off are kept in memory and lost at a restart (ACHE, URLFrontier)": (
        test_kill.test_killed_with_9_and_started_again_due_times_and_backoff_are_the_same,
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
