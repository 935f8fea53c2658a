"""A second look is told apart from one that could not be had: only the former cost a request."""

import pytest

from crawler.core.http import Answer, Url
from crawler.core.page import Outline
from crawler.core.page_rules import Rules
from crawler.crawl import Lens, Readers
from crawler.crawl.extra_fetches import look_again
from tests.core.visit.test_compare import understood
from tests.core.visit.test_visit import KNOWN, NOW, fetched, html, seen

PAGE = "<p>Some text of the page that stays.<p>Price 19.99"


@pytest.mark.parametrize(
    ("answer", "found"),
    [(None, None), (fetched(b"", status=503), ()), (fetched(html(PAGE)), understood(PAGE).outline)],
)
async def test_a_second_look_is_the_page_or_nothing_and_none_where_there_was_no_request(
    answer: Answer | None, found: Outline | None
) -> None:
    async def ask(_url: Url) -> Answer | None:
        return answer

    async with Readers(0) as readers:
        lens = Lens(readers, Rules(()))
        outline = await look_again(seen(html(PAGE)), understood(PAGE), ask, lens, now=NOW, known=KNOWN)

    assert outline == found
