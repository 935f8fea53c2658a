"""A second fetch of a page is distinguished from one that was not possible: only the former cost a request."""

from functools import partial

import pytest

from crawler.core.http.response import Response
from crawler.core.http.urls import Url
from crawler.core.page.block import BlockList
from crawler.core.page_rules import PageRules
from crawler.engine.extra_fetches import refetch_page
from crawler.engine.parsing.parser_pool import DomainParser, ParserPool
from tests.core.visit.test_compare import parsed
from tests.core.visit.test_visit import KNOWN, NOW, fetched, html, seen

PAGE = "<p>Some text of the page that stays.<p>Price 19.99"


@pytest.mark.parametrize(
    ("answer", "found"),
    [(None, None), (fetched(b"", status=503), ()), (fetched(html(PAGE)), parsed(PAGE).blocks)],
)
async def test_a_second_look_is_the_page_or_nothing_and_none_where_there_was_no_request(
    answer: Response | None, found: BlockList | None
) -> None:
    async def ask(_url: Url) -> Response | None:
        return answer

    async with ParserPool(0) as readers:
        parser = DomainParser(readers, PageRules(()))
        target = seen(html(PAGE))
        read = partial(parser.parse, url=target.url, with_blocks=True)
        outline = await refetch_page(target, parsed(PAGE), ask, read, now=NOW, knowledge=KNOWN)

    assert outline == found
