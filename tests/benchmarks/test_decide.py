"""The decide benchmark times visits as a crawl makes them; each visit has the change that its name says."""

import pytest

from benchmarks.change.ours import initial_knowledge, new_target
from benchmarks.pages.decide import FIRST, VISITS, decide, paired, render, target_of, timed_visit
from benchmarks.pages.documents import PACKAGES, Document, of_size
from benchmarks.pages.fingerprint import main_texts
from crawler.core.change.change import Change
from crawler.core.http.urls import Url
from tests.engine.corpus import CorpusError

PAGE = Document("made-up", Url("http://a.test/p"), b"<title>A</title><body><h1>A page</h1><p>Some words.</body></html>")


@pytest.mark.parametrize("name", VISITS)
def test_visit_to_a_page_with_a_price_and_a_clock_has_the_named_change(name: str) -> None:
    variant, change = VISITS[name]
    known = paired(initial_knowledge(PAGE.url), PAGE)
    before = new_target(PAGE.url) if change is Change.ADDED else target_of(PAGE, known)

    seconds, visit = timed_visit(PAGE, before, variant, known)

    assert visit.change is change
    assert seconds > 0


def test_unknown_clock_is_a_change() -> None:
    known = initial_knowledge(PAGE.url)

    visit = decide(PAGE, target_of(PAGE, known), render(PAGE, VISITS["a clock"][0]), render(PAGE, FIRST), known)

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
