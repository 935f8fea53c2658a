"""The generated sites that score change detectors contain the noise and the edits that their labels name."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from functools import cache
from itertools import pairwise
from random import Random

import pytest

from benchmarks.change import bench, development, held_out, plan, visits
from benchmarks.change.detectors import DETECTORS, profile
from benchmarks.change.dialect import Dialect
from benchmarks.change.edits import EDITS
from benchmarks.change.score import Judged, measure
from benchmarks.change.serialise import REWRITES
from benchmarks.change.site import Page, Site
from benchmarks.change.visits import PageVisit
from benchmarks.change.widgets import WIDGETS, class_names
from crawler.core.page.content import extract_content
from tests.engine.corpus import corpus

DAY = timedelta(days=1)
UNSEEN = {"comment", "csrf-meta", "hidden", "inline-script", "nonce", "charset", *REWRITES}


@cache
def site(number: int = 0, *, is_held_out: bool = False) -> Site:
    """Return one of the first two sites, whose packages other tests need as well."""
    corpus("postgresql-doc-15" if number == 0 else "python3.11-doc")
    return plan.site(1, number, is_held_out)


def with_noise(made: Site, *kinds: str) -> Site:
    """Return the site with only this noise."""

    def noisy(page: Page) -> Page:
        section = replace(
            page.section,
            widgets=tuple((kind, WIDGETS[kind][2][0]) for kind in kinds if kind in WIDGETS),
            rewrites=frozenset(kinds) - WIDGETS.keys(),
        )
        return replace(page, section=section)

    return replace(made, pages=tuple(map(noisy, made.pages)), reformed=made.words)


def text(made: Site, page: Page, visit: int, *, later: timedelta = timedelta(0)) -> str:
    response = made.response(page, made.rounds[visit] + later)
    return extract_content(response.body, url=page.url, content_type=response.content_type).text


@pytest.mark.corpus
@pytest.mark.parametrize("is_held_out", [False, True])
def test_one_seed_gives_the_same_bytes_and_another_seed_others(is_held_out: bool) -> None:
    one, again = site(is_held_out=is_held_out), plan.site(1, 0, is_held_out)
    other = plan.site(2, 0, is_held_out)

    assert one == again
    for page in one.pages[::8]:
        at = one.rounds[3]
        assert one.response(page, at) == again.response(page, at)
    assert one.response(one.pages[1], one.rounds[0]).body != other.response(other.pages[1], other.rounds[0]).body


@pytest.mark.soak
@pytest.mark.corpus
@pytest.mark.parametrize("number", [0, 1])
def test_without_noise_only_visits_labelled_changed_have_other_bytes(number: int) -> None:
    made = site(number)
    quiet = with_noise(made)
    scored = 0
    for looked in visits.rounds(made):
        for each in looked:
            if each.changed is not None:
                page = next(page for page in quiet.pages if page.url == each.page.url)
                bodies = [quiet.response(page, made.rounds[n]).body for n in (each.number - 1, each.number)]
                assert (bodies[0] != bodies[1]) == each.changed, (each.page.url, each.number, each.kind)
                scored += 1
    assert scored > 200


@pytest.mark.corpus
@pytest.mark.parametrize("kind", [*WIDGETS, *REWRITES, "charset"])
def test_noise_differs_from_visit_to_visit(kind: str) -> None:
    noisy = with_noise(site(), kind)
    page = next(page for page in noisy.pages if not page.kind)

    assert len({noisy.response(page, noisy.rounds[n]).body for n in range(8)}) >= 2


@pytest.mark.corpus
@pytest.mark.parametrize("kind", sorted(UNSEEN))
def test_invisible_noise_does_not_change_the_text(kind: str) -> None:
    noisy, quiet = with_noise(site(), kind), with_noise(site())

    for page in range(0, 32, 3):
        for visit in (1, 6):
            assert text(noisy, noisy.pages[page], visit) == text(quiet, quiet.pages[page], visit), (page, visit)


@pytest.mark.corpus
def test_second_fetch_changes_clocks_but_not_dates_or_prices() -> None:
    page = next(page for page in site().pages if page.kind == "price-daily")
    quiet, later = with_noise(site()), timedelta(seconds=15)

    for kind in ("clock", "seconds-ago", "views"):
        noisy = with_noise(site(), kind)
        here = next(each for each in noisy.pages if each.url == page.url)
        assert text(noisy, here, 1) != text(noisy, here, 1, later=later), kind
    for kind in ("today", "days-ago"):
        noisy = with_noise(site(), kind)
        here = next(each for each in noisy.pages if not each.kind)
        assert text(noisy, here, 1) == text(noisy, here, 1, later=later), kind
        assert text(noisy, here, 1) != text(noisy, here, 4), kind
    here = next(each for each in quiet.pages if each.url == page.url)
    prices = [text(quiet, here, visit) for visit in range(51)]
    assert all(one != other for one, other in pairwise(prices))
    assert all(text(quiet, here, visit, later=later) == prices[visit] for visit in (1, 50))


@pytest.mark.corpus
@pytest.mark.parametrize("kind", EDITS)
def test_an_edit_does_what_its_name_says(kind: str) -> None:
    contents = [page.contents[0] for page in (*site().pages, *site(1).pages)]
    before, after = next(
        (page, edited)
        for page in contents
        if (edited := EDITS[kind](page, contents[5], Random(1))) is not None and page is not contents[5]
    )
    one, other = repr(before), repr(after)

    assert one != other
    if kind in {"price-digit", "date-digit", "table-number", "number-in-text", "sign-in-code", "picture"}:
        assert abs(len(one) - len(other)) <= 1  # a day of "9" and one of "10" have different lengths
        assert sum((Counter(one) - Counter(other)).values()) == 1
    if kind in {"price-transposed", "section-moved", "rows-swapped"}:
        assert Counter(one) == Counter(other)
    if kind == "section-moved":
        assert Counter(before.html) == Counter(after.html)
    if kind in {"title", "description", "caption", "picture", "author"}:
        assert before.html == after.html
    if kind.startswith(("paragraph", "item", "word", "one-word", "heading", "link")):
        assert before.facts == after.facts
        assert before.html != after.html


@pytest.mark.corpus
def test_template_change_appears_on_all_pages_at_one_visit_and_is_labelled_unchanged() -> None:
    made = site()
    quiet = replace(with_noise(made), reformed=made.reformed)
    number = next(n for n, at in enumerate(made.rounds) if at >= made.reform.at)
    labelled = list(visits.rounds(made))[number]

    for each, page in zip(made.pages, quiet.pages, strict=True):
        if made.rounds[number] not in (at + plan.BEFORE_A_VISIT for at in each.edited_at):
            assert text(quiet, page, number) != text(quiet, page, number - 1)
    assert made.reform.kind == "menu-entry"
    assert {each.kind for each in labelled if each.changed is False} == {"menu-entry"}


def test_each_kind_of_noise_stands_alone_in_two_sections() -> None:
    singles = 2 * sum(number % 3 != 2 for number in range(plan.SITES))

    assert singles >= 2 * len(plan.NOISES)


@pytest.mark.corpus
def test_variant_of_an_a_b_test_is_scored_only_after_it_was_seen() -> None:
    noisy = with_noise(site(), "a-b")
    pages = [page for page in noisy.pages if not page.kind]
    assert pages
    for page in pages:
        halves: set[tuple[int, tuple[int, ...]]] = set()
        shown: list[str] = []
        for number in range(8):
            each = visits.labelled(noisy, page, number, noisy.rounds[number], halves)
            now = text(noisy, page, number)
            assert (each.changed is None) == (now not in shown)
            assert each.changed in {None, False}
            shown.append(now)


def test_the_pools_share_no_words_no_formats_and_no_class_names() -> None:
    def names(pool: tuple[Dialect, ...]) -> set[str]:
        return {name for dialect in pool for n in range(9) for name in class_names(dialect, f"{n}").values()}

    def spoken(pool: tuple[Dialect, ...]) -> set[str]:
        return {words for dialect in pool for words in dialect.spoken()}

    assert not spoken(development.POOL) & spoken(held_out.POOL)
    assert not names(development.POOL) & names(held_out.POOL)
    assert {dialect.language for dialect in held_out.POOL} > {"de", "ru", "ja"}


def test_the_full_benchmark_has_the_documented_kinds_and_sequences() -> None:
    assert plan.SITES * plan.SECTIONS * plan.PAGES_PER_SECTION >= 1_000
    assert len(EDITS) + len(plan.NOISES) + len(set(plan.REFORMS)) >= 25
    assert plan.VISITS >= 5


@pytest.mark.soak
@pytest.mark.corpus
def test_byte_digest_finds_every_edit_and_second_fetches_are_counted() -> None:
    class FetchingTwice:
        def judge(self, visits: Sequence[PageVisit]) -> Sequence[bool | None]:
            return [visit.again().body == visit.again().body for visit in visits]

    result = measure(
        (1, 1, False), detectors=["raw", "asking"], made={"raw": DETECTORS["raw digest"], "asking": FetchingTwice}
    )

    assert bench.figures(result.judged, "raw").recall == 1
    assert bench.figures(result.judged, "raw").precision < 0.5
    assert result.again == {"raw": 0, "asking": 2 * result.visits}
    assert result.sequences == 32


def test_precision_and_recall_are_computed_over_visits() -> None:
    judged = [
        Judged("p", n, "k", changed, {"d": said})
        for n, (changed, said) in enumerate(
            [(True, True), (True, None), (True, False), (False, True), (False, False), (False, None), (True, True)]
        )
    ]
    found = bench.figures(judged, "d")

    assert (found.visits, found.changed, found.precision, found.recall) == (7, 4, 2 / 3, 2 / 4)
    assert bench.right(judged, "d") == "57.1"


def test_text_profile_keeps_frequent_words_and_drops_words_that_occur_once() -> None:
    assert profile("price 19.99, the price of the lamp: the the") == (("the", 4), ("price", 2))
    assert profile("one two of it") == (("one", 1), ("two", 1))
    assert profile("the price is 20 the price") == profile("the price is 21 the price")
    assert profile("") == ()
