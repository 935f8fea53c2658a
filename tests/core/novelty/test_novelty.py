"""Novelty of pages: samples of texts, the memory of a domain, and the evidence of templates."""

from datetime import UTC, datetime, timedelta

import pytest

from crawler.core.http.urls import Url
from crawler.core.novelty import (
    MAX_WAIT,
    RETRY_INTERVAL,
    NoveltyEvidence,
    NoveltyMemory,
    SeenHashes,
    TemplateNovelty,
    compute_next_time,
    drop_each_parameter,
    get_section,
    has_repeated_folders,
    is_unproductive,
)
from crawler.core.page.fingerprint import read_words
from crawler.core.page.sample import Sample, sample_words
from crawler.core.page.snapshot import parse_body

AT = datetime(2026, 1, 1, tzinfo=UTC)
URL = Url("http://a.test/page/")


def sample(text: str, url: str = URL, body: bytes = b"body") -> Sample:
    return sample_words(read_words(text), body, url=Url(url))


def test_numbers_and_words_of_the_url_are_not_new() -> None:
    one = sample("Events of 12 March 2031\nThe page calendar was not found", "http://a.test/calendar/2031/03/12/")
    other = sample("Events of 7 March 1999\nThe page diary was not found", "http://a.test/diary/1999/03/07/")

    assert one == other


def test_sample_is_of_the_main_text() -> None:
    body = b"<title>A</title><nav>Menu of all</nav><p>Some words of room 12 that say a few things<p>and a few more"
    parsed = parse_body(body, url=URL, content_type="text/html")

    assert parsed.sample == sample("Some words of room 12 that say a few things\nand a few more")
    assert len(parsed.sample) > 4


def test_reordered_lines_are_not_new() -> None:
    memory = NoveltyMemory()
    lines = [f"Some {word} thing of this shop that is sold" for word in ("red", "green", "blue", "large")]
    memory.measure_novelty(sample("\n".join(lines)))

    assert memory.measure_novelty(sample("\n".join(reversed(lines)))) == 0
    assert (
        memory.measure_novelty(sample("\n".join(lines[:2]))) <= 0.5
    )  # a part of the lines has a few other smallest hashes


def test_other_text_is_new_and_bytes_count_without_text() -> None:
    memory = NoveltyMemory()

    assert memory.measure_novelty(sample("Three words of this, and a few more words of that")) == 1
    assert memory.measure_novelty(sample("Something else is said here in quite other terms")) == 1
    assert [memory.measure_novelty(sample("", body=body)) for body in (b"one", b"one", b"other")] == [1, 0, 1]


def test_hashes_are_bounded_and_the_newest_are_kept() -> None:
    seen = SeenHashes(max_hashes=100)
    for number in range(1000):
        seen.add([number])

    assert len(seen.newer) + len(seen.older) <= 200
    assert all(number in seen for number in range(900, 1000))
    assert 0 not in seen


def test_irrelevant_parameter_is_detected_after_six_pages() -> None:
    memory = NoveltyMemory()
    memory.learn_parameters(
        Url("http://a.test/other?x=1"), 1.0
    )  # the first URL with a query; from now on URLs are remembered
    memory.learn_parameters(Url("http://a.test/"), 1.0)
    for n in range(6):
        assert not memory.is_duplicate_url(Url(f"http://a.test/?sid={n}&q=1"))
        assert memory.learn_parameters(Url(f"http://a.test/?sid={n}"), 0.0)

    assert memory.is_irrelevant_parameter("sid")
    assert memory.is_duplicate_url(Url("http://a.test/?q=1&sid=9"))
    assert not memory.is_duplicate_url(Url("http://a.test/new?sid=9"))
    assert memory.was_read_before(Url("http://a.test/?sid=10"))
    assert not memory.was_read_before(Url("http://a.test/new?sid=10"))


def test_parameter_that_selects_the_page_is_relevant() -> None:
    memory = NoveltyMemory()
    for n in range(50):
        memory.learn_parameters(Url(f"http://a.test/show?id={n}"), 0.9)

    assert not memory.is_irrelevant_parameter("id")
    assert not memory.is_duplicate_url(Url("http://a.test/show?id=51"))


@pytest.mark.parametrize(
    ("path", "repeats"),
    [
        ("/a/b/a/b/a/b/", True),
        ("/2026/11/11/11/", False),
        ("/en/docs/en/docs/", False),
        ("/a/a/a", False),
        ("/", False),
    ],
)
def test_repeated_path_segments_are_detected(path: str, repeats: bool) -> None:
    assert has_repeated_folders(Url(f"http://a.test{path}")) is repeats


def test_each_parameter_is_dropped_in_turn() -> None:
    found = drop_each_parameter(Url("http://a.test/s?b=2&a=1"))

    assert found == [("a", "http://a.test/s?b=2"), ("b", "http://a.test/s?a=1")]
    assert drop_each_parameter(Url("http://a.test/s?b=2")) == [("b", "http://a.test/s")]
    assert drop_each_parameter(Url("http://a.test/s")) == []


@pytest.mark.parametrize(
    ("template", "section"),
    [("/blog/#/*/*.html", "blog"), ("/", ""), ("/*", ""), ("/*?a&b", "?"), ("/shop/*?a", "shop?")],
)
def test_section_of_a_template(template: str, section: str) -> None:
    assert get_section(template) == section


def learnt(*novelties: float, at: datetime | None = None) -> TemplateNovelty:
    known = TemplateNovelty(1)
    if at is not None:
        known.defer(at)
    for novelty in novelties:
        known.learn(novelty)
    return known


@pytest.mark.parametrize(("visits", "unproductive"), [(30, False), (40, True)])
def test_template_alone_in_its_section_is_unproductive_after_about_thirty_visits(
    visits: int, unproductive: bool
) -> None:
    known = learnt(*[0.0] * visits)

    assert is_unproductive(known, known.evidence) is unproductive


def test_unproductive_template_of_a_fertile_section_takes_more_visits() -> None:
    good = NoveltyEvidence(300, 300)

    assert not is_unproductive(learnt(*[0.0] * 36), good + learnt(*[0.0] * 36).evidence)
    assert is_unproductive(learnt(*[0.0] * 80), good + learnt(*[0.0] * 80).evidence)


def test_section_of_endless_templates_is_unproductive() -> None:
    assert is_unproductive(TemplateNovelty(0), NoveltyEvidence(60, 0.0))
    assert not is_unproductive(TemplateNovelty(0), NoveltyEvidence(49, 0.0))


def test_template_with_a_fifth_of_new_text_is_not_unproductive() -> None:
    known = learnt(*[0.2] * 500)

    assert not is_unproductive(known, known.evidence)


def test_two_pages_with_new_text_resume_a_template() -> None:
    section = NoveltyEvidence(100, 0.0)

    assert is_unproductive(learnt(0.0, 1.0, at=AT), section)
    assert not is_unproductive(learnt(0.0, 1.0, 1.0, at=AT), section)


def test_deferred_pages_are_due_one_per_day_with_a_maximum_wait() -> None:
    first = compute_next_time(None, AT)

    assert first == AT + RETRY_INTERVAL
    assert compute_next_time(first, AT) == first + RETRY_INTERVAL
    assert compute_next_time(first, AT + timedelta(days=30)) == AT + timedelta(days=31)
    assert compute_next_time(AT + timedelta(days=5000), AT) == AT + MAX_WAIT
