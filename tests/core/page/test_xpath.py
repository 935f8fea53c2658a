"""Places named by XPath: on the tree that browsers build, whatever its parser knows."""

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
    """The texts of the elements that are found."""
    tree = LexborHTMLParser(markup)
    numbers = set(find_elements(expressions, tree))
    return [node.text().strip() for node in tree.css("*") if node.mem_id in numbers]


def test_what_browsers_add_to_a_table_is_there() -> None:
    assert found(TABLE, "/html/body/table/tbody/tr[3]/td[2]") == ["29.99"]
    assert found(TABLE, "//table/tr") == []
    assert found(TABLE, "//tr[td[1] = 'A']/td[2]") == ["19.99"]


def test_elements_are_found_by_what_stands_in_and_beside_them() -> None:
    assert found(TABLE, "//dt[. = 'Last update']/following-sibling::dd[1]") == ["10:15"]
    assert found(TABLE, "//p[contains(., 'Sold & sent')]") == ["Sold & sent"]
    assert found(TABLE, "//a[@rel = 'sponsored']", "//dt[2]") == ["Maker", "buy boots"]
    assert found(TABLE, "//*[contains(concat(' ', @class, ' '), ' note ')]") == ["Sold & sent"]


def test_what_is_named_by_xpath_is_ignored_or_watched() -> None:
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
def test_what_finds_no_elements_is_refused_in_a_sentence(expression: str) -> None:
    with pytest.raises(ValueError, match=r"is not an XPath that finds elements|selects attributes or text"):
        View(ignore=(f"xpath:{expression}",))


@pytest.mark.parametrize(
    "expression", ["//p[position() < last()]", "//p['[@x' = .]", "(//p | //a)[2]", "//a/..", "//p[@a]"]
)
def test_what_finds_elements_is_taken(expression: str) -> None:
    assert View(watch=(f"xpath:{expression}",)).is_unbounded


def test_an_expression_that_fails_on_one_page_finds_nothing_there() -> None:
    late = "//p[@class and upper(.) = 'A']"  # "and" hides from the first look what is behind it

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
def test_whatever_the_markup_elements_are_those_that_selectors_find(css: str, xpath: str, parts: list[str]) -> None:
    tree = LexborHTMLParser("".join(parts))

    assert set(find_elements([xpath], tree)) == {node.mem_id for node in tree.css(css)}
