"""Which pages share a schedule, and how much more seldom those are tested that ride along."""

from datetime import UTC, datetime, timedelta

from crawler.core.freshness import Twin, rests_until, sharers
from crawler.core.freshness.shared_schedule import RARER
from crawler.core.http import PageKey
from crawler.core.visit import NEVER

NOON = datetime(2026, 3, 4, 12, tzinfo=UTC)
DAY = timedelta(days=1)


def twin(n: int, text: bytes, importance: float = 1.0, *, leads: bool = False) -> Twin:
    return Twin(PageKey(n.to_bytes(16, "big")), text, importance, leads)


def pairs(*twins: Twin) -> list[tuple[int, int]]:
    return [(int.from_bytes(leader, "big"), int.from_bytes(key, "big")) for leader, key in sharers(twins)]


def test_the_most_important_page_of_a_text_leads_the_others() -> None:
    assert pairs(twin(1, b"a"), twin(2, b"a", 3.0), twin(3, b"b"), twin(4, b"a", 2.0)) == [(2, 1), (2, 4)]


def test_who_leads_already_goes_on_leading_and_follows_nobody() -> None:
    assert pairs(twin(1, b"a", leads=True), twin(2, b"a", 3.0)) == [(1, 2)]
    assert pairs(twin(1, b"a", leads=True), twin(2, b"a", 3.0, leads=True)) == []


def test_who_rides_along_is_tested_after_some_of_its_own_gaps_and_by_its_longest_interval() -> None:
    assert rests_until(NOON, due_at=NOON + DAY, longest=100 * DAY) == NOON + RARER * DAY
    assert rests_until(NOON, due_at=NOON + 50 * DAY, longest=100 * DAY) == NOON + 100 * DAY
    assert rests_until(NOON, due_at=NOON + 120 * DAY, longest=100 * DAY) == NOON + 120 * DAY
    assert rests_until(NOON, due_at=NEVER, longest=100 * DAY) == NEVER
