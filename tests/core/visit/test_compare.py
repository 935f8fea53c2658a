"""The rung that has decided where bodies differ and no significant block does."""

from dataclasses import replace

import pytest

from crawler.core.change import NO_MASK, Change, Observation, Rung, update_mask
from crawler.core.page import WHOLE, Parsed, View, parse
from crawler.core.visit import Baseline, Visit, compare, decide, wants_second_fetch
from tests.core.visit.test_visit import DAY, KNOWN, NOW, fetched, html, seen, target

PRICE = "<p>Some text of the page that stays.<p class=price>Price 19.99<p>Seen by <b>12</b> people"


def parsed(markup: str, *, view: View = WHOLE) -> Parsed:
    return parse(html(markup), url=target().url, content_type="text/html", robots_tag=None, view=view)


def look(then: str, now: str, *, view: View = WHOLE, again: tuple[str, ...] = ()) -> Visit:
    """A look at a page that changed from `then` to `now`. again: its second fetches, a moment later."""
    target = seen(html(then))
    one, two, *others = (parsed(each, view=view) for each in (then, now, *again))
    baseline = Baseline(one.blocks, NOW - DAY, second_fetches=tuple(each.blocks for each in others))
    return decide(target, fetched(html(now)), now=NOW, known=KNOWN, parsed=two, baseline=baseline)


def test_what_a_rule_hides_is_reported_as_hidden_by_a_rule() -> None:
    for view in (View(ignore=(".price",)), View(ignore_text=(r"\d+\.\d+",)), View(watch=("b",))):
        visit = look(PRICE, PRICE.replace("19.99", "99.99"), view=view)

        assert (visit.change, visit.verdict.rung) == (Change.COSMETIC, Rung.RULE)


@pytest.mark.parametrize(
    ("then", "now"),
    [("", "<link rel=next href=/2>"), ("<iframe src=/one></iframe>", "<iframe src=/two></iframe>")],
)
def test_what_neither_a_reader_nor_a_rule_tells_is_markup(then: str, now: str) -> None:
    visit = look(then + PRICE, now + PRICE)

    assert (visit.change, visit.verdict.rung) == (Change.COSMETIC, Rung.MARKUP)


def test_what_a_rule_hides_is_reported_though_a_volatile_word_beside_it_differs_too() -> None:
    now = PRICE.replace("<b>12", "<b>13")
    again = [now.replace("13", said) for said in ("17", "15")]
    for view in (View(ignore=(".price",)), View(ignore_text=(r"\d+\.\d+",))):
        visit = look(PRICE, now.replace("19.99", "99.99"), view=view, again=tuple(again))

        assert (visit.change, visit.verdict.rung) == (Change.COSMETIC, Rung.RULE)


def test_where_a_rule_hides_nothing_that_differs_it_has_decided_nothing() -> None:
    visit = look(PRICE, PRICE + "<link rel=next href=/2>", view=View(ignore=(".price",)))

    assert (visit.change, visit.verdict.rung) == (Change.COSMETIC, Rung.MARKUP)


def test_seen_words_that_differ_are_reported_as_volatile_where_a_rule_hides_what_is_the_same() -> None:
    now = PRICE.replace("<b>12", "<b>13")
    for view in (WHOLE, View(ignore=(".price",))):
        visit = look(PRICE, now, view=view, again=(PRICE.replace("12", "17"), PRICE.replace("12", "15")))

        assert (visit.change, visit.verdict.rung) == (Change.COSMETIC, Rung.VOLATILE)


def test_now_and_then_a_look_at_which_all_that_differs_is_masked_gets_a_second_fetch_to_test_that() -> None:
    mask, target = NO_MASK, seen(html("<p>0 people"))
    pages = [parsed(f"<p>{n} people").blocks for n in range(5)]
    mask = update_mask(mask, Observation(target.key, pages[1], NOW, pages[0], NOW - DAY, tuple(pages[2:])))
    now = parsed("<p>9 people")
    baseline = Baseline(pages[0], NOW - DAY)

    wanted = 0
    for looks in range(1000):
        known = replace(KNOWN, mask=replace(mask, looks=looks))
        comparison = compare(target, now, baseline, now=NOW, known=known)
        assert not comparison.significant
        wanted += wants_second_fetch(target, comparison, baseline, now=NOW, known=known)
        fetched_twice = replace(baseline, second_fetches=(now.blocks,))
        comparison = compare(target, now, fetched_twice, now=NOW, known=known)
        assert not wants_second_fetch(target, comparison, fetched_twice, now=NOW, known=known)

    assert 0 < wanted < 100
