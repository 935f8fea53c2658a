from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from crawler.core.domain_settings import DomainSettings
from crawler.core.retention import DatedVersion, select_stored_versions

DAY = timedelta(days=1)
BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
KEEP = DomainSettings(keep_versions=2, keep_daily=7 * DAY, keep_weekly=35 * DAY, keep_monthly=365 * DAY)


def hourly(count: int) -> list[DatedVersion]:
    return [DatedVersion(number=n + 1, at=BEGIN + n * timedelta(hours=1)) for n in range(count)]


@st.composite
def pasts(draw: st.DrawFn) -> list[DatedVersion]:
    gaps = draw(st.lists(st.integers(0, 60 * 24 * 40), max_size=60))
    at, found = BEGIN, []
    for n, minutes in enumerate(gaps):
        at += timedelta(minutes=minutes)
        found.append(DatedVersion(number=n + 1, at=at))
    return found


def build_settings(**values: Any) -> DomainSettings:
    return DomainSettings(**values)


spans = st.integers(1, 400).map(lambda days: days * DAY)
retentions = st.builds(
    build_settings,
    keep_versions=st.integers(1, 5),
    keep_daily=spans,
    keep_weekly=spans,
    keep_monthly=st.none() | spans,
)


def end_of(past: list[DatedVersion]) -> datetime:
    return past[-1].at if past else BEGIN


def of(past: list[DatedVersion], numbers: frozenset[int]) -> list[DatedVersion]:
    return [version for version in past if version.number in numbers]


def test_newest_versions_then_one_per_day_week_and_month_are_kept() -> None:
    past = hourly(100 * 24)
    now = BEGIN + 100 * DAY

    stays = of(past, select_stored_versions(past, KEEP, now=now))

    ages = [(now - version.at) / DAY for version in stays]
    assert [version.number for version in stays][-2:] == [2399, 2400]
    assert (
        sum(age <= 7 for age in ages) == 7 + 1
    )  # the last version of each of seven days, and another one of the newest two
    assert [f"{version.at:%m-%d}" for version in stays if 7 < (now - version.at) / DAY <= 35] == [
        *("03-07", "03-14", "03-21", "03-31"),
    ]
    assert [f"{version.at:%m-%d}" for version in stays if (now - version.at) / DAY > 35] == ["01-31", "02-28"]


def test_version_beyond_all_ages_is_removed_unless_among_the_newest() -> None:
    past = [DatedVersion(number=n, at=BEGIN + n * DAY) for n in range(1, 6)]

    assert select_stored_versions(past, KEEP, now=BEGIN + 1000 * DAY) == {4, 5}
    assert select_stored_versions(past, replace(KEEP, keep_monthly=None), now=BEGIN + 1000 * DAY) == {4, 5}
    assert select_stored_versions(past, KEEP, now=BEGIN + 1000 * DAY, needed={2}) == {2, 4, 5}


@given(past=pasts(), domain_settings=retentions, later=spans)
def test_newest_and_needed_versions_are_always_kept(
    past: list[DatedVersion], domain_settings: DomainSettings, later: timedelta
) -> None:
    needed = {version.number for version in past[::7]}

    stays = select_stored_versions(past, domain_settings, now=end_of(past) + later, needed=needed)

    assert {version.number for version in past[-domain_settings.keep_versions :]} <= stays
    assert needed <= stays <= {version.number for version in past}


@given(past=pasts(), domain_settings=retentions, later=spans)
def test_second_pass_removes_nothing(
    past: list[DatedVersion], domain_settings: DomainSettings, later: timedelta
) -> None:
    now = end_of(past) + later
    stays = select_stored_versions(past, domain_settings, now=now)

    assert select_stored_versions(of(past, stays), domain_settings, now=now) == stays


@given(past=pasts(), domain_settings=retentions, first=spans, second=spans)
def test_pruning_often_equals_pruning_once(
    past: list[DatedVersion], domain_settings: DomainSettings, first: timedelta, second: timedelta
) -> None:
    soon, late = end_of(past) + first, end_of(past) + first + second
    stays = select_stored_versions(past, domain_settings, now=soon)

    assert select_stored_versions(past, domain_settings, now=late) <= stays
    assert select_stored_versions(of(past, stays), domain_settings, now=late) == select_stored_versions(
        past, domain_settings, now=late
    )


@given(past=pasts(), domain_settings=retentions, cut=st.integers(0, 60), later=spans)
def test_later_versions_do_not_affect_which_older_ones_are_kept(
    past: list[DatedVersion], domain_settings: DomainSettings, cut: int, later: timedelta
) -> None:
    before, after = past[:cut], past[cut:]
    stays = of(before, select_stored_versions(before, domain_settings, now=end_of(before)))
    now = end_of(past) + later

    assert select_stored_versions(stays + after, domain_settings, now=now) == select_stored_versions(
        past, domain_settings, now=now
    )
