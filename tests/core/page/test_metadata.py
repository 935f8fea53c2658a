"""What a page says about itself."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.core.page.html import parse_html
from crawler.core.page.metadata import MAX_JSON_LD_CHARS, read_metadata


def read(head: str) -> dict[str, object]:
    return read_metadata(parse_html(f"<head>{head}</head><body>".encode(), "text/html; charset=utf-8").scan.records)


def ld(value: object) -> str:
    return f'<script type="application/ld+json">{value if isinstance(value, str) else json.dumps(value)}</script>'


def test_page_that_states_nothing_has_no_metadata() -> None:
    assert read("<title>x</title><meta name=viewport content=width>") == {}


def test_names_of_meta_elements_are_known_in_several_vocabularies() -> None:
    head = """<meta name=Author content=" Ada  Lovelace "><meta property="article:published_time" content=2026-03-01>
              <meta name=dcterms.modified content=2026-03-02><meta property="og:description" content=Engines>
              <meta property="og:site_name" content=Notes><meta property="og:type" content=article>"""
    assert read(head) == {
        "author": "Ada Lovelace",
        "published": "2026-03-01",
        "modified": "2026-03-02",
        "description": "Engines",
        "site": "Notes",
        "type": "article",
    }


def test_more_reliable_name_comes_first_and_an_empty_one_does_not_count() -> None:
    head = '<meta property="og:description" content=short><meta name=description content=long>'
    assert read(head)["description"] == "long"
    assert read(head.replace("content=long", 'content=""'))["description"] == "short"


@pytest.mark.parametrize(
    ("author", "text"),
    [
        pytest.param("Ada", "Ada", id="text"),
        pytest.param({"@type": "Person", "name": "Ada"}, "Ada", id="person"),
        pytest.param([{"name": "Ada"}, "Charles"], "Ada, Charles", id="several"),
        pytest.param({"name": 3}, None, id="no-name"),
    ],
)
def test_author_is_taken_from_json_ld(author: object, text: str | None) -> None:
    item = {"@type": "Article", "author": author, "datePublished": "2026-03-01"}
    assert read(ld(item)).get("author") == text
    assert read(ld({"@graph": [{"@type": "WebSite"}, item]})).get("author") == text
    assert read(ld(item))["json_ld"] == [item]


@pytest.mark.parametrize("source", ["{", "[" * 5000, '{"a":' * 30 + "1" + "}" * 30, "3", "null", '["a"]'])
def test_json_ld_that_is_invalid_or_too_deep_is_left_out(source: str) -> None:
    assert read(ld(source)) == {}


def test_json_ld_is_bounded() -> None:
    large = ld({"text": "x" * MAX_JSON_LD_CHARS})
    assert read(large) == {}
    assert read(ld({"a": 1}) + large) == {"json_ld": [{"a": 1}]}


def test_number_that_is_not_finite_stays_a_text() -> None:
    page = '<script type="application/ld+json">{"a": 1e400, "b": -1E999, "c": NaN, "d": 1e5}</script>'
    assert read(page)["json_ld"] == [{"a": "1e400", "b": "-1E999", "c": "NaN", "d": 1e5}]


def test_characters_that_postgres_rejects_are_replaced() -> None:
    found = read(ld(r'{"a": "x\u0000y", "b": "\ud83d\ude00 \ud800"}'))
    assert found == {"json_ld": [{"a": "xy", "b": "\U0001f600 ?"}]}


@given(st.text(max_size=200))
def test_any_script_is_read(source: str) -> None:
    json.dumps(read(ld(source.replace("<", ""))), ensure_ascii=False).encode()
