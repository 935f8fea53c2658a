"""Text, title and links of PDFs."""

import random
from pathlib import Path

import pytest

from crawler.core.change.change import Change
from crawler.core.change.verdict import judge_versions
from crawler.core.http.urls import Url
from crawler.core.page import pdf
from crawler.core.page.content import extract_content
from crawler.core.page.document import Document
from crawler.core.page.pdf import read_pdf
from crawler.core.page.snapshot import parse_body
from tests.core.printed import printed

HERE = Url("https://example.com/docs/manual.pdf")
PRICES = [(50, 700, "Price list"), (50, 660, "A lamp costs"), (50, 648, "19.99 €."), (50, 620, "A chair, 5 €.")]
LOCKED = (
    b"/Encrypt<</Filter/Standard/V 1/R 2/P -4/O<"
    + b"0" * 64
    + b">/U<"
    + b"0" * 64
    + b">>>/ID[<"
    + b"0" * 32
    + b"><00>]"
)


def text_of(body: bytes) -> str:
    return read_pdf(body, url=HERE).text


def test_closely_spaced_lines_are_joined() -> None:
    assert text_of(printed(PRICES)) == "Price list\nA lamp costs 19.99 €.\nA chair, 5 €."


def test_second_column_and_second_page_start_new_lines() -> None:
    left = [(50, 700 - 12 * n, f"left {n}") for n in range(3)]
    right = [(300, 700 - 12 * n, f"right {n}") for n in range(3)]
    assert text_of(printed([*left, *right], left)).split("\n") == [
        "left 0 left 1 left 2",
        "right 0 right 1 right 2",
        "left 0 left 1 left 2",
    ]


def test_words_of_one_line_keep_their_order() -> None:
    assert text_of(printed([(50, 700, "one"), (90, 700.4, "two"), (130, 699.8, "three"), (50, 688, "four")])) == (
        "one two three four"
    )


def test_characters_of_all_planes_are_read_and_counted() -> None:
    lines = [(50, 700, "AAA"), (50, 688, "b"), (50, 650, "c")]
    whole = printed(lines, names=b"1 beginbfchar <41> <D83DDE00> endbfchar")
    assert text_of(whole) == "\U0001f600\U0001f600\U0001f600 b\nc"


def test_pdf_is_read_like_a_page() -> None:
    body = printed(
        PRICES, title="Prices \U0001f4a1 of  2026", links=["/a#b", "http://other.org/", "/a", "javascript:x"]
    )
    page = extract_content(body, url=HERE, content_type="application/octet-stream")
    assert (page.kind, page.title, page.charset) == ("pdf", "Prices \U0001f4a1 of 2026", "")
    assert page.links == ("https://example.com/a", "http://other.org/")
    assert page.main == page.text == text_of(body)


def test_regenerated_pdf_is_unchanged_and_one_digit_is_a_change() -> None:
    before, after = printed(PRICES), printed(PRICES, trailer=b"/ID[<01><02>]")
    cheaper = printed([(x, y, words.replace("19.99", "19.98")) for x, y, words in PRICES])
    first, again, changed = (
        parse_body(body, url=HERE, content_type="application/pdf").version for body in (before, after, cheaper)
    )
    assert judge_versions(first, again).change is Change.UNCHANGED
    assert judge_versions(first, changed).change is Change.CHANGED


@pytest.mark.parametrize(
    "body",
    [b"%PDF-", b"%PDF-1.7\n%%EOF", printed(PRICES)[:300], printed(), printed(PRICES, trailer=LOCKED), printed([])],
    ids=["empty", "nothing", "cut off", "no pages", "locked", "blank"],
)
def test_unreadable_pdf_has_no_text_and_its_bytes_decide(body: bytes) -> None:
    assert read_pdf(body, url=HERE) == Document()
    before, after = (parse_body(each, url=HERE, content_type="application/pdf").version for each in (body, body + b" "))
    assert judge_versions(before, after).change is Change.CHANGED


def test_pdf_beyond_the_limits_has_no_text() -> None:
    many = printed(*([[(50, 700, "x")]] * (pdf.MAX_PAGES + 1)), title="t")
    assert read_pdf(many, url=HERE) == Document(title="t")
    long = printed(*([[(50, 700, "x" * 30_000)]] * (pdf.MAX_CHARS // 30_000 + 1)))
    assert text_of(long) == ""


@pytest.mark.parametrize("name", ["libtasn1-doc/libtasn1.pdf", "shared-mime-info/shared-mime-info-spec.pdf"])
def test_real_manual_is_read(name: str) -> None:
    path = Path("/usr/share/doc", name)
    if not path.is_file():
        pytest.skip(f"{path} is not on this machine")
    document = read_pdf(path.read_bytes(), url=HERE)
    assert len(document.text) > 30_000
    assert not {"\ufffe", "\x02", "\r"} & set(document.text)
    assert sum(len(line) > 200 for line in document.text.split("\n")) > 30  # paragraphs, not lines


def test_damaged_pdf_never_raises() -> None:
    whole = printed(PRICES, PRICES, title="t", links=["/a"])
    chance = random.Random(1)
    for _ in range(500):
        body = bytearray(whole)
        for _ in range(chance.choice([1, 5, 30])):
            at = chance.randrange(len(body) - 200)
            match chance.randrange(3):
                case 0:
                    body[at] = chance.randrange(256)
                case 1:
                    del body[at : at + chance.randrange(30)]
                case _:
                    body[at:at] = body[chance.randrange(len(body)) :][: chance.randrange(100)]
        document = read_pdf(bytes(body), url=HERE)
        assert "\0" not in document.title + document.text
        (document.title + document.text).encode()
