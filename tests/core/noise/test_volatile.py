"""Learning from second fetches: which words are volatile, and which are not."""

from datetime import timedelta
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crawler.core.change.difference import NO_DIFFERENCE
from crawler.core.http.urls import Url, compute_page_key
from crawler.core.noise.noise import MAX_PATHS, MAX_PATTERNS, NO_VOLATILE_CONTENT, VolatileContent
from crawler.core.noise.relative_time import is_relative_time_change, learn_relative_time
from crawler.core.noise.second_fetch import (
    MAX_NOISE_BLOCKS,
    MAX_PATTERNS_PER_SHAPE,
    learn_from_second_fetch,
    learn_replaced_words,
)
from crawler.core.noise.stability import MAX_DIFFERENCES, STEADY
from crawler.core.noise.words import NUMBER
from crawler.core.page.block import Block, BlockKind
from tests.core.pages import DAY, HERE, Domain, blocks, paragraph

PAGE, OTHER = compute_page_key(HERE), compute_page_key(Url("https://example.com/docs/b.html"))

words = st.lists(st.sampled_from(["a", "b", "7", "9", "12d", "x"]), min_size=1, max_size=6).map(" ".join)


def learn(*pairs: tuple[str, str]) -> VolatileContent:
    """Return what is learned from paragraphs that were replaced within seconds, twice."""
    known = NO_VOLATILE_CONTENT
    for before, after in (*pairs, *pairs):
        one, other = paragraph(before), paragraph(after)
        known = learn_from_second_fetch(known, page=PAGE, differing=[(one, other)], first=[one], second=[other])
    return known


def test_clock_is_masked_and_the_price_beside_it_is_not() -> None:
    clock = "<p>Now it is {}</p><p>Price 19.99</p>"
    domain = Domain()
    domain.visit(clock.format("10:15"), clock.format("10:20"), clock.format("10:21"), clock.format("10:22"))

    assert domain.visit(clock.format("10:20"), clock.format("11:58")) == NO_DIFFERENCE
    left = domain.visit(clock.format("10:20"), clock.format("11:58").replace("19.99", "19.98"))
    assert [(one.text, other.text) for one, other in left.replaced] == [("Price 19.99", "Price 19.98")]


def test_clock_and_price_in_one_sentence_are_distinguished() -> None:
    said = "<p>At {} it costs {} euros</p>"
    domain = Domain()
    domain.visit(said.format("10:15", 5), said.format("10:20", 5), said.format("10:21", 5), said.format("10:22", 5))

    assert domain.visit(said.format("10:20", 5), said.format("11:00", 5)) == NO_DIFFERENCE
    assert domain.visit(said.format("10:20", 5), said.format("11:00", 6))


def test_price_edited_between_two_fetches_stays_a_change() -> None:
    page = "<h1>Kettle</h1><p>Price {} EUR</p><p>Teapot {} EUR</p>"
    domain = Domain()

    assert domain.visit(page.format(19, 7), page.format(19, 8), page.format(24, 9), page.format(24, 9))
    for before, after in ((24, 29), (29, 9), (9, 149)):
        assert domain.visit(page.format(before, 9), page.format(after, 9), page.format(after, 9))


def test_steady_price_beside_two_counters_is_compared() -> None:
    rows = "<table><tr><td>{} EUR</td></tr><tr><td>{} times</td></tr><tr><td>{} people</td></tr></table>"
    domain = Domain()
    domain.visit(rows.format(20, 1, 41), rows.format(20, 2, 45), rows.format(20, 3, 44), rows.format(20, 4, 42))

    assert domain.visit(rows.format(20, 4, 42), rows.format(20, 9, 17)) == NO_DIFFERENCE
    left = domain.visit(rows.format(20, 4, 42), rows.format(35, 9, 17))
    assert [(one.text, other.text) for one, other in left.replaced] == [("20 EUR", "35 EUR")]
    other = rows.replace("EUR", "dollars")  # not seen in a second fetch so far
    assert domain.visit(other.format(1, 2, 3), other.format(1, 5, 8), other.format(1, 6, 7), path="b") == NO_DIFFERENCE
    assert domain.visit(other.format(1, 2, 3), other.format(7, 5, 8), path="b")


def test_product_among_rotating_suggestions_is_compared() -> None:
    item = "<li>Kettle {} for {} EUR</li>"
    domain = Domain()

    def page(price: int, *turn: tuple[str, int]) -> str:
        return f"<ul>{item.format('red', price)}{''.join(item.format(*each) for each in turn)}</ul>"

    shown = [page(19, ("blue", 25)), page(19, ("green", 31)), page(19, ("white", 52)), page(19, ("black", 44))]
    domain.visit(*shown)

    assert domain.visit(shown[-1], page(29, ("blue", 25)))


def test_words_around_a_volatile_number_are_compared() -> None:
    known = learn(("seen 394d ago", "seen 395d ago"))

    assert known.mask_words(paragraph("seen 12d ago")) == ("seen", f"{NUMBER}d", "ago")
    assert known.mask_words(paragraph("seen 12h ago")) == ("seen", "12h", "ago")


def test_block_at_another_path_is_not_masked() -> None:
    known = learn(("at 10:15", "at 10:16"))

    assert known.mask_words(Block(1, "at 10:17")) == ("at", "10:17")


def test_unrelated_texts_become_noise_and_not_a_pattern() -> None:
    one, other = paragraph("buy these fine boots"), paragraph("fly to warm isles")

    known = NO_VOLATILE_CONTENT
    for _ in range(2):
        known = learn_from_second_fetch(known, page=PAGE, differing=[(one, other)], first=[one], second=[other])

    assert learn_replaced_words(NO_VOLATILE_CONTENT, one, other, unconfirmed={}, differed={}) is None
    assert known.patterns == {}
    assert known.is_noise(one)
    assert known.is_noise(other)


def test_block_that_differed_in_one_second_fetch_stays_significant() -> None:
    page = "<h1>Kettle</h1><p>A kettle for those who drink tea.</p><b>{}</b>"
    domain = Domain()

    stock, sold, gone = page.format("In stock"), page.format("Sold out today"), page.format("No more made")
    assert domain.visit(stock.replace("tea", "mate"), stock, sold, sold)
    assert domain.visit(stock, sold, path="b")
    assert domain.visit(stock, gone, path="c")


def test_variant_shown_within_seconds_is_no_change_and_a_third_text_is() -> None:
    page = "<h2>{}</h2><p>Words that stay</p><h2>Other</h2><h2>Third</h2><h2>Fourth</h2>"
    domain = Domain()
    one, other = page.format("Try it free"), page.format("Start your journey today")
    domain.visit(one, other, one, other)

    assert domain.visit(page.format("Start your journey today"), page.format("Try it free")) == NO_DIFFERENCE
    assert domain.visit(page.format("Start your journey today"), page.format("Closed until May"))


def test_path_whose_blocks_mostly_differ_per_fetch_is_noise() -> None:
    known = NO_VOLATILE_CONTENT
    for page, one, other in ((PAGE, "boots", "isles of joy"), (OTHER, "cars for sale", "hats"), (PAGE, "x", "y z")):
        before, after = paragraph(one), paragraph(other)
        known = learn_from_second_fetch(
            known, page=page, differing=[(before, None), (None, after)], first=[before], second=[after]
        )

    assert known.is_noise(paragraph("never seen before"))


def test_steady_block_needs_no_second_fetch_until_it_changes_as_often() -> None:
    still = paragraph("Price 19.99")
    known = NO_VOLATILE_CONTENT
    for _ in range(3):
        assert not known.is_tested(still)
        known = learn_from_second_fetch(known, page=PAGE, differing=[], first=[still], second=[still])

    assert known.is_tested(still)
    assert not known.is_untested(still)
    assert known.mask_words(still) == ("Price", "19.99")


def counted(said: str, *steps: tuple[int, float]) -> tuple[VolatileContent, int]:
    """Visit a paragraph whose number grows; steps: growth and days. Return the result and the final number."""
    known, number = NO_VOLATILE_CONTENT, 100
    for grown, days in steps:
        before, after = paragraph(said.format(number)), paragraph(said.format(number + grown))
        known = learn_relative_time(known, before, after, page=PAGE, elapsed=days * DAY)
        number += grown
    return known, number


def counts(known: VolatileContent, said: str, before: int, after: int, days: float) -> bool:
    return is_relative_time_change(
        known, paragraph(said.format(before)), paragraph(said.format(after)), elapsed=days * DAY
    )


AGE = "built {} days ago"


def test_age_is_learned_from_time_and_only_predicted_values_are_ignored() -> None:
    known, age = counted(AGE, (2, 2), (3, 3.4), (1, 1), (5, 5.1))

    assert counts(known, AGE, age, age + 4, 4)
    assert counts(known, AGE, 7, 8, 1)  # on another page
    assert not counts(known, AGE, age, age + 6, 4)
    assert not counts(known, AGE, age, age - 4, 4)
    assert not counts(known, AGE, age, age + 96, 4)  # hours, which it never counted
    assert known.mask_words(paragraph("built 300 days ago")) == ("built", "300", "days", "ago")


@pytest.mark.parametrize(
    "steps",
    [
        [(1, 1.0)] * 9,  # a price or an issue number that grows by one a day
        [(1, 0.6), (1, 1.9), (1, 1.2), (1, 1.0), (1, 1.0)],
        [(3, 3.0)] * 9,
        [(2, 2.0), (3, 3.0), (72, 3.0)],  # first in days, then in hours
    ],
)
def test_number_that_grows_by_one_or_by_a_constant_is_not_a_clock(steps: list[tuple[int, float]]) -> None:
    known, price = counted("Price {} EUR", *steps)

    assert not counts(known, "Price {} EUR", price, price + 1, 1)
    assert not counts(known, "Price {} EUR", price, price + 3, 3)


@pytest.mark.parametrize(("grown", "is_known"), [(3, True), (1, False)])
def test_age_is_learned_from_several_pages_visited_together(grown: int, is_known: bool) -> None:
    page = "<h1>Text</h1><p>By Ann, {} days ago</p>"
    domain = Domain()
    for n in range(1, 5):
        domain.visit(page.format(90 * n), page.format(90 * n + grown), path=str(n), later=grown * DAY)

    left = domain.visit(page.format(500), page.format(500 + grown), path="5", later=grown * DAY)
    assert (left == NO_DIFFERENCE) == is_known
    assert domain.visit(page.format(700), page.format(710), path="6", later=grown * DAY)


def test_age_that_grows_by_one_is_learned_from_many_pages() -> None:
    page = "<h1>Text</h1><p>By Ann, {} days ago</p>"
    domain = Domain()
    for n in range(1, 8):
        assert domain.visit(page.format(90 * n), page.format(90 * n + 1), path=str(n), later=DAY)

    assert domain.visit(page.format(500), page.format(501), path="8", later=DAY) == NO_DIFFERENCE
    assert domain.visit(page.format(600), page.format(605), path="10", later=DAY)
    assert domain.visit(page.format(700), page.format(701), path="11", later=DAY)  # which discarded the clock


def test_one_disagreement_discards_a_clock_and_doubles_the_proof() -> None:
    agreeing = [(2, 2.0), (3, 3.0), (4, 4.0)]
    known, age = counted(AGE, *agreeing)
    assert counts(known, AGE, age, age + 2, 2)

    known, age = counted(AGE, *agreeing, (7, 2.0), *agreeing)
    assert not counts(known, AGE, age, age + 2, 2)
    known, age = counted(AGE, *agreeing, (7, 2.0), *agreeing, *agreeing)
    assert counts(known, AGE, age, age + 2, 2)


def test_no_clock_is_learned_without_elapsed_time() -> None:
    known, left = counted("{} left", (1, 0), (2, 0), (3, 0))

    assert not counts(known, "{} left", left, left + 1, 0)


def test_price_that_rises_by_one_a_day_is_always_a_change() -> None:
    page = "<h1>Kettle</h1><p>For those who drink tea.</p><b>Price {} EUR</b>"
    domain = Domain()
    for day in range(9):
        assert domain.visit(page.format(20 + day), page.format(21 + day))

    assert domain.visit(page.format(29), page.format(199))


@pytest.mark.parametrize("many", [MAX_PATHS + 50])
def test_learned_tables_are_bounded_and_the_oldest_are_dropped(many: int) -> None:
    first = [Block(n, f"at 10:1{n % 10}") for n in range(many)]
    second = [Block(n, f"at 11:2{n % 10}") for n in range(many)]
    lost = [(None, Block(n, "x")) for n in range(MAX_NOISE_BLOCKS + 50)]

    known = NO_VOLATILE_CONTENT
    for start in (50, 0):
        known = learn_from_second_fetch(
            known,
            page=PAGE,
            differing=[*zip(first[start : MAX_PATTERNS + 50], second[start:], strict=False), *lost],
            first=first,
            second=second,
        )

    assert len(known.unconfirmed_patterns) == MAX_PATTERNS
    assert len(known.noise_counts) == MAX_NOISE_BLOCKS
    assert len(known.path_stats) == len(known.shape_stats) == MAX_PATHS
    assert known.mask_words(first[0]) == ("at", "10:10")  # dropped
    assert known.get_gaps(first[MAX_PATTERNS].css_path, ("at", "11:20"))


def test_patterns_of_one_path_and_length_are_bounded() -> None:
    kinds = [f"{chr(97 + n // 26)}{chr(97 + n % 26)}" for n in range(MAX_PATTERNS_PER_SHAPE + 20)]
    known = learn(*((f"kind {kind} at 10:15", f"kind {kind} at 10:16") for kind in kinds))

    assert max(map(len, known.patterns.values())) == MAX_PATTERNS_PER_SHAPE


@settings(max_examples=60)
@given(pairs=st.lists(st.tuples(words, words), max_size=6), probe=words)
def test_mask_keeps_the_number_of_words(pairs: list[tuple[str, str]], probe: str) -> None:
    known = learn(*pairs)
    block = paragraph(probe)

    masked = known.mask_words(block)

    said = known.get_words(block)
    assert len(masked) == len(said)
    assert all(
        one == other or n in known.get_gaps(block.css_path, said)
        for n, (one, other) in enumerate(zip(masked, said, strict=True))
    )


@settings(max_examples=60)
@given(before=words, after=words)
def test_same_two_fetches_no_longer_differ_after_learning(before: str, after: str) -> None:
    known = learn((before, after))
    one, other = paragraph(before), paragraph(after)

    same = len(set(known.mask_pair(one, other))) == 1
    assert same or (known.is_noise(one) and known.is_noise(other))


def test_steady_image_beside_a_banner_is_compared() -> None:
    page = "<div>{}<img src={}></div>"
    domain = Domain()
    for one, other in (("Moderators wanted", "Vote now!"), ("Donate to keep us running", "The meetup has moved")):
        domain.visit(page.format("Sign up", "1.png"), page.format(one, "1.png"), page.format(other, "1.png"))

    assert domain.visit(page.format("Vote now!", "1.png"), page.format("Hello", "1.png")) == NO_DIFFERENCE
    left = domain.visit(page.format("Vote now!", "1.png"), page.format("Hello", "2.png"))
    assert left.kinds == {BlockKind.IMAGE}


def test_banner_that_repeats_in_some_second_fetches_is_noise() -> None:
    one, other = paragraph("Moderators wanted"), paragraph("The meetup moved to the harbour")
    known = NO_VOLATILE_CONTENT
    for n, second in enumerate((one, other, one, other, other)):
        lost = [(one, None), (None, second)] if second is not one else []
        known = learn_from_second_fetch(
            known, page=OTHER if n % 2 else PAGE, differing=lost, first=[one], second=[second]
        )

    assert known.is_noise(paragraph("Donate to keep us running"))


def test_one_second_fetch_with_all_blocks_different_proves_nothing() -> None:
    page = "<h1>Kettle</h1><p>A kettle for those who drink tea.</p><b>Price {} EUR</b>"
    blocked = "<div><h1>One moment</h1></div><i>You are asking too fast</i>"
    domain = Domain()
    for path in ("a", "b"):
        domain.visit(page.format("19.99"), page.format("24.99"), blocked, path=path)
        assert domain.visit(page.format("24.99"), page.format("199.00"), path=path)


def test_block_in_place_of_a_volatile_banner_is_noise() -> None:
    one, other, third = paragraph("Vote"), paragraph("Join us today"), paragraph("Never seen within seconds")
    known = NO_VOLATILE_CONTENT
    for _ in range(4):
        known = learn_from_second_fetch(known, page=PAGE, differing=[], first=[one], second=[one])
    for _ in range(2):
        lost = [(one, None), (None, other)]
        known = learn_from_second_fetch(known, page=PAGE, differing=lost, first=[one], second=[other])

    assert not known.is_noise(third)
    assert known.is_alternation(third, one)
    assert not known.is_alternation(third, paragraph("Neither was this"))


@pytest.mark.parametrize(
    ("before", "after"), [("CharSet 10", "StringUtils 7"), ("Ad: fine boots", "Ad: cheap flights"), ("Join!", "Vote!")]
)
def test_common_numbers_and_signs_do_not_make_one_block(before: str, after: str) -> None:
    assert (
        learn_replaced_words(NO_VOLATILE_CONTENT, paragraph(before), paragraph(after), unconfirmed={}, differed={})
        is None
    )


def test_link_to_another_page_of_a_directory_is_another_link() -> None:
    one, other = (Block(1, f"https://example.com/docs/{name}.html", BlockKind.LINK) for name in ("zebra", "apple"))

    assert learn_replaced_words(NO_VOLATILE_CONTENT, one, other, unconfirmed={}, differed={}) is None


def test_ages_beside_names_of_any_length_are_learned_together() -> None:
    domain = Domain()
    page = "<p>by {} {} days ago</p>"
    for n, name in enumerate(("Ann", "Ben Carl Doe", "Eve Fox"), 2):
        domain.visit(page.format(name, 100), page.format(name, 100 + n), path=name, later=n * DAY)

    assert domain.visit(page.format("A B C D", 7), page.format("A B C D", 8), path="x") == NO_DIFFERENCE


def test_clock_of_several_words_is_recognized_at_the_first_visit() -> None:
    said = "<p>It is {} h {} min {} s</p><p>Price 19.99</p>"
    later = timedelta(hours=25, minutes=10)  # before noon, and noon
    before, after = said.format("10", "50", "11"), said.format("12", "00", "59")

    assert Domain().visit(before, after, later=later) == NO_DIFFERENCE
    assert Domain().visit(before, after.replace("19.99", "19.98"), later=later)
    assert Domain().visit(before, said.format("13", "07", "59"), later=later)


def test_two_second_fetches_prove_words_that_differed_in_both() -> None:
    page = "<h1>Kettle</h1><p>Made on {} in {} ms</p>"
    domain = Domain()
    domain.visit(page.format("Monday", 7), page.format("Monday", 8), page.format("Monday", 9))
    domain.visit(page.format("Monday", 9), page.format("Friday", 5), page.format("Friday", 6))

    assert domain.mask.volatile.mask_words(blocks(page.format("Sunday", 3))[-1])[-2:] == (NUMBER, "ms")
    assert domain.visit(page.format("Friday", 6), page.format("Sunday", 3))


@pytest.mark.parametrize(("one", "other"), [("Price 7 EUR", "Price 8 EUR"), ("In stock", "Sold out today")])
def test_volatile_words_are_compared_again_after_many_steady_second_fetches(one: str, other: str) -> None:
    page = "<h1>Kettle</h1><p>A kettle for those who drink tea.</p><h2>{}</h2><h3>{}</h3>"
    said = [page.format(each, 1) for each in (one, other, one, other)]
    domain = Domain()
    domain.visit(*said)
    assert domain.visit(said[0], said[1], path="b") == NO_DIFFERENCE

    steps = 0
    while domain.visit(said[0], said[1], path="b") == NO_DIFFERENCE:
        domain.visit(page.format(one, steps), page.format(one, steps + 1), page.format(one, steps + 1))
        steps += 1
        assert steps < STEADY * MAX_DIFFERENCES
    assert steps > STEADY


def test_words_are_volatile_again_after_two_second_fetches() -> None:
    page = "<h1>Kettle</h1><p>{} people</p><h3>{}</h3>"
    domain = Domain()
    domain.visit(*(page.format(n, 1) for n in (3, 4, 5, 6)))
    for n in range(STEADY * 3):
        domain.visit(page.format(6, n), page.format(6, n + 1), page.format(6, n + 1))
    assert domain.visit(page.format(6, 1), page.format(7, 1))

    assert domain.visit(*(page.format(n, 1) for n in (7, 8, 9)))
    assert domain.visit(*(page.format(n, 1) for n in (9, 4, 7))) == NO_DIFFERENCE


@pytest.mark.parametrize("shown", ["0.010", "0.0105", "1.5", "12", "1,234.5"])
def test_number_has_any_decimals_or_none(shown: str) -> None:
    known = learn(("made in 0.09 s", "made in 0.11 s"))

    assert known.mask_words(paragraph(f"made in {shown} s")) == ("made", "in", NUMBER, "s")


@given(one=st.decimals(0, 9999, places=2), other=st.decimals(0, 9999, places=2))
def test_any_other_price_is_a_change(one: Decimal, other: Decimal) -> None:
    page = "<p>Price {} EUR</p><p>Words that stay</p>"

    assert (Domain().visit(page.format(one), page.format(other)) == NO_DIFFERENCE) is (one == other)
