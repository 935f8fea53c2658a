"""JSON as lines of text."""

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.core.page.document import MAX_JSON_CHARS, read_json


def text_of(source: str) -> str:
    return read_json(source).text


def test_each_value_is_a_line_with_its_path() -> None:
    assert text_of('{"name": "Lamp", "price": {"amount": 19.90, "tax": null}, "new": true, "tags": [], "x": {}}') == (
        "name: Lamp\nnew: true\nprice.amount: 19.90\nprice.tax: null\ntags: []\nx: {}"
    )


def test_each_list_element_begins_with_a_dash() -> None:
    assert text_of('[{"a": 1, "b": 2}, {"a": 3}, [4, 5]]') == "- [].a: 1\n[].b: 2\n- [].a: 3\n- - [][]: 4\n- [][]: 5"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ('{"a": 1, "b": {"c": 2, "d": 3}}', '{"b":{"d":3,"c":2},\n\n"a":1}'),
        ('["\\u00e4 b"]', '["ä  b"]'),
    ],
)
def test_equivalent_json_has_equal_text(one: str, other: str) -> None:
    assert text_of(one) == text_of(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("[1, 2]", "[2, 1]"),
        ("[[1], [2]]", "[[1, 2]]"),
        ('[{"a": 1}, {"b": 2}]', '[{"a": 1, "b": 2}]'),
        ('{"a": 1, "a": 2}', '{"a": 3, "a": 2}'),
        ("[19.9]", "[19.90]"),
        ("[12345678901234567890123]", "[12345678901234567890124]"),
        ("[1e400]", "[1e401]"),
        ("[]", "{}"),
        ('{"a": {}}', "{}"),
        ("1", "2"),
    ],
)
def test_different_json_has_different_text(one: str, other: str) -> None:
    assert text_of(one) != text_of(other)


def test_new_first_element_is_one_new_line() -> None:
    assert text_of('["new", "a", "b"]').split("\n")[1:] == text_of('["a", "b"]').split("\n")


@pytest.mark.parametrize("source", ["", "{", "{'a': 1}", 'callback({\n"a":  1})', '{"a": 1}\n{"a": 2}', "[1,]"])
def test_invalid_json_is_read_as_source(source: str) -> None:
    assert text_of(source) == "\n".join(" ".join(line.split()) for line in source.splitlines())


@pytest.mark.parametrize(
    "source",
    [
        "[" * 200 + "]" * 200,
        "[" * 1_000_000,
        '{"a":' * 1_000_000,
        "[" + "1," * MAX_JSON_CHARS + "1]",
        '{"' + "k" * 50_000 + '":[' + "1," * 1000 + "1]}",
    ],
    ids=["nested", "open lists", "open objects", "large", "multiplied"],
)
def test_json_beyond_the_limits_is_read_as_source(source: str) -> None:
    began = time.process_time()
    assert text_of(source) == source
    assert time.process_time() - began < 5  # a tenth of a second on a quiet machine


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=4),
    max_leaves=20,
)


@given(values, st.randoms(use_true_random=False))
def test_order_of_names_is_never_a_difference(value: object, chance: object) -> None:
    def turned(inner: object) -> object:
        if isinstance(inner, dict):
            return {name: turned(inner[name]) for name in reversed(inner)}
        return [turned(each) for each in inner] if isinstance(inner, list) else inner

    assert text_of(json.dumps(value)) == text_of(json.dumps(turned(value), indent=2, ensure_ascii=False))


@given(st.text(alphabet='{}[]":,\\u0d8\n a1-.', max_size=40))
def test_any_text_can_be_read(source: str) -> None:
    text_of(source).encode()
