"""What is timed is what a crawl does: each look is one of its kind."""

import pytest

from benchmarks.change.ours import known_of, new_target
from benchmarks.pages.decide import FIRST, LOOKS, look, paired, target_of, timed_look, written
from benchmarks.pages.documents import PACKAGES, Document, of_size
from benchmarks.pages.fingerprint import main_texts
from crawler.core.change.change import Change
from crawler.core.http.urls import Url
from tests.engine.corpus import CorpusError

PAGE = Document("made-up", Url("http://a.test/p"), b"<title>A</title><body><h1>A page</h1><p>Some words.</body></html>")


@pytest.mark.parametrize("name", LOOKS)
def test_a_look_at_a_page_with_a_price_and_a_clock_finds_what_it_is_named_for(name: str) -> None:
    said, change = LOOKS[name]
    known = paired(known_of(PAGE.url), PAGE)
    before = new_target(PAGE.url) if change is Change.ADDED else target_of(PAGE, known)

    seconds, visit = timed_look(PAGE, before, said, known)

    assert visit.change is change
    assert seconds > 0


def test_a_clock_of_which_nothing_is_known_is_news() -> None:
    known = known_of(PAGE.url)

    visit = look(PAGE, target_of(PAGE, known), written(PAGE, LOOKS["a clock"][0]), written(PAGE, FIRST), known)

    assert visit.change is Change.CHANGED


@pytest.mark.soak
@pytest.mark.corpus
def test_pages_of_a_size_come_from_several_packages_and_are_the_same_each_time() -> None:
    try:
        pages = of_size(50_000, most=10)
    except CorpusError as reason:
        pytest.skip(str(reason))

    assert {page.package for page in pages} == set(PACKAGES)
    assert all(37_500 <= len(page.body) <= 62_500 for page in pages)
    assert pages == of_size(50_000, most=10)
    assert all(0 < len(text.split()) <= 1500 for text in main_texts(3))
