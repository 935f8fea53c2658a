"""What is told to have decided where bodies differ and nothing of it is news."""

import pytest

from crawler.core.change import Change, Rung, understand
from crawler.core.decide import decide
from crawler.core.view import WHOLE, View
from crawler.core.visit import Earlier, Visit
from tests.core.test_visit import DAY, KNOWN, NOW, fetched, html, seen

PRICE = "<p>Some text of the page that stays.<p class=price>Price 19.99<p>Seen by <b>12</b> people"


def look(then: str, now: str, *, view: View = WHOLE, again: tuple[str, ...] = ()) -> Visit:
    """A look at a page that said the one and says the other, and others a moment later."""
    target = seen(html(then))
    one, two, *others = (
        understand(html(each), url=target.url, content_type="text/html", robots_tag=None, view=view)
        for each in (then, now, *again)
    )
    earlier = Earlier(one.outline, NOW - DAY, again=tuple(each.outline for each in others))
    return decide(target, fetched(html(now)), now=NOW, known=KNOWN, understood=two, earlier=earlier)


def test_what_a_rule_hides_is_told_to_be_hidden_by_a_rule() -> None:
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


def test_seen_words_that_differ_are_told_to_be_volatile_whatever_a_rule_hides() -> None:
    now = PRICE.replace("<b>12", "<b>13")
    for view in (WHOLE, View(ignore=(".price",))):
        visit = look(PRICE, now, view=view, again=(PRICE.replace("12", "17"), PRICE.replace("12", "15")))

        assert (visit.change, visit.verdict.rung) == (Change.COSMETIC, Rung.VOLATILE)
