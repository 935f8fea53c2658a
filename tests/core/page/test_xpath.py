"""XPath on the tree that browsers build."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from selectolax.lexbor import LexborHTMLParser

from crawler.core.page.selectors import View
from crawler.core.page.xpath import find_elements
from tests.core.pages import blocks, texts

TABLE = """
<!doctype html><title>Pumps</title><!-- made by hand -->
<table><caption>Stock</caption>
<tr><th>Pump<th>Price<tr><td>A<td>19.99<tr><td>B<td>29.99
</table>
<dl><dt>Last update<dd>10:15<dt>Maker<dd>Acme</dl>
<p>Read <a href=/docs>the docs</a>, <a href=/ad rel=sponsored>buy boots</a><p class="note b">Sold &amp; sent
"""


def found(markup: str, *expressions: str) -> list[str]:
    """Return the texts of the found elements."""
    tree = LexborHTMLParser(markup)
    numbers = set(find_elements(expressions, tree))
    return [node.text().strip() for node in tree.css("*") if node.mem_id in numbers]


def test_elements_added_by_browsers_are_found() -> None:
    assert found(TABLE, "/html/body/table/tbody/tr[3]/td[2]") == ["29.99"]
    assert found(TABLE, "//table/tr") == []
    assert found(TABLE, "//tr[td[1] = 'A']/td[2]") == ["19.99"]


def test_elements_are_found_by_content_and_neighbors() -> None:
    assert found(TABLE, "//dt[. = 'Last update']/following-sibling::dd[1]") == ["10:15"]
    assert found(TABLE, "//p[contains(., 'Sold & sent')]") == ["Sold & sent"]
    assert found(TABLE, "//a[@rel = 'sponsored']", "//dt[2]") == ["Maker", "buy boots"]
    assert found(TABLE, "//*[contains(concat(' ', @class, ' '), ' note ')]") == ["Sold & sent"]


def test_xpath_ignores_or_watches_elements() -> None:
    without = View(ignore=("xpath://dt[. = 'Last update']/following-sibling::dd[1]", "p"))
    only = View(watch=("xpath://tr[td = 'B']", "dd:last-child"))

    assert texts(blocks(TABLE, view=without)) == [
        *["", "Stock", "Pump", "Price", "A", "19.99", "B", "29.99", "Last update", "Maker", "Acme"]
    ]
    assert texts(blocks(TABLE, view=only)) == ["", "B", "29.99", "Acme"]


@pytest.mark.parametrize(
    "expression",
    [
        *("", "//p[", "//p)", "count(//p)", "'p'", "//p/text()", "//a/@href", "(//a/@href)[1]", "//comment()"),
        *("//a[1]/attribute::href | //p", "//p[$limit]", "//p[upper(.) = 'A']", "//p[contains(.)]", "//x:p"),
    ],
)
def test_expression_that_finds_no_elements_is_rejected_in_one_sentence(expression: str) -> None:
    with pytest.raises(ValueError, match=r"is not an XPath that finds elements|selects attributes or text"):
        View(ignore=(f"xpath:{expression}",))


@pytest.mark.parametrize(
    "expression", ["//p[position() < last()]", "//p['[@x' = .]", "(//p | //a)[2]", "//a/..", "//p[@a]"]
)
def test_expression_that_finds_elements_is_accepted(expression: str) -> None:
    assert View(watch=(f"xpath:{expression}",)).is_unbounded


def test_expression_that_fails_on_one_page_finds_nothing_there() -> None:
    late = "//p[@class and upper(.) = 'A']"  # "and" hides the second operand from the check

    assert found(TABLE, late, "//dt[2]") == ["Maker"]


@pytest.mark.parametrize(
    ("css", "xpath"),
    [("*", "//*"), ("tr > td:first-child", "//tr/td[not(preceding-sibling::*)]"), ("[class]", "//*[@class]")],
)
@given(
    parts=st.lists(
        st.sampled_from(
            [
                "<p class=a>",
                "</p>",
                "<table>",
                "<tr>",
                "<td>",
                "<svg><a/>",
                "x",
                "</table>",
                "<b",
                ">",
                "<é a=1>",
                "<x:y>",
                "\0",
                "\x01",
                "<!--",
                "-->",
                "<template>",
                "'",
            ]
        )
    )
)
def test_xpath_and_selectors_find_the_same_elements(css: str, xpath: str, parts: list[str]) -> None:
    tree = LexborHTMLParser("".join(parts))

    assert set(find_elements([xpath], tree)) == {node.mem_id for node in tree.css(css)}
