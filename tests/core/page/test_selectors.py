"""Users' ignore and watch rules apply to both versions."""

import pickle
import re
import time

import pytest

from crawler.core.change.difference import NO_DIFFERENCE, compute_difference
from crawler.core.http.urls import Url
from crawler.core.noise.noise import NO_VOLATILE_CONTENT
from crawler.core.page.block import BlockKind, BlockList
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
    """Return the texts without the empty first block."""
    assert found[0].text == ""
    return [block.text for block in found[1:]]


def test_ignored_elements_are_left_out_with_their_content() -> None:
    found = blocks(page(), view=View(ignore=(".ad", "h1, title", "span.host")))

    assert said(found) == ["Costs 19.99 euros", "Built in 12 ms by"]


def test_watching_an_element_leaves_out_all_others() -> None:
    assert said(blocks(page(), view=View(watch=(".price",)))) == ["Costs 19.99 euros"]
    assert said(blocks(page(), view=View(watch=(".price b",)))) == ["19.99"]
    assert said(blocks(page(), view=View(watch=("title", "img")))) == ["Pump", "b.png"]
    assert said(blocks(page(), view=View(watch=(".ad",), ignore=("img",)))) == [
        "Buy boots",
        "https://example.com/boots",
    ]


def test_text_that_matches_an_expression_is_left_out() -> None:
    found = blocks(page(), view=View(ignore_text=(r"Built in \d+ ms", r"^Buy.*")))

    assert said(found) == ["Pump", "A pump", "https://example.com/boots", "b.png", "Costs 19.99 euros", "by web7"]
    assert all(block.kind is not BlockKind.TEXT or "Built" not in block.text for block in found)


def test_differences_in_ignored_parts_do_not_count() -> None:
    view = View(ignore=(".price",), ignore_text=(r"\d+ ms",))

    one, other = blocks(page(), view=view), blocks(page("5", "99"), view=view)

    assert compute_difference(one, other, NO_VOLATILE_CONTENT) == NO_DIFFERENCE
    assert compute_difference(blocks(page()), blocks(page("5", "99")), NO_VOLATILE_CONTENT)


def test_page_without_watched_elements_has_only_the_marker_block() -> None:
    view = View(watch=("#missing",))

    assert blocks(page(), view=view) == blocks("", view=view) != ()


def test_view_keeps_the_paths_of_the_full_page() -> None:
    whole = blocks(page())

    assert set(blocks(page(), view=View(watch=(".price",)))[1:]) <= set(whole)
    assert set(blocks(page(), view=View(ignore=(".ad",)))[1:]) <= set(whole)


def test_plain_text_is_filtered_by_expressions_and_not_by_selectors() -> None:
    view = View(ignore=("p",), watch=("h1",), ignore_text=("[0-9]+",))

    assert said(blocks("one 12\ntwo", content_type="text/plain", view=view)) == ["one", "two"]


@pytest.mark.parametrize(
    ("view", "complaint"),
    [
        ({"ignore": ("p[",)}, "is not a CSS selector"),
        ({"watch": ("",)}, "is not a CSS selector"),
        ({"watch": ("//div/p",)}, "is not a CSS selector; write an XPath as xpath://div/p"),
        ({"watch": ("xpath://div[",)}, "is not an XPath that finds elements"),
        ({"ignore_text": ("(",)}, "is not a regular expression"),
        ({"ignore_text": ("a*",)}, "at least one character"),
        ({"ignore_text": ("a" * (MAX_CHARS + 1),)}, "longer than"),
    ],
)
def test_invalid_view_is_rejected_in_one_sentence(view: dict[str, tuple[str, ...]], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        View(**view)


def test_number_of_selectors_per_rule_is_bounded() -> None:
    PageRule("/", view=View(ignore=("p",) * MAX_SELECTORS))
    with pytest.raises(ValueError, match="more than 50 selectors"):
        PageRule("/", view=View(ignore=("p",) * (MAX_SELECTORS + 1)))


def test_views_of_several_rules_are_merged() -> None:
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
def test_expressions_have_python_syntax_and_support_all_scripts(expression: str, text: str, left: str) -> None:
    assert View(ignore_text=(expression,)).without_ignored(text) == left
    assert re.sub(expression, "", text).split() == left.split()


def test_expressions_with_unbounded_time_are_rejected_in_one_sentence() -> None:
    began = time.process_time()
    assert View(ignore_text=("(a+)+$",)).without_ignored("a" * 60 + "!") == "a" * 60 + "!"
    assert time.process_time() - began < 1
    refused = View(ignore_text=("x", r"(a)\1"))
    assert refused.without_ignored("xaa") == "aa"
    (said,) = refused.problems
    assert "could run forever" in said
    assert pickle.loads(pickle.dumps(refused)) == refused
