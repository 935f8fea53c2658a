"""The compiled scores of lines are those that numpy computes, on any page."""

from collections.abc import Iterator
from html import escape
from importlib import import_module
from itertools import product
from random import Random
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from selectolax.lexbor import LexborHTMLParser

from crawler.core.page import compiled_scan
from crawler.core.page.fingerprint import hash_text
from crawler.core.page.main_content import choice, compiled_scores, hints, scores
from crawler.core.page.main_content.choice import choose_content
from crawler.core.page.main_content.compiled_scores import score_compiled
from crawler.core.page.reader_choice import choose_reader
from crawler.core.page.scan import BLOCK_TAGS, PageScan, scan_tree
from crawler.core.page.shared_lines import SharedLines

if "compiled" not in compiled_scan.describe_reader():
    pytest.skip(f"no compiled scores: {compiled_scan.describe_reader()}", allow_module_level=True)

ROUNDING = 1e-12


def scan_page(page: str) -> PageScan:
    return scan_tree(LexborHTMLParser(page))


def assert_equal_scores(scan: PageScan, title: str = "") -> None:
    if not scan.texts:
        return
    found, wanted = score_compiled(scan, title), scores.score_page(scan, title)
    assert found is not None
    assert found.page_type is wanted.page_type
    assert found.chars.tolist() == wanted.chars.tolist()
    np.testing.assert_allclose(found.likely, wanted.likely, 0, ROUNDING)
    for likely in (wanted.likely, 1 - wanted.likely, wanted.likely * 0 + 0.3):
        np.testing.assert_allclose(found.score_context(likely), wanted.score_context(likely), 0, ROUNDING)


def assert_equal_choices(scan: PageScan, title: str, shared: SharedLines) -> None:
    found = choose_content(scan, title=title, shared=shared)
    with patch.object(choice, "score_page", scores.score_page):
        wanted = choose_content(scan, title=title, shared=shared)
    assert (found.lines, found.page_type) == (wanted.lines, wanted.page_type)
    assert abs(found.confidence - wanted.confidence) < ROUNDING


CLASSES = [
    "",
    "sidebar",
    "post-body",
    "relatedPosts navbar",
    "XMLHttpX ABc",
    "wpcookienotice",
    "a",
    "\xe9content \u65e5",
]
CLASSES += ["x " * 149 + "menubar sidebar", "\u65e5" * 299 + "nav", "commentNAV2subscribers", "product-PRICE"]
LINES = ["Read more", "\xa9 2024", "$ 5", "5 EUR", "12 May 2021", "3 min read", "1:30", "!", "See also:", "Yes.", "x"]
LINES += ["The keeper climbs the stairs each evening, lights the lamp, and writes the hour in a book.", "\u65e5\u672c"]
LINES += ["word " * 30 + "newsletter. " + "word " * 20, "w, " * 200, "\u65e5" * 90, "\u0421\u0442\u0440 \u0130 \u212a"]
LINES += ["Related posts", "Comments", "\u041f\u043e\u0445\u043e\u0436\u0438\u0435", "About us", "A title of the page"]
tags = st.sampled_from(sorted(BLOCK_TAGS - {"frameset", "plaintext"}))
names = st.sampled_from(CLASSES)
parts = st.one_of(
    st.builds(lambda tag, name, other: f"<{tag} class='{name}' id='{other}'>", tags, names, names),
    st.sampled_from(LINES),
    st.text(st.characters(codec="utf-8"), max_size=90).map(escape),
    st.sampled_from(["<br>", "<a href=x>", "</a>", "<pre>", "</pre>", "<h1>", "</h1>", "<h2>", "</h2>"]),
    tags.map(lambda tag: f"</{tag}>"),
)
pages = st.lists(parts, max_size=60).map("".join)


@given(pages, st.sampled_from(["", "A title of the page", "x" * 600, "\ud800 \u65e5\u672c Read more"]))
@settings(max_examples=60, deadline=None)
def test_scores_of_any_page_are_equal(page: str, title: str) -> None:
    assert_equal_scores(scan_page(page), title)


@given(st.lists(parts, min_size=200, max_size=400).map("".join), st.booleans())
@settings(max_examples=10, deadline=None)
def test_choices_are_equal_with_shared_lines(page: str, is_known: bool) -> None:
    scan = scan_page(page)
    shared = SharedLines.build(map(hash_text, scan.texts[::3]), pages=20 if is_known else 3)
    assert_equal_choices(scan, "A title of the page", shared)


_HINTS = vars(hints)
_WORDS = [*_HINTS["FURNITURE_LINES"], *_HINTS["FURNITURE_WORDS"], *_HINTS["NOTICE_WORDS"], *_HINTS["PUNCTUATION"]]
_WORDS += [
    *"\xa9$\u20ac_\xb2\xbd\u0663\u2028\u03a3",
    "rights reserved",
    "de",
    "may",
    "12",
    "1",
    "ago",
    "mins",
    "h",
    "kr",
]
expressions = st.sampled_from(["_DATE", "_PRICE", "_COPYRIGHT", "_RELATED_HEADING", "_COMMENTS_HEADING"])
expressions |= st.just("_SERVICE_HEADING")
matches = expressions.flatmap(lambda name: st.from_regex(_HINTS[name], fullmatch=True))
words = st.sampled_from([*_WORDS, " ", "", "-", ".", ":"]) | matches | st.text(max_size=3)
joined = st.builds(lambda words, gap: gap.join(words), st.lists(words, max_size=9), st.sampled_from(["", " "]))
changed = st.builds(lambda text, at, more: text[:at] + more + text[at:], joined, st.integers(0, 80), words)
texts = st.builds(
    lambda text, change: change(text), joined | changed, st.sampled_from([str, str.lower, str.upper, str.title])
)


@given(st.lists(texts, max_size=20))
@settings(max_examples=60, deadline=None)
def test_kinds_of_any_lines_and_headings_are_equal(lines: list[str]) -> None:
    scan = scan_page("".join(f"<h2>{escape(line)}</h2><p>x</p><p>{escape(line)}</p>" for line in lines))
    assert_equal_scores(scan)


def expand(expression: object) -> Iterator[str]:
    """Yield the texts that an expression without sets of characters matches."""
    choices: list[list[str]] = []
    for kind, value in expression:  # type: ignore[attr-defined]
        match str(kind):
            case "LITERAL":
                choices.append([chr(value)])
            case "BRANCH":
                choices.append([text for branch in value[1] for text in expand(branch)])
            case "SUBPATTERN":
                choices.append(list(expand(value[3])))
            case "MAX_REPEAT":
                choices.append(["", *expand(value[2])])
            case "ANY":
                choices.append(["'"])
            case _:
                pass
    return map("".join, product(*choices))


@pytest.mark.parametrize("name", ["_RELATED_HEADING", "_COMMENTS_HEADING", "_SERVICE_HEADING"])
def test_all_headings_that_end_the_content_are_found(name: str) -> None:
    texts = set(expand(import_module("re._parser").parse(_HINTS[name].pattern)))
    assert len(texts) > 20
    found = [text for text in texts if _HINTS[name].search(text)]
    assert len(found) == len(texts)
    assert_equal_scores(scan_page("".join(f"<h2>The {text}</h2><p>x</p>" for text in sorted(texts))))


def test_characters_are_described_as_python_does() -> None:
    lower, flags = compiled_scores._describe_characters()
    for number, small in enumerate(lower.tolist()):
        each = chr(number)
        assert not small or (chr(small) == each.lower() and (each == " " or not each.isspace()))
        assert small or not each.isascii() or each.isspace() or not each.isprintable()
        assert bool(flags[number] & 1) == (each.isalnum() or each == "_")


def test_scores_of_a_large_page_are_equal() -> None:
    random = Random(1)
    made = [f"<{random.choice(sorted(BLOCK_TAGS))} class='{random.choice(CLASSES)}'>" for _ in range(5000)]
    scan = scan_page("".join(f"{tag}{random.choice(LINES)}" for tag in made))
    assert_equal_scores(scan, "A title of the page")


@pytest.mark.parametrize(
    "page",
    [
        "<div>" * 5000 + "x",
        "<p class=x>x" * 50_000,
        "<h2>x</h2>" * 5000,
        f"<title>{'a' * 500}</title>" + "<p>aab" * 9000,
    ],
    ids=["deep", "wide", "headings", "title"],
)
def test_scores_of_a_hostile_page_are_equal(page: str) -> None:
    assert_equal_scores(scan_page(page), "a" * 500)


@given(
    st.lists(st.text("ab\xe9\u65e5", min_size=9, max_size=14), min_size=1, max_size=30),
    st.text("ab\xe9\u65e5", max_size=60),
)
@settings(max_examples=60, deadline=None)
def test_lines_in_the_title_are_found(lines: list[str], title: str) -> None:
    scan = scan_page("<p>" + "<p>".join([*lines, title, title[5:20], title[-12:], title[:9]]))
    assert_equal_scores(scan, title)


@pytest.mark.parametrize(
    "changes",
    [
        {"texts": [], "line_boxes": [], "line_chars": [], "line_link_chars": []},
        {"box_tags": ["", "html", "body", "x-y"]},
        {"box_parents": [0, 0, 1, 3]},
        {"box_parents": [0, 0, 1, -1]},
        {"box_ends": [4, 4, 4, 5]},
        {"line_boxes": [4]},
        {"line_chars": [-1]},
        {"box_classes": ["", "a\0b", "", ""]},
        {"box_flags": [0, 0, 0]},
        {"line_link_chars": []},
    ],
    ids=["empty", "tag", "parent", "negative", "end", "box", "chars", "nul", "flags", "lengths"],
)
def test_library_leaves_scans_of_another_form_to_numpy(changes: dict[str, object]) -> None:
    scan = replace(scan_page("<p>x"), **changes)
    assert score_compiled(scan, "") is None


@pytest.mark.usefixtures("_forgotten")
def test_without_library_numpy_scores_pages() -> None:
    choose_reader("python")
    assert score_compiled(scan_page("<p>x"), "") is None
    assert compiled_scores.score_page(scan_page("<p>x"), "").likely.shape == (1,)


@pytest.mark.usefixtures("_forgotten")
def test_library_that_scores_differently_is_not_used() -> None:
    with patch.object(compiled_scores, "_COUNTS", compiled_scores._COUNTS | {"min_region_lines": 2}):
        assert score_compiled(scan_page("<p>x"), "") is None
    compiled_scan.forget_library()
    assert score_compiled(scan_page("<p>x"), "") is not None
