"""Deploys: instants that explain why many pages were found changed at once."""

from datetime import UTC, datetime, timedelta
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.core.freshness import (
    NEVER_HEARD,
    Belief,
    DeployWatch,
    LookFinding,
    SignalSource,
    record_after,
    watched,
    worth_of,
)
from crawler.core.freshness.deploys import ENOUGH, MOST_TOLD
from crawler.core.freshness.value import first_values, values, values_heard

START = datetime(2026, 1, 1, tzinfo=UTC)
NOTHING = DeployWatch()


def day(number: float) -> datetime:
    return START + timedelta(days=number)


def finding(at: float, *, before: float = 0.0, expected: float = 0.05, changed: bool = True) -> LookFinding:
    return LookFinding(at=day(at), before=day(before), expected=expected, changed=changed)


def told(*findings: LookFinding, watch: DeployWatch = NOTHING) -> tuple[datetime, ...]:
    return watched(watch, findings).told


def test_two_changes_that_nobody_expected_tell_a_deploy_since_the_first_of_them() -> None:
    assert told(finding(10)) == ()
    assert told(finding(10), finding(10.1)) == (day(10),)


def test_pages_that_have_not_changed_since_speak_against_it() -> None:
    same = [finding(10 + n / 100, changed=False) for n in range(1, 6)]

    assert told(finding(10), *same, finding(10.1)) == ()


def test_changes_that_were_to_be_expected_tell_nothing() -> None:
    assert told(*(finding(10 + n / 100, expected=0.9) for n in range(20))) == ()


def test_a_page_that_was_looked_at_since_then_says_nothing_of_it() -> None:
    since = [finding(10.2 + n / 100, before=10.1, changed=False) for n in range(5)]

    assert told(finding(10), *since, finding(10.3), finding(10.31), finding(10.32)) == (day(10),)


def test_changes_that_a_deploy_explains_tell_no_second_one() -> None:
    watch = watched(NOTHING, [finding(10), finding(10.1)])

    assert told(*(finding(11 + n, before=n / 10) for n in range(9)), watch=watch) == (day(10),)
    assert told(finding(20, before=11), finding(20.1, before=11), watch=watch) == (day(10), day(20))


def test_only_the_last_deploys_are_kept() -> None:
    watch = watched(NOTHING, [finding(n + k / 10, before=n - 0.1) for n in range(1, 40) for k in (0, 1)])

    assert watch.told == tuple(day(n) for n in range(40 - MOST_TOLD, 40))


@given(
    st.lists(
        st.tuples(st.floats(0, 100), st.floats(0, 50), st.floats(0, 1), st.booleans()),
        max_size=60,
    )
)
def test_the_evidence_stays_within_its_bounds_whatever_is_found(looks: list[tuple[float, float, float, bool]]) -> None:
    findings = [
        finding(at, before=at - gap, expected=expected, changed=changed) for at, gap, expected, changed in sorted(looks)
    ]
    watch = watched(NOTHING, findings)

    assert 0 <= watch.evidence < ENOUGH
    assert list(watch.told) == sorted(watch.told)
    assert (watch.evidence > 0) <= (watch.since is not None)


def test_where_pages_change_each_for_itself_deploys_have_no_voice() -> None:
    """Three hundred pages of one rate, thirty looks a day: what is told comes by chance, and proves worth nothing."""
    rng, rate, belief = Random(5), 0.05, Belief(a=50.0, b=1000.0)
    last = {page: -page / 30 for page in range(300)}
    watch, record = NOTHING, NEVER_HEARD
    for step in range(6000):
        at, page = step / 30, step % 300
        gap = at - last[page]
        changed = rng.random() > pow(2.718281828, -rate * gap)
        signals = sum(each > day(last[page]) for each in watch.told)
        record = record_after(
            record, believed=belief, gap_days=gap, signals=signals, changed=changed, answers_for_silence=False
        )
        expected = 1 - (belief.b / (belief.b + gap)) ** belief.a
        watch = watched(watch, [finding(at, before=last[page], expected=expected, changed=changed)])
        last[page] = at

    assert worth_of(record, SignalSource.DEPLOY).recall < 0.05


def test_the_silence_about_deploys_says_nothing() -> None:
    good = NEVER_HEARD
    for n in range(200):
        good = record_after(good, believed=Belief(2.0, 40.0), gap_days=10.0, signals=n % 2, changed=n % 2 == 1)

    assert worth_of(good, SignalSource.FEED).silence > 0.3
    assert worth_of(good, SignalSource.DEPLOY).silence == 0.0
    assert worth_of(good, SignalSource.DEPLOY).recall == worth_of(good, SignalSource.FEED).recall


@pytest.mark.parametrize("ahead", [0.0, 1.0, 30.0, 1000.0])
def test_no_signal_makes_a_look_worth_less_than_it_is_without(ahead: float) -> None:
    a, b, unseen, most = 0.8, 2.0, 20.0, 60.0  # a page that may well change too often

    with_it = values_heard(a, b, 1.0, unseen + ahead, ahead=ahead, most=most)

    assert with_it >= values(a, b, 1.0, unseen)
    assert with_it <= max(values(a, b, 1.0, unseen), first_values(a + 1, b, 1.0, most)) + (ahead == 0) * 1e9


def test_a_source_that_misses_nothing_is_taken_for_one_in_the_end() -> None:
    """What is usual of sources is forgotten like old looks: it would keep the report too modest for good."""
    record = NEVER_HEARD
    for n in range(1500):
        changed = n % 4 == 0
        record = record_after(record, believed=Belief(5.0, 100.0), gap_days=5.0, signals=int(changed), changed=changed)

    assert record.estimate.recall > 0.95


def test_the_looks_that_find_a_deploy_count_against_no_word_that_could_not_be_given_yet() -> None:
    """The first pages of a deploy change before it is told: a source that is asked earlier loses its voice by that."""
    told = NEVER_HEARD
    for n in range(60):
        told = record_after(told, believed=Belief(2.0, 40.0), gap_days=10.0, signals=n % 2, changed=n % 2 == 1)
    muted, spared = told, told
    for _ in range(10):
        muted = record_after(muted, believed=Belief(2.0, 40.0), gap_days=1.0, signals=0, changed=True)
        spared = record_after(
            spared, believed=Belief(2.0, 40.0), gap_days=1.0, signals=0, changed=True, answers_for_silence=False
        )

    assert told.worth.recall > 0.5
    assert muted.worth.recall < 0.1
    assert spared.merit == told.merit
    assert spared.worth.recall > 0.2
