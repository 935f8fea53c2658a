"""How other crawlers fail at telling changes and at keeping pages, and the tests that show what happens here instead.

Each failure is a row of a list that was read from the sources and issue trackers of other crawlers; their names follow.
"""

from collections.abc import Callable, Mapping

import pytest

from tests.core.change import test_variants
from tests.core.noise import test_volatile
from tests.core.page import test_fingerprint
from tests.core.visit import test_lifecycle, test_visit
from tests.engine import test_changes, test_kill, test_living
from tests.engine import test_lifecycle as test_lives
from tests.fetch import test_http_client
from tests.store.record import test_cash, test_record

Shown = tuple[Callable[..., object], ...]

CHANGE: Mapping[str, Shown] = {
    "conditional requests are off by default or half wired (StormCrawler, Heritrix, Nutch)": (
        test_living.test_the_second_look_sends_both_validators_verbatim,
        test_http_client.test_validators_are_sent_back_verbatim,
        test_changes.test_an_etag_goes_back_as_it_came_whatever_it_looks_like,
    ),
    "our own clock is sent as If-Modified-Since (Nutch, urlwatch)": (
        test_changes.test_a_server_whose_clock_is_wrong_gets_its_own_date_back,
    ),
    "a hash of the bytes makes every token a change (Nutch, Heritrix)": (
        test_visit.test_invisible_difference_is_no_change,
        test_changes.test_what_differs_at_every_request_is_no_change_and_an_edit_beside_it_is,
        test_living.test_changes_are_found_and_clocks_and_tokens_are_none,
    ),
    "words that come once are dropped, so that the edit of a price is not seen (Nutch)": (
        test_visit.test_changed_digit_of_a_price_is_a_change,
        test_changes.test_an_edit_that_others_miss_is_one_version_more_and_one_event,
    ),
    "digits are ignored (BUbiNG)": (
        test_visit.test_changed_digit_of_a_price_is_a_change,
        test_changes.test_an_edit_that_others_miss_is_one_version_more_and_one_event,
    ),
    "sorted characters are compared (Firecrawl)": (
        test_changes.test_an_edit_that_others_miss_is_one_version_more_and_one_event,
    ),
    "only the head element is compared (crawl4ai)": (
        test_changes.test_an_edit_that_others_miss_is_one_version_more_and_one_event,
    ),
    "variants of a page are reported again and again (changedetection.io before it compared with several versions)": (
        test_changes.test_a_variant_that_was_seen_before_is_no_change_and_an_edit_beside_it_is,
        test_volatile.test_variant_shown_within_seconds_is_no_change_and_a_third_text_is,
        test_changes.test_a_variant_that_holds_for_a_day_is_told_until_it_was_back_twice_and_an_edit_beside_it_is,
        test_variants.test_words_that_returned_twice_are_a_variant,
        test_variants.test_difference_beside_a_variant_is_a_change,
    ),
    "the version before is not found, so that everything is new (Firecrawl)": (
        test_cash.test_a_record_killed_at_any_statement_leaves_no_trace_and_can_be_repeated,
        test_kill.test_killed_again_and_again_at_random_nothing_is_lost_and_nothing_is_there_twice,
        test_record.test_a_late_holder_records_nothing,
    ),
    "the simhash package overflows where one feature weighs 256 or more (simhash 2.1.2)": (
        test_fingerprint.test_any_nonblank_text_has_a_fingerprint,
        test_fingerprint.test_one_word_a_million_times_has_a_fingerprint,
        test_fingerprint.test_word_weight_above_a_byte_does_not_overflow,
    ),
}

LIFECYCLE: Mapping[str, Shown] = {
    "404, 410, 429 and 500 are one class (StormCrawler)": (
        test_lifecycle.test_each_kind_of_failure_has_its_own_consequences,
        test_lives.test_404_410_500_and_429_are_four_things_in_states_events_and_waits,
    ),
    "a parent that is not modified or skipped orphans and deletes its children (Norconex)": (
        test_lives.test_months_of_304_from_the_parents_and_skips_of_them_touch_no_child,
        test_lives.test_a_page_that_no_page_links_to_any_more_is_told_of_and_kept,
    ),
    "a page is removed at the first 404, or when a timeout comes twice (Firecrawl, Norconex)": (
        test_lives.test_404_once_is_an_accident_and_twice_a_tombstone_of_which_there_is_one,
        test_lives.test_a_name_that_does_not_resolve_for_three_days_says_nothing_about_pages,
        test_lives.test_maintenance_with_503_holds_the_domain_and_its_pages_stay_as_they_were,
        test_lives.test_a_page_that_alone_fails_for_half_a_year_is_no_tombstone,
    ),
    "a page that starts to redirect stays as it was (StormCrawler)": (
        test_lives.test_a_page_that_moves_is_told_of_over_a_chain_of_redirects,
        test_record.test_a_moved_page_passes_on_its_cash_and_later_payments,
        test_cash.test_a_page_that_starts_to_redirect_passes_on_its_history_and_cash,
        test_cash.test_history_follows_a_chain_of_moves,
    ),
    "known pages are never fetched again, and this is called incremental (deltafetch, Brozzler)": (
        test_changes.test_a_known_page_that_changed_is_asked_for_by_its_schedule_and_told,
        test_changes.test_an_edit_that_others_miss_is_one_version_more_and_one_event,
        test_living.test_changes_are_found_and_clocks_and_tokens_are_none,
    ),
}

SHOWN: Mapping[str, Mapping[str, Shown]] = {"Change detection": CHANGE, "Lifecycle": LIFECYCLE}


@pytest.mark.parametrize("failure", [*CHANGE, *LIFECYCLE])
def test_a_failure_of_other_crawlers_has_tests_that_are_collected(failure: str) -> None:
    for shown in {**CHANGE, **LIFECYCLE}[failure]:
        assert shown.__name__.startswith("test_")
        assert shown.__module__.rpartition(".")[2].startswith("test_")


def test_no_failure_of_either_kind_is_left_out() -> None:
    assert (len(CHANGE), len(LIFECYCLE)) == (10, 5)  # rows of the list under each heading
