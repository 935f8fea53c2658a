"""The rung that has decided where bodies differ and no significant block does."""

from dataclasses import replace
from datetime import timedelta

import pytest

from crawler.core.change.change import Change, Evidence, Verdict
from crawler.core.change.mask import NO_MASK
from crawler.core.change.observation import Observation, update_mask
from crawler.core.freshness.estimates import ExpectedMagnitude
from crawler.core.freshness.policies import parse_policy
from crawler.core.freshness.terms import VisitTerms
from crawler.core.page.selectors import FULL_VIEW, View
from crawler.core.page.snapshot import Parsed, parse_body
from crawler.core.visit.decide import compare_page, decide_visit, should_fetch_again
from crawler.core.visit.update import build_learned_visit
from crawler.core.visit.visit import NEVER, Baseline, Visit
from tests.core.visit.test_visit import DAY, KNOWN, NOW, fetched, html, seen, target

PRICE = "<p>Some text of the page that stays.<p class=price>Price 19.99<p>Seen by <b>12</b> people"


def parsed(markup: str, *, view: View = FULL_VIEW) -> Parsed:
    return parse_body(html(markup), url=target().url, content_type="text/html", robots_tag=None, view=view)


def look(then: str, now: str, *, view: View = FULL_VIEW, again: tuple[str, ...] = ()) -> Visit:
    """A look at a page that changed from `then` to `now`. again: its second fetches, a moment later."""
    target = seen(html(then))
    one, two, *others = (parsed(each, view=view) for each in (then, now, *again))
    baseline = Baseline(one.blocks, NOW - DAY, second_fetches=tuple(each.blocks for each in others))
    return decide_visit(target, fetched(html(now)), now=NOW, knowledge=KNOWN, parsed=two, baseline=baseline)


def test_what_a_rule_hides_is_reported_as_hidden_by_a_rule() -> None:
    for view in (View(ignore=(".price",)), View(ignore_text=(r"\d+\.\d+",)), View(watch=("b",))):
        visit = look(PRICE, PRICE.replace("19.99", "99.99"), view=view)

        assert (visit.change, visit.verdict.evidence) == (Change.COSMETIC, Evidence.RULE)


@pytest.mark.parametrize(
    ("then", "now"),
    [("", "<link rel=next href=/2>"), ("<iframe src=/one></iframe>", "<iframe src=/two></iframe>")],
)
def test_what_neither_a_reader_nor_a_rule_tells_is_markup(then: str, now: str) -> None:
    visit = look(then + PRICE, now + PRICE)

    assert (visit.change, visit.verdict.evidence) == (Change.COSMETIC, Evidence.MARKUP)


def test_what_a_rule_hides_is_reported_though_a_volatile_word_beside_it_differs_too() -> None:
    now = PRICE.replace("<b>12", "<b>13")
    again = [now.replace("13", said) for said in ("17", "15")]
    for view in (View(ignore=(".price",)), View(ignore_text=(r"\d+\.\d+",))):
        visit = look(PRICE, now.replace("19.99", "99.99"), view=view, again=tuple(again))

        assert (visit.change, visit.verdict.evidence) == (Change.COSMETIC, Evidence.RULE)


def test_where_a_rule_hides_nothing_that_differs_it_has_decided_nothing() -> None:
    visit = look(PRICE, PRICE + "<link rel=next href=/2>", view=View(ignore=(".price",)))

    assert (visit.change, visit.verdict.evidence) == (Change.COSMETIC, Evidence.MARKUP)


def test_seen_words_that_differ_are_reported_as_volatile_where_a_rule_hides_what_is_the_same() -> None:
    now = PRICE.replace("<b>12", "<b>13")
    for view in (FULL_VIEW, View(ignore=(".price",))):
        visit = look(PRICE, now, view=view, again=(PRICE.replace("12", "17"), PRICE.replace("12", "15")))

        assert (visit.change, visit.verdict.evidence) == (Change.COSMETIC, Evidence.VOLATILE)


def test_now_and_then_a_look_at_which_all_that_differs_is_masked_gets_a_second_fetch_to_test_that() -> None:
    mask, target = NO_MASK, seen(html("<p>0 people"))
    pages = [parsed(f"<p>{n} people").blocks for n in range(5)]
    mask = update_mask(mask, Observation(target.key, pages[1], NOW, pages[0], NOW - DAY, tuple(pages[2:])))
    now = parsed("<p>9 people")
    baseline = Baseline(pages[0], NOW - DAY)

    wanted = 0
    for visits in range(1000):
        known = replace(KNOWN, mask=replace(mask, visits=visits))
        comparison = compare_page(target, now, baseline, now=NOW, knowledge=known)
        assert not comparison.significant
        wanted += should_fetch_again(target, comparison, baseline, now=NOW, knowledge=known)
        fetched_twice = replace(baseline, second_fetches=(now.blocks,))
        comparison = compare_page(target, now, fetched_twice, now=NOW, knowledge=known)
        assert not should_fetch_again(target, comparison, fetched_twice, now=NOW, knowledge=known)

    assert 0 < wanted < 100


def due_after_change(bits: int, *, usual: ExpectedMagnitude | None = None) -> timedelta:
    """How long after a change the next look is due, where nothing is known but how far the versions are apart."""
    before = replace(seen(html(PRICE)), terms=VisitTerms(magnitude=usual))
    verdict = Verdict(Change.CHANGED, Evidence.BLOCKS, bits, 0.02)
    return build_learned_visit(before, verdict, now=NOW).due_at - NOW


def test_the_distance_alone_decides_how_soon_the_next_look_is_due() -> None:
    """Claim of README and `explain`: all else is kept, and another distance is another due time."""
    near, usual, far = (due_after_change(bits, usual=ExpectedMagnitude()) for bits in (1, 9, 30))

    assert far < usual < near
    assert due_after_change(1) == due_after_change(30)  # --change-weight equal: each change alike


def test_a_headline_is_worth_more_than_a_comma() -> None:
    text = "".join(f"<p>Sentence {n} of the page, with a comma, which stays as it is.</p>" for n in range(20))
    story = "".join(
        f"<p>All new: paragraph {n} of a story that was not there when the page was last read.</p>" for n in range(9)
    )
    comma = look(f"<h1>Old headline</h1>{text}", f"<h1>Old headline</h1>{text.replace('a comma,', 'a comma', 1)}")
    news = look(f"<h1>Old headline</h1>{text}", f"<h1>New headline</h1>{story}{text}")

    assert comma.change is news.change is Change.CHANGED
    assert comma.magnitude is not None
    assert news.magnitude is not None
    assert news.magnitude > 5 * comma.magnitude
    assert (news.magnitudes.changes, news.magnitudes.total) == (1, news.magnitude)


def test_a_change_that_is_none_of_the_pages_own_has_no_distance_and_teaches_no_amount() -> None:
    visit = look(PRICE, PRICE.replace("19.99", "99.99"), view=View(ignore=(".price",)))

    assert (visit.change, visit.verdict.distance_bits, visit.magnitude) == (Change.COSMETIC, 0, None)
    assert visit.magnitudes == visit.target.magnitudes


@pytest.mark.parametrize("text", ["value", "similarity", "fixed 7d", "fixed 90m"])
def test_each_policy_keeps_the_bounds_and_a_page_that_is_wanted_once(text: str) -> None:
    bounds = VisitTerms(min_interval=timedelta(hours=12), max_interval=timedelta(days=5), revisit=parse_policy(text))
    for change in (Change.UNCHANGED, Change.CHANGED):
        before = replace(seen(html(PRICE)), terms=bounds, visits=3)
        visit = build_learned_visit(before, Verdict(change, Evidence.BLOCKS, 3, 0.1), now=NOW)

        assert bounds.min_interval <= visit.due_at - NOW <= bounds.max_interval
        once = replace(before, terms=replace(bounds, once=True))
        assert build_learned_visit(once, Verdict(change, Evidence.BLOCKS, 3, 0.1), now=NOW).due_at == NEVER


def test_likeness_shortens_the_next_period_by_how_unlike_the_versions_are_and_lengthens_it_without_a_change() -> None:
    terms = VisitTerms(revisit=parse_policy("similarity"))
    before = replace(seen(html(PRICE), ago=4 * DAY), terms=terms, visits=3, due_at=NOW)

    def period(change: Change, bits: int) -> timedelta:
        return build_learned_visit(before, Verdict(change, Evidence.BLOCKS, bits, 0.1), now=NOW).due_at - NOW

    assert period(Change.CHANGED, 30) < period(Change.CHANGED, 5) < 4 * DAY < period(Change.UNCHANGED, 0)
    assert period(Change.COSMETIC, 0) == period(Change.UNCHANGED, 0)
