"""A second fetch, seconds after the first, teaches only if it returned the same page."""

import pytest

from crawler.core.freshness.estimates import PRIOR
from crawler.core.http.robots import ALLOW_ALL
from crawler.core.http.urls import Scope, compute_page_key, get_authority
from crawler.core.page.snapshot import Parsed, parse_body
from crawler.core.visit.soft_errors import is_same_page
from crawler.core.visit.state import State
from crawler.core.visit.visit import DomainKnowledge, Target
from tests.core.pages import HERE, NOON

KNOWN = DomainKnowledge(scope=Scope(get_authority(HERE)), rules=ALLOW_ALL, agent="recrawl")
TARGET = Target(key=compute_page_key(HERE), url=HERE, depth=1, state=State.FETCHED, rate_estimate=PRIOR)
TEXT = "A kettle of steel for those who drink tea, in the morning and at night, and who like it hot and strong."
KETTLE = f"<html><head><title>Kettle</title></head><body><h1>Kettle</h1><p>{TEXT}</p><p>{{}}</p></body></html>"
SHORT = "<html><head><title>Kettle</title></head><body><h1>Kettle</h1><p>Price {} EUR</p></body></html>"


def read(markup: str) -> Parsed:
    return parse_body(markup.encode(), url=HERE, content_type="text/html; charset=utf-8")


def brought(first: str, second: str) -> bool:
    return is_same_page(TARGET, read(first), read(second), now=NOON, knowledge=KNOWN)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (KETTLE.format("Served in 12 ms"), KETTLE.format("Served in 9 ms")),
        (KETTLE.format("Buy fine boots"), KETTLE.format("Fly to warm isles, cheap as never before")),
        (SHORT.format("19.99"), SHORT.format("24.99")),
        (SHORT.replace("Kettle", "Said by chance").format(1), SHORT.replace("Kettle", "Said by chance").format(2)),
    ],
)
def test_second_fetch_with_a_partial_difference_is_the_same_page(first: str, second: str) -> None:
    assert brought(first, second)


BLOCKED = "<html><head><title>Checking</title></head><body><h1>One moment</h1><p>You ask too fast</p></body></html>"
LOGIN = KETTLE.format("<form><input type=password name=p></form>")


@pytest.mark.parametrize("first", [KETTLE.format("Price 19.99"), SHORT.format("19.99")])
@pytest.mark.parametrize("second", [BLOCKED, LOGIN, "", KETTLE.format("Price 19.99")[:150]])
def test_second_fetch_with_a_soft_error_or_truncated_body_is_not_the_same_page(first: str, second: str) -> None:
    assert not brought(first, second)


def test_second_fetch_with_another_text_is_not_the_same_page() -> None:
    words = "Other words by the dozen, not of tea. " * 6

    assert not brought(KETTLE.format(""), SHORT.replace("Price {} EUR", words).replace("<h1>Kettle</h1>", ""))
