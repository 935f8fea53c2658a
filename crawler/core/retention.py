"""Which versions of a page are kept: the newest ones, then one a day, one a week, one a month.

Days, weeks and months are nested: a week is days 1 to 7, 8 to 14, 15 to 21 or 22 to the end of a month, all in UTC. So
the last version of a month is the last of its week and of its day, and whatever a rule keeps later, the finer rules
before it have kept: thinning day by day leaves what thinning once would leave.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

from crawler.core.domain_settings import DomainSettings

# The settings that say what is kept of a domain's past.
RETENTION_SETTINGS = (
    "keep_versions",
    "keep_daily",
    "keep_weekly",
    "keep_monthly",
    "keep_visits",
    "keep_changes",
    "quota",
)


@dataclass(frozen=True, slots=True)
class DatedVersion:
    """A version by its number, and when it was first seen. Later versions have higher numbers."""

    number: int
    at: datetime


def select_stored_versions(
    versions: Iterable[DatedVersion], domain_settings: DomainSettings, *, now: datetime, needed: Collection[int] = ()
) -> frozenset[int]:
    """The numbers of the versions that stay: the newest `keep_versions` of a page, and others by their age.

    Of older versions the last of each day, week and month stays, as long as it is not older than `keep_daily`,
    `keep_weekly` and `keep_monthly`; None: for ever.
    versions: all of a page whose text is still there.  now: not before any of them.  needed: stay whatever their age.
    Always: the newest stays; what stays at an instant stayed at every earlier one; a second pass takes nothing more.
    """
    newest_first = sorted(versions, key=lambda version: -version.number)
    stored = {version.number for version in newest_first[: max(domain_settings.keep_versions, 1)]}
    covered_periods: set[tuple[int, ...]] = set()
    for version in newest_first:
        at, age = version.at.astimezone(UTC), now - version.at
        # Tuples of unlike lengths, so that no period is taken for another.
        month = (at.year, at.month)
        week = (*month, min((at.day - 1) // 7, 3))
        day = (*week, at.day)
        period: tuple[int, ...] | None = None
        if age <= domain_settings.keep_daily:
            period = day
        elif age <= domain_settings.keep_weekly:
            period = week
        elif domain_settings.keep_monthly is None or age <= domain_settings.keep_monthly:
            period = month
        if version.number in needed or (period is not None and period not in covered_periods):
            stored.add(version.number)
        # Whatever rule keeps a version, it is the last of its day, week and month for all others.
        covered_periods |= {day, week, month}
    return frozenset(stored)


def has_same_retention(one: DomainSettings, other: DomainSettings) -> bool:
    """Whether as much of the past is kept under the one as under the other."""
    return all(getattr(one, name) == getattr(other, name) for name in RETENTION_SETTINGS)
