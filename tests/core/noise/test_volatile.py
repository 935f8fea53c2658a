"""What two looks at once teach: which words differ though nothing happened, and which never did."""

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
from crawler.core.page.outline import Block, BlockKind
from tests.core.pages import DAY, HERE, Domain, blocks, paragraph

PAGE, OTHER = compute_page_key(HERE), compute_page_key(Url("https://example.com/docs/b.html"))

words = st.lists(st.sampled_from(["a", "b", "7", "9", "12d", "x"]), min_size=1, max_size=6).map(" ".join)


def learnt(*pairs: tuple[str, str]) -> VolatileContent:
    """After looks at paragraphs that were replaced within seconds, and once more so."""
    known = NO_VOLATILE_CONTENT
    for before, after in (*pairs, *pairs):
        one, other = paragraph(before), paragraph(after)
        known = learn_from_second_fetch(known, page=PAGE, differing=[(one, other)], first=[one], second=[other])
    return known


def test_a_clock_is_masked_and_the_price_beside_it_is_not() -> None:
    clock = "<p>Now it is {}</p><p>Price 19.99</p>"
    domain = Domain()
    domain.look(clock.format("10:15"), clock.format("10:20"), clock.format("10:21"), clock.format("10:22"))

    assert domain.look(clock.format("10:20"), clock.format("11:58")) == NO_DIFFERENCE
    left = domain.look(clock.format("10:20"), clock.format("11:58").replace("19.99", "19.98"))
    assert [(one.text, other.text) for one, other in left.replaced] == [("Price 19.99", "Price 19.98")]


def test_a_clock_and_a_price_in_one_sentence_are_told_apart() -> None:
    said = "<p>At {} it costs {} euros</p>"
    domain = Domain()
    domain.look(said.format("10:15", 5), said.format("10:20", 5), said.format("10:21", 5), said.format("10:22", 5))

    assert domain.look(said.format("10:20", 5), said.format("11:00", 5)) == NO_DIFFERENCE
    assert domain.look(said.format("10:20", 5), said.format("11:00", 6))


def test_a_price_that_was_changed_between_two_looks_is_news_and_so_is_its_next_change() -> None:
    page = "<h1>Kettle</h1><p>Price {} EUR</p><p>Teapot {} EUR</p>"
    domain = Domain()

    assert domain.look(page.format(19, 7), page.format(19, 8), page.format(24, 9), page.format(24, 9))
    for before, after in ((24, 29), (29, 9), (9, 149)):
        assert domain.look(page.format(before, 9), page.format(after, 9), page.format(after, 9))


def test_a_price_that_stood_still_beside_two_counters_is_compared_though_it_looks_like_them() -> None:
    rows = "<table><tr><td>{} EUR</td></tr><tr><td>{} times</td></tr><tr><td>{} people</td></tr></table>"
    domain = Domain()
    domain.look(rows.format(20, 1, 41), rows.format(20, 2, 45), rows.format(20, 3, 44), rows.format(20, 4, 42))

    assert domain.look(rows.format(20, 4, 42), rows.format(20, 9, 17)) == NO_DIFFERENCE
    left = domain.look(rows.format(20, 4, 42), rows.format(35, 9, 17))
    assert [(one.text, other.text) for one, other in left.replaced] == [("20 EUR", "35 EUR")]
    other = rows.replace("EUR", "dollars")  # which no pair has shown, as yet
    assert domain.look(other.format(1, 2, 3), other.format(1, 5, 8), other.format(1, 6, 7), path="b") == NO_DIFFERENCE
    assert domain.look(other.format(1, 2, 3), other.format(7, 5, 8), path="b")


def test_a_product_in_the_markup_of_suggestions_by_turns_is_compared() -> None:
    item = "<li>Kettle {} for {} EUR</li>"
    domain = Domain()

    def page(price: int, *turn: tuple[str, int]) -> str:
        return f"<ul>{item.format('red', price)}{''.join(item.format(*each) for each in turn)}</ul>"

    shown = [page(19, ("blue", 25)), page(19, ("green", 31)), page(19, ("white", 52)), page(19, ("black", 44))]
    domain.look(*shown)

    assert domain.look(shown[-1], page(29, ("blue", 25)))


def test_what_is_about_a_volatile_number_is_still_compared() -> None:
    known = learnt(("seen 394d ago", "seen 395d ago"))

    assert known.mask_words(paragraph("seen 12d ago")) == ("seen", f"{NUMBER}d", "ago")
    assert known.mask_words(paragraph("seen 12h ago")) == ("seen", "12h", "ago")


def test_a_place_of_another_path_is_not_masked() -> None:
    known = learnt(("at 10:15", "at 10:16"))

    assert known.mask_words(Block(1, "at 10:17")) == ("at", "10:17")


def test_two_texts_that_share_nothing_are_no_pattern_but_noise() -> None:
    one, other = paragraph("buy these fine boots"), paragraph("fly to warm isles")

    known = NO_VOLATILE_CONTENT
    for _ in range(2):
        known = learn_from_second_fetch(known, page=PAGE, differing=[(one, other)], first=[one], second=[other])

    assert learn_replaced_words(NO_VOLATILE_CONTENT, one, other, unconfirmed={}, moved={}) is None
    assert known.patterns == {}
    assert known.is_noise(one)
    assert known.is_noise(other)


def test_what_one_second_fetch_alone_saw_come_and_go_may_have_been_edited_and_is_news_there_and_elsewhere() -> None:
    page = "<h1>Kettle</h1><p>A kettle for those who drink tea.</p><b>{}</b>"
    domain = Domain()

    stock, sold, gone = page.format("In stock"), page.format("Sold out today"), page.format("No more made")
    assert domain.look(stock.replace("tea", "mate"), stock, sold, sold)
    assert domain.look(stock, sold, path="b")
    assert domain.look(stock, gone, path="c")


def test_a_variant_that_was_shown_within_seconds_is_no_news_and_a_third_one_is() -> None:
    page = "<h2>{}</h2><p>Words that stay</p><h2>Other</h2><h2>Third</h2><h2>Fourth</h2>"
    domain = Domain()
    one, other = page.format("Try it free"), page.format("Start your journey today")
    domain.look(one, other, one, other)

    assert domain.look(page.format("Start your journey today"), page.format("Try it free")) == NO_DIFFERENCE
    assert domain.look(page.format("Start your journey today"), page.format("Closed until May"))


def test_a_path_on_which_most_blocks_differ_in_fetch_after_fetch_is_noise_whatever_it_says() -> None:
    known = NO_VOLATILE_CONTENT
    for page, one, other in ((PAGE, "boots", "isles of joy"), (OTHER, "cars for sale", "hats"), (PAGE, "x", "y z")):
        before, after = paragraph(one), paragraph(other)
        known = learn_from_second_fetch(
            known, page=page, differing=[(before, None), (None, after)], first=[before], second=[after]
        )

    assert known.is_noise(paragraph("never seen before"))


def test_a_place_that_stood_still_in_enough_second_fetches_needs_no_more_until_it_changes_as_often() -> None:
    still = paragraph("Price 19.99")
    known = NO_VOLATILE_CONTENT
    for _ in range(3):
        assert not known.is_tested(still)
        known = learn_from_second_fetch(known, page=PAGE, differing=[], first=[still], second=[still])

    assert known.is_tested(still)
    assert not known.is_untested(still)
    assert known.mask_words(still) == ("Price", "19.99")


def counted(said: str, *steps: tuple[int, float]) -> tuple[VolatileContent, int]:
    """After looks at a paragraph with a number that grows by so much in so many days each time; and the number then."""
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


def test_an_age_is_learnt_from_time_alone_and_is_forgiven_what_the_time_foretells() -> None:
    known, age = counted(AGE, (2, 2), (3, 3.4), (1, 1), (5, 5.1))

    assert counts(known, AGE, age, age + 4, 4)
    assert counts(known, AGE, 7, 8, 1)  # on another page
    assert not counts(known, AGE, age, age + 6, 4)
    assert not counts(known, AGE, age, age - 4, 4)
    assert not counts(known, AGE, age, age + 96, 4)  # hours, of which it never counted any
    assert known.mask_words(paragraph("built 300 days ago")) == ("built", "300", "days", "ago")


@pytest.mark.parametrize(
    "steps",
    [
        [(1, 1.0)] * 9,  # a price that rises by one a day, an issue
        [(1, 0.6), (1, 1.9), (1, 1.2), (1, 1.0), (1, 1.0)],
        [(3, 3.0)] * 9,
        [(2, 2.0), (3, 3.0), (72, 3.0)],  # in days, and in hours
    ],
)
def test_what_grows_by_one_or_always_by_the_same_does_not_count_the_time(steps: list[tuple[int, float]]) -> None:
    known, price = counted("Price {} EUR", *steps)

    assert not counts(known, "Price {} EUR", price, price + 1, 1)
    assert not counts(known, "Price {} EUR", price, price + 3, 3)


@pytest.mark.parametrize(("grown", "is_known"), [(3, True), (1, False)])
def test_an_age_is_learnt_from_several_pages_that_are_looked_at_together(grown: int, is_known: bool) -> None:
    page = "<h1>Text</h1><p>By Ann, {} days ago</p>"
    domain = Domain()
    for n in range(1, 5):
        domain.look(page.format(90 * n), page.format(90 * n + grown), path=str(n), later=grown * DAY)

    left = domain.look(page.format(500), page.format(500 + grown), path="5", later=grown * DAY)
    assert (left == NO_DIFFERENCE) == is_known
    assert domain.look(page.format(700), page.format(710), path="6", later=grown * DAY)


def test_an_age_that_grows_by_one_is_learnt_from_many_pages_and_forgiven_nothing_else() -> None:
    page = "<h1>Text</h1><p>By Ann, {} days ago</p>"
    domain = Domain()
    for n in range(1, 8):
        assert domain.look(page.format(90 * n), page.format(90 * n + 1), path=str(n), later=DAY)

    assert domain.look(page.format(500), page.format(501), path="8", later=DAY) == NO_DIFFERENCE
    assert domain.look(page.format(600), page.format(605), path="10", later=DAY)
    assert domain.look(page.format(700), page.format(701), path="11", later=DAY)  # which ended the belief


def test_one_disagreement_ends_the_belief_and_twice_as_much_is_asked_after_it() -> None:
    agreeing = [(2, 2.0), (3, 3.0), (4, 4.0)]
    known, age = counted(AGE, *agreeing)
    assert counts(known, AGE, age, age + 2, 2)

    known, age = counted(AGE, *agreeing, (7, 2.0), *agreeing)
    assert not counts(known, AGE, age, age + 2, 2)
    known, age = counted(AGE, *agreeing, (7, 2.0), *agreeing, *agreeing)
    assert counts(known, AGE, age, age + 2, 2)


def test_nothing_is_counted_where_no_time_passed() -> None:
    known, left = counted("{} left", (1, 0), (2, 0), (3, 0))

    assert not counts(known, "{} left", left, left + 1, 0)


def test_a_price_that_rises_by_one_a_day_is_news_each_day_and_so_is_its_jump() -> None:
    page = "<h1>Kettle</h1><p>For those who drink tea.</p><b>Price {} EUR</b>"
    domain = Domain()
    for day in range(9):
        assert domain.look(page.format(20 + day), page.format(21 + day))

    assert domain.look(page.format(29), page.format(199))


@pytest.mark.parametrize("many", [MAX_PATHS + 50])
def test_the_tables_are_bounded_and_the_oldest_are_forgotten(many: int) -> None:
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
    assert known.mask_words(first[0]) == ("at", "10:10")  # forgotten
    assert known.get_gaps(first[MAX_PATTERNS].css_path, ("at", "11:20"))


def test_patterns_of_one_path_and_length_are_bounded() -> None:
    kinds = [f"{chr(97 + n // 26)}{chr(97 + n % 26)}" for n in range(MAX_PATTERNS_PER_SHAPE + 20)]
    known = learnt(*((f"kind {kind} at 10:15", f"kind {kind} at 10:16") for kind in kinds))

    assert max(map(len, known.patterns.values())) == MAX_PATTERNS_PER_SHAPE


@settings(max_examples=60)
@given(pairs=st.lists(st.tuples(words, words), max_size=6), probe=words)
def test_a_mask_takes_no_word_away_and_adds_none(pairs: list[tuple[str, str]], probe: str) -> None:
    known = learnt(*pairs)
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
def test_after_a_second_fetch_the_same_two_looks_no_longer_differ(before: str, after: str) -> None:
    known = learnt((before, after))
    one, other = paragraph(before), paragraph(after)

    same = len(set(known.mask_pair(one, other))) == 1
    assert same or (known.is_noise(one) and known.is_noise(other))


def test_a_picture_that_stands_still_beside_a_banner_is_still_compared() -> None:
    page = "<div>{}<img src={}></div>"
    domain = Domain()
    for one, other in (("Moderators wanted", "Vote now!"), ("Donate to keep us running", "The meetup has moved")):
        domain.look(page.format("Sign up", "1.png"), page.format(one, "1.png"), page.format(other, "1.png"))

    assert domain.look(page.format("Vote now!", "1.png"), page.format("Hello", "1.png")) == NO_DIFFERENCE
    left = domain.look(page.format("Vote now!", "1.png"), page.format("Hello", "2.png"))
    assert left.kinds == {BlockKind.IMAGE}


def test_a_banner_that_was_the_same_in_some_second_fetches_is_one_all_the_same() -> None:
    one, other = paragraph("Moderators wanted"), paragraph("The meetup moved to the harbour")
    known = NO_VOLATILE_CONTENT
    for n, second in enumerate((one, other, one, other, other)):
        lost = [(one, None), (None, second)] if second is not one else []
        known = learn_from_second_fetch(
            known, page=OTHER if n % 2 else PAGE, differing=lost, first=[one], second=[second]
        )

    assert known.is_noise(paragraph("Donate to keep us running"))


def test_one_second_fetch_in_which_all_differed_tells_nothing_of_what_is_said_there_on_other_days() -> None:
    page = "<h1>Kettle</h1><p>A kettle for those who drink tea.</p><b>Price {} EUR</b>"
    blocked = "<div><h1>One moment</h1></div><i>You are asking too fast</i>"
    domain = Domain()
    for path in ("a", "b"):
        domain.look(page.format("19.99"), page.format("24.99"), blocked, path=path)
        assert domain.look(page.format("24.99"), page.format("199.00"), path=path)


def test_what_stands_in_place_of_a_banner_that_came_within_seconds_was_one() -> None:
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
def test_numbers_and_signs_do_not_make_two_texts_one_place(before: str, after: str) -> None:
    assert (
        learn_replaced_words(NO_VOLATILE_CONTENT, paragraph(before), paragraph(after), unconfirmed={}, moved={}) is None
    )


def test_a_link_to_another_page_of_a_folder_is_another_link() -> None:
    one, other = (Block(1, f"https://example.com/docs/{name}.html", BlockKind.LINK) for name in ("zebra", "apple"))

    assert learn_replaced_words(NO_VOLATILE_CONTENT, one, other, unconfirmed={}, moved={}) is None


def test_ages_beside_names_of_any_length_are_learnt_together() -> None:
    domain = Domain()
    page = "<p>by {} {} days ago</p>"
    for n, name in enumerate(("Ann", "Ben Carl Doe", "Eve Fox"), 2):
        domain.look(page.format(name, 100), page.format(name, 100 + n), path=name, later=n * DAY)

    assert domain.look(page.format("A B C D", 7), page.format("A B C D", 8), path="x") == NO_DIFFERENCE


def test_a_clock_of_many_words_is_known_at_the_first_look() -> None:
    said = "<p>It is {} h {} min {} s</p><p>Price 19.99</p>"
    later = timedelta(hours=25, minutes=10)  # before noon, and noon
    before, after = said.format("10", "50", "11"), said.format("12", "00", "59")

    assert Domain().look(before, after, later=later) == NO_DIFFERENCE
    assert Domain().look(before, after.replace("19.99", "19.98"), later=later)
    assert Domain().look(before, said.format("13", "07", "59"), later=later)


def test_two_second_fetches_with_other_words_prove_what_differed_in_both_whatever_else_is_said() -> None:
    page = "<h1>Kettle</h1><p>Made on {} in {} ms</p>"
    domain = Domain()
    domain.look(page.format("Monday", 7), page.format("Monday", 8), page.format("Monday", 9))
    domain.look(page.format("Monday", 9), page.format("Friday", 5), page.format("Friday", 6))

    assert domain.mask.volatile.mask_words(blocks(page.format("Sunday", 3))[-1])[-2:] == (NUMBER, "ms")
    assert domain.look(page.format("Friday", 6), page.format("Sunday", 3))


@pytest.mark.parametrize(("one", "other"), [("Price 7 EUR", "Price 8 EUR"), ("In stock", "Sold out today")])
def test_what_was_proven_volatile_and_stands_still_in_many_second_fetches_is_compared_again(
    one: str, other: str
) -> None:
    page = "<h1>Kettle</h1><p>A kettle for those who drink tea.</p><h2>{}</h2><h3>{}</h3>"
    said = [page.format(each, 1) for each in (one, other, one, other)]
    domain = Domain()
    domain.look(*said)
    assert domain.look(said[0], said[1], path="b") == NO_DIFFERENCE

    steps = 0
    while domain.look(said[0], said[1], path="b") == NO_DIFFERENCE:
        domain.look(page.format(one, steps), page.format(one, steps + 1), page.format(one, steps + 1))
        steps += 1
        assert steps < STEADY * MAX_DIFFERENCES
    assert steps > STEADY


def test_what_moved_again_is_no_word_of_a_place_once_more_after_two_second_fetches() -> None:
    page = "<h1>Kettle</h1><p>{} people</p><h3>{}</h3>"
    domain = Domain()
    domain.look(*(page.format(n, 1) for n in (3, 4, 5, 6)))
    for n in range(STEADY * 3):
        domain.look(page.format(6, n), page.format(6, n + 1), page.format(6, n + 1))
    assert domain.look(page.format(6, 1), page.format(7, 1))

    assert domain.look(*(page.format(n, 1) for n in (7, 8, 9)))
    assert domain.look(*(page.format(n, 1) for n in (9, 4, 7))) == NO_DIFFERENCE


@pytest.mark.parametrize("shown", ["0.010", "0.0105", "1.5", "12", "1,234.5"])
def test_a_number_has_any_decimals_or_none(shown: str) -> None:
    known = learnt(("made in 0.09 s", "made in 0.11 s"))

    assert known.mask_words(paragraph(f"made in {shown} s")) == ("made", "in", NUMBER, "s")


@given(one=st.decimals(0, 9999, places=2), other=st.decimals(0, 9999, places=2))
def test_another_price_is_a_change_whichever_digits_it_has(one: Decimal, other: Decimal) -> None:
    page = "<p>Price {} EUR</p><p>Words that stay</p>"

    assert (Domain().look(page.format(one), page.format(other)) == NO_DIFFERENCE) is (one == other)
