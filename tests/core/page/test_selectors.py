"""What a user wants ignored or watched is so, on both sides of a comparison."""

import pickle
import re
import time

import pytest

from crawler.core.change.difference import NO_DIFFERENCE, compute_difference
from crawler.core.http.urls import Url
from crawler.core.noise.noise import NO_VOLATILE_CONTENT
from crawler.core.page.outline import BlockKind, BlockList
from crawler.core.page.selectors import FULL_VIEW, MAX_CHARS, View
from crawler.core.page_rules import MAX_SELECTORS, PageRule, PageRules
from tests.core.pages import blocks

PAGE = (
    "<title>Pump</title><h1>A pump</h1><div class=ad><p>Buy <a href=/boots>boots</a><img src=b.png></div>"
    "<p class=price>Costs <b>{price}</b> euros</p><p>Built in {ms} ms by <span class=host>web7</span></p>"
)


def page(price: str = "19.99", ms: str = "12") -> str:
    return PAGE.format(price=price, ms=ms)


def said(found: BlockList) -> list[str]:
    """Without the first block, which is always empty."""
    assert found[0].text == ""
    return [block.text for block in found[1:]]


def test_ignored_elements_are_not_seen_with_all_that_is_in_them() -> None:
    found = blocks(page(), view=View(ignore=(".ad", "h1, title", "span.host")))

    assert said(found) == ["Costs 19.99 euros", "Built in 12 ms by"]


def test_where_something_is_watched_nothing_else_is_seen() -> None:
    assert said(blocks(page(), view=View(watch=(".price",)))) == ["Costs 19.99 euros"]
    assert said(blocks(page(), view=View(watch=(".price b",)))) == ["19.99"]
    assert said(blocks(page(), view=View(watch=("title", "img")))) == ["Pump", "b.png"]
    assert said(blocks(page(), view=View(watch=(".ad",), ignore=("img",)))) == [
        "Buy boots",
        "https://example.com/boots",
    ]


def test_what_an_expression_finds_is_left_out_of_the_blocks() -> None:
    found = blocks(page(), view=View(ignore_text=(r"Built in \d+ ms", r"^Buy.*")))

    assert said(found) == ["Pump", "A pump", "https://example.com/boots", "b.png", "Costs 19.99 euros", "by web7"]
    assert all(block.kind is not BlockKind.TEXT or "Built" not in block.text for block in found)


def test_pages_that_differ_in_what_is_ignored_alone_do_not_differ() -> None:
    view = View(ignore=(".price",), ignore_text=(r"\d+ ms",))

    one, other = blocks(page(), view=view), blocks(page("5", "99"), view=view)

    assert compute_difference(one, other, NO_VOLATILE_CONTENT) == NO_DIFFERENCE
    assert compute_difference(blocks(page()), blocks(page("5", "99")), NO_VOLATILE_CONTENT)


def test_a_page_without_what_is_watched_has_no_block_but_the_mark_of_its_view() -> None:
    view = View(watch=("#missing",))

    assert blocks(page(), view=view) == blocks("", view=view) != ()


def test_the_places_that_are_seen_are_those_of_the_whole_page() -> None:
    whole = blocks(page())

    assert set(blocks(page(), view=View(watch=(".price",)))[1:]) <= set(whole)
    assert set(blocks(page(), view=View(ignore=(".ad",)))[1:]) <= set(whole)


def test_expressions_hold_for_plain_text_and_selectors_say_nothing_of_it() -> None:
    view = View(ignore=("p",), watch=("h1",), ignore_text=("[0-9]+",))

    assert said(blocks("one 12\ntwo", content_type="text/plain", view=view)) == ["one", "two"]


@pytest.mark.parametrize(
    ("view", "complaint"),
    [
        ({"ignore": ("p[",)}, "is no CSS selector"),
        ({"watch": ("",)}, "is no CSS selector"),
        ({"watch": ("//div/p",)}, "is no CSS selector; an XPath is written xpath://div/p"),
        ({"watch": ("xpath://div[",)}, "is no XPath that finds elements"),
        ({"ignore_text": ("(",)}, "is not a regular expression"),
        ({"ignore_text": ("a*",)}, "at least one character"),
        ({"ignore_text": ("a" * (MAX_CHARS + 1),)}, "longer than"),
    ],
)
def test_what_cannot_be_is_refused_in_a_sentence(view: dict[str, tuple[str, ...]], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        View(**view)


def test_a_rule_names_so_many_places_and_no_more() -> None:
    PageRule("/", view=View(ignore=("p",) * MAX_SELECTORS))
    with pytest.raises(ValueError, match="more than 50 selectors"):
        PageRule("/", view=View(ignore=("p",) * (MAX_SELECTORS + 1)))


def test_what_several_rules_say_of_a_page_holds_together() -> None:
    rules = PageRules(
        (
            PageRule("/", view=View(ignore=(".ad",))),
            PageRule("/a", view=View(ignore=(".ad", "nav"), ignore_text=("x+",))),
            PageRule("/b", view=View(watch=("main",))),
            PageRule("/c", weight=2.0),
        )
    )

    assert rules.merge_view(Url("http://site.test/a")) == View(ignore=(".ad", "nav"), ignore_text=("x+",))
    assert rules.merge_view(Url("http://site.test/b")) == View(ignore=(".ad",), watch=("main",))
    assert rules.merge_view(Url("http://site.test/c")) == View(ignore=(".ad",))
    assert PageRules().merge_view(Url("http://site.test/c")) is FULL_VIEW


@pytest.mark.parametrize(
    ("expression", "text", "left"),
    [
        (r"\d+ ms", "Built in \u0663\u0664 ms", "Built in"),
        (r"\b\w+\s*:", "Größe:\u00a0zehn", "zehn"),
        (r"[\w-]+@\S+", "von jörg-ü@example.com an", "von an"),
        (r"(?i)ÄRGER", "viel ärger heute", "viel heute"),
        (r"\u00e9t\u00e9 ?\Z", "un bel été", "un bel"),
        (r"[^\d\s]+", "a1 b2", "1 2"),
    ],
)
def test_expressions_are_written_as_python_writes_them_and_know_all_scripts(
    expression: str, text: str, left: str
) -> None:
    assert View(ignore_text=(expression,)).without_ignored(text) == left
    assert re.sub(expression, "", text).split() == left.split()


def test_no_expression_takes_for_ever_and_one_that_might_is_refused_in_a_sentence() -> None:
    began = time.process_time()
    assert View(ignore_text=("(a+)+$",)).without_ignored("a" * 60 + "!") == "a" * 60 + "!"
    assert time.process_time() - began < 1
    refused = View(ignore_text=("x", r"(a)\1"))
    assert refused.without_ignored("xaa") == "aa"
    (said,) = refused.refusals
    assert "could run forever" in said
    assert pickle.loads(pickle.dumps(refused)) == refused
