"""What is said about a copy's freshness is what an observer at every second would say."""

from datetime import datetime, timedelta
from random import Random

import pytest

from labs.demo.site import Behaviour, Site, VerdictTally, freshness, make_site, mean_freshness, tally
from tests.labs.demo.conftest import START

DAY = timedelta(days=1)


def daily_looks(site: Site, days: int) -> dict[str, list[datetime]]:
    return {
        path: [START + n * DAY for n in range(days) if site.exists(path, START + n * DAY)]
        for path in (*site.sheets_by_path, *site.moved_by_path)
    }


def test_a_copy_is_fresh_until_its_page_changes(site: Site) -> None:
    sheet = next(s for s in site.sheets_by_path.values() if s.behaviour is Behaviour.POISSON and s.changes)
    change = sheet.changes[0]

    assert site.is_same(sheet.path, START, change - timedelta(seconds=1))
    assert not site.is_same(sheet.path, START, change)
    assert site.changes(sheet.path, START, change) == (change,)
    assert site.changes(sheet.path, change, change) == ()


def test_who_has_just_looked_at_everything_is_fresh_and_who_never_looked_is_not(site: Site) -> None:
    at = START + 20 * DAY

    assert freshness(site, dict.fromkeys(site.paths(at), at), at) == 1
    assert freshness(site, {}, at) == 0
    assert 0.3 < freshness(site, dict.fromkeys(site.paths(START), START), at) < 0.9


@pytest.mark.soak
def test_mean_freshness_is_what_sampling_finds() -> None:
    site = make_site(4, pages=120, start=START, days=20)
    odds = Random(1)
    visits = {
        path: sorted(at for at in (START + odds.uniform(0, 20) * DAY for _ in range(4)) if site.exists(path, at))
        for path in (*site.sheets_by_path, *site.moved_by_path)
    }
    since, until = START + 5 * DAY, START + 15 * DAY
    there = fresh = 0
    for _ in range(2000):
        at = since + odds.random() * (until - since)
        known = {path: baseline[-1] for path, seen in visits.items() if (baseline := [t for t in seen if t <= at])}
        paths = site.paths(at)
        there += len(paths)
        fresh += round(freshness(site, known, at) * len(paths))

    assert mean_freshness(site, visits, since, until) == pytest.approx(fresh / there, abs=0.005)


def test_mean_freshness_of_daily_looks_is_below_one_and_above_that_of_weekly_looks(site: Site) -> None:
    daily = daily_looks(site, 45)
    weekly = {path: visits[::7] for path, visits in daily.items()}
    spans = (START + 7 * DAY, START + 42 * DAY)

    assert mean_freshness(site, weekly, *spans) < mean_freshness(site, daily, *spans) < 1


def test_a_page_with_all_the_weight_is_all_that_counts(site: Site) -> None:
    daily, spans = daily_looks(site, 45), (START + 7 * DAY, START + 42 * DAY)
    path = max(site.sheets_by_path, key=lambda each: len(site.changes(each, *spans)))
    alone = dict.fromkeys((*site.sheets_by_path, *site.moved_by_path), 0.0) | {path: 2.0}

    fresh = mean_freshness(site, daily, *spans, weights=alone)

    assert fresh < 0.5 < mean_freshness(site, daily, *spans)
    assert mean_freshness(site, daily, *spans, weights={}) == mean_freshness(site, daily, *spans)
    assert mean_freshness(site, {path: daily[path]}, *spans, weights=alone) == fresh


def test_every_change_has_one_fate(site: Site) -> None:
    sheet = max(site.sheets_by_path.values(), key=lambda s: len(s.changes))
    first, _, third, *rest = sheet.changes
    visits = {sheet.path: [first, third]}  # the first change is met at once, the next two by one look, the others never

    fates = tally(site, visits, START, site.end)
    others = sum(len(s.changes) for s in site.sheets_by_path.values()) - len(sheet.changes)

    assert fates == VerdictTally(
        happened=others + len(sheet.changes), found=1, merged=1, pending=len(rest) + others, before=1
    )


def test_looking_daily_finds_each_days_first_change_of_every_page(site: Site) -> None:
    fates = tally(site, daily_looks(site, 46), START, site.end)

    assert fates.happened == sum(len(s.changes) for s in site.sheets_by_path.values())
    assert fates.found + fates.merged + fates.pending + fates.before == fates.happened
    assert fates.found > 0.3 * fates.happened
    assert fates.pending == 0
