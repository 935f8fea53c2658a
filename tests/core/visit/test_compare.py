"""The evidence if bodies differ but no significant block does."""

from datetime import timedelta

import pytest
from msgspec.structs import replace

from crawler.core.change.change import Change, Evidence
from crawler.core.change.mask import NO_MASK
from crawler.core.change.mask_learning import Observation, update_mask
from crawler.core.change.verdict import Verdict
from crawler.core.freshness.estimates import ExpectedMagnitude
from crawler.core.freshness.policies import parse_policy
from crawler.core.freshness.visit_terms import VisitTerms
from crawler.core.page.selectors import FULL_VIEW, View
from crawler.core.page.snapshot import Parsed, parse_body
from crawler.core.visit.decide import compare_page, decide_visit, should_fetch_again
from crawler.core.visit.state import NEVER
from crawler.core.visit.update import build_learned_visit
from crawler.core.visit.visit import Baseline, Visit
from tests.core.visit.test_visit import DAY, KNOWN, NOW, fetched, html, seen, target

PRICE = "<p>Some text of the page that stays.<p class=price>Price 19.99<p>Seen by <b>12</b> people"


def parsed(markup: str, *, view: View = FULL_VIEW) -> Parsed:
    return parse_body(html(markup), url=target().url, content_type="text/html", view=view)


def revisit(then: str, now: str, *, view: View = FULL_VIEW, again: tuple[str, ...] = ()) -> Visit:
    """Visit a page that changed from `then` to `now`. again: its second fetches, a moment later."""
    target = seen(html(then))
    one, two, *others = (parsed(each, view=view) for each in (then, now, *again))
    baseline = Baseline(one.blocks, NOW - DAY, second_fetches=tuple(each.blocks for each in others))
    return decide_visit(target, fetched(html(now)), now=NOW, knowledge=KNOWN, parsed=two, baseline=baseline)


def test_difference_hidden_by_a_rule_has_evidence_rule() -> None:
    for view in (View(ignore=(".price",)), View(ignore_text=(r"\d+\.\d+",)), View(watch=("b",))):
        visit = revisit(PRICE, PRICE.replace("19.99", "99.99"), view=view)

        assert (visit.change, visit.verdict.evidence) == (Change.COSMETIC, Evidence.RULE)


@pytest.mark.parametrize(
    ("then", "now"),
    [("", "<link rel=next href=/2>"), ("<iframe src=/one></iframe>", "<iframe src=/two></iframe>")],
)
def test_difference_that_is_not_visible_has_evidence_markup(then: str, now: str) -> None:
    visit = revisit(then + PRICE, now + PRICE)

    assert (visit.change, visit.verdict.evidence) == (Change.COSMETIC, Evidence.MARKUP)


def test_difference_hidden_by_a_rule_takes_precedence_over_volatile_words() -> None:
    now = PRICE.replace("<b>12", "<b>13")
    again = [now.replace("13", number) for number in ("17", "15")]
    for view in (View(ignore=(".price",)), View(ignore_text=(r"\d+\.\d+",))):
        visit = revisit(PRICE, now.replace("19.99", "99.99"), view=view, again=tuple(again))

        assert (visit.change, visit.verdict.evidence) == (Change.COSMETIC, Evidence.RULE)


def test_rule_that_hides_no_difference_is_no_evidence() -> None:
    visit = revisit(PRICE, PRICE + "<link rel=next href=/2>", view=View(ignore=(".price",)))

    assert (visit.change, visit.verdict.evidence) == (Change.COSMETIC, Evidence.MARKUP)


def test_volatile_words_are_the_evidence_if_a_rule_hides_no_difference() -> None:
    now = PRICE.replace("<b>12", "<b>13")
    for view in (FULL_VIEW, View(ignore=(".price",))):
        visit = revisit(PRICE, now, view=view, again=(PRICE.replace("12", "17"), PRICE.replace("12", "15")))

        assert (visit.change, visit.verdict.evidence) == (Change.COSMETIC, Evidence.VOLATILE)


def test_masked_differences_occasionally_get_a_second_fetch() -> None:
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
    """Return how long after a change the next visit is due if only the distance of the versions is known."""
    before = replace(seen(html(PRICE)), terms=VisitTerms(magnitude=usual))
    verdict = Verdict(Change.CHANGED, Evidence.BLOCKS, bits, 0.02)
    return build_learned_visit(before, verdict, now=NOW).due_at - NOW


def test_distance_alone_changes_the_next_due_time() -> None:
    """README and `explain` state this: with all else equal, another distance gives another due time."""
    near, usual, far = (due_after_change(bits, usual=ExpectedMagnitude()) for bits in (1, 9, 30))

    assert far < usual < near
    assert due_after_change(1) == due_after_change(30)  # --change-weight equal: all changes count the same


def test_new_headline_has_a_higher_magnitude_than_a_new_comma() -> None:
    text = "".join(f"<p>Sentence {n} of the page, with a comma, which stays as it is.</p>" for n in range(20))
    story = "".join(
        f"<p>All new: paragraph {n} of a story that was not there when the page was last read.</p>" for n in range(9)
    )
    comma = revisit(f"<h1>Old headline</h1>{text}", f"<h1>Old headline</h1>{text.replace('a comma,', 'a comma', 1)}")
    news = revisit(f"<h1>Old headline</h1>{text}", f"<h1>New headline</h1>{story}{text}")

    assert comma.change is news.change is Change.CHANGED
    assert comma.magnitude is not None
    assert news.magnitude is not None
    assert news.magnitude > 5 * comma.magnitude
    assert (news.magnitudes.changes, news.magnitudes.total) == (1, news.magnitude)


def test_insignificant_change_has_no_distance_and_no_magnitude() -> None:
    visit = revisit(PRICE, PRICE.replace("19.99", "99.99"), view=View(ignore=(".price",)))

    assert (visit.change, visit.verdict.distance_bits, visit.magnitude) == (Change.COSMETIC, 0, None)
    assert visit.magnitudes == visit.target.magnitudes


@pytest.mark.parametrize("text", ["value", "similarity", "fixed 7d", "fixed 90m"])
def test_each_policy_respects_bounds_and_rule_once(text: str) -> None:
    bounds = VisitTerms(min_interval=timedelta(hours=12), max_interval=timedelta(days=5), revisit=parse_policy(text))
    for change in (Change.UNCHANGED, Change.CHANGED):
        before = replace(seen(html(PRICE)), terms=bounds, visits=3)
        visit = build_learned_visit(before, Verdict(change, Evidence.BLOCKS, 3, 0.1), now=NOW)

        assert bounds.min_interval <= visit.due_at - NOW <= bounds.max_interval
        once = replace(before, terms=replace(bounds, once=True))
        assert build_learned_visit(once, Verdict(change, Evidence.BLOCKS, 3, 0.1), now=NOW).due_at == NEVER


def test_similarity_policy_shortens_the_interval_after_a_change_and_lengthens_it_without() -> None:
    terms = VisitTerms(revisit=parse_policy("similarity"))
    before = replace(seen(html(PRICE), ago=4 * DAY), terms=terms, visits=3, due_at=NOW)

    def period(change: Change, bits: int) -> timedelta:
        return build_learned_visit(before, Verdict(change, Evidence.BLOCKS, bits, 0.1), now=NOW).due_at - NOW

    assert period(Change.CHANGED, 30) < period(Change.CHANGED, 5) < 4 * DAY < period(Change.UNCHANGED, 0)
    assert period(Change.COSMETIC, 0) == period(Change.UNCHANGED, 0)
