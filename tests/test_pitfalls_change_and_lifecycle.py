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
from tests.fetch import test_http
from tests.store.record import test_cash, test_record

Shown = tuple[Callable[..., object], ...]

CHANGE: Mapping[str, Shown] = {
    "conditional requests are off by default or half wired (StormCrawler, Heritrix, Nutch)": (
        test_living.test_the_second_visit_sends_both_validators_verbatim,
        test_http.test_validators_are_sent_back_verbatim,
        test_changes.test_an_etag_is_sent_back_verbatim,
    ),
    "our own clock is sent as If-Modified-Since (Nutch, urlwatch)": (
        test_changes.test_a_server_whose_clock_is_wrong_gets_its_own_date_back,
    ),
    "a hash of the bytes makes every token a change (Nutch, Heritrix)": (
        test_visit.test_what_no_reader_sees_is_no_change,
        test_changes.test_what_differs_at_every_request_is_no_change_but_an_edit_is,
        test_living.test_changes_are_found_but_clocks_and_tokens_are_not,
    ),
    "words that come once are dropped, so that the edit of a price is not seen (Nutch)": (
        test_visit.test_one_digit_of_a_price_is_a_change,
        test_changes.test_an_edit_that_others_miss_is_one_more_version_and_one_event,
    ),
    "digits are ignored (BUbiNG)": (
        test_visit.test_one_digit_of_a_price_is_a_change,
        test_changes.test_an_edit_that_others_miss_is_one_more_version_and_one_event,
    ),
    "sorted characters are compared (Firecrawl)": (
        test_changes.test_an_edit_that_others_miss_is_one_more_version_and_one_event,
    ),
    "only the head element is compared (crawl4ai)": (
        test_changes.test_an_edit_that_others_miss_is_one_more_version_and_one_event,
    ),
    "variants of a page are reported again and again (changedetection.io before it compared with several versions)": (
        test_changes.test_a_variant_that_was_seen_before_is_no_change_but_an_edit_is,
        test_volatile.test_a_variant_that_was_shown_within_seconds_is_no_news_and_a_third_one_is,
        test_changes.test_a_variant_that_lasts_a_day_is_reported_until_it_returned_twice_but_an_edit_is_always,
        test_variants.test_words_that_went_and_came_back_twice_are_a_variant_and_no_change,
        test_variants.test_what_differs_beside_a_variant_is_news,
    ),
    "the version before is not found, so that everything is new (Firecrawl)": (
        test_cash.test_a_record_that_is_killed_at_any_statement_never_was_and_can_be_made_again,
        test_kill.test_killed_repeatedly_at_random_nothing_is_lost_or_duplicated,
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
        test_lifecycle.test_404_410_429_and_500_are_four_things_and_redirects_no_response_and_refusals_others,
        test_lives.test_404_410_500_and_429_have_different_states_events_and_waits,
    ),
    "a parent that is not modified or skipped orphans and deletes its children (Norconex)": (
        test_lives.test_months_of_304_from_parents_and_skipped_visits_do_not_affect_children,
        test_lives.test_a_page_that_is_no_longer_linked_is_reported_and_kept,
    ),
    "a page is removed at the first 404, or when a timeout comes twice (Firecrawl, Norconex)": (
        test_lives.test_404_once_is_an_accident_and_twice_a_single_tombstone,
        test_lives.test_a_name_that_does_not_resolve_for_three_days_means_nothing_for_pages,
        test_lives.test_maintenance_with_503_suspends_the_domain_and_its_pages_stay_unchanged,
        test_lives.test_a_page_that_fails_alone_for_half_a_year_is_not_gone,
    ),
    "a page that starts to redirect stays as it was (StormCrawler)": (
        test_lives.test_a_page_that_moves_is_reported_over_a_chain_of_redirects,
        test_record.test_a_moved_page_passes_its_cash_and_later_payments_on,
        test_cash.test_a_page_that_starts_to_redirect_leaves_with_its_history_and_its_cash,
        test_cash.test_history_follows_a_page_that_moved_to_one_that_has_moved_on,
    ),
    "known pages are never fetched again, and this is called incremental (deltafetch, Brozzler)": (
        test_changes.test_a_known_page_that_changed_is_revisited_on_schedule_and_reported,
        test_changes.test_an_edit_that_others_miss_is_one_more_version_and_one_event,
        test_living.test_changes_are_found_but_clocks_and_tokens_are_not,
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
