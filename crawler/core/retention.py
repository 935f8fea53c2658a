"""Selection of the versions of a page to keep: the newest ones, then one per day, week and month.

Days, weeks and months are nested: a week is days 1 to 7, 8 to 14, 15 to 21 or 22 to the end of a month, all in UTC. The
last version of a month is therefore the last of its week and of its day, and the finer rules have kept whatever a
coarser rule keeps later. Pruning every day leaves the same versions as pruning once.
"""

from collections.abc import Collection, Iterable
from datetime import UTC, datetime

from msgspec import Struct

from crawler.core.domain_settings import DomainSettings

# The settings that decide how much of a domain's history is kept.
RETENTION = ("keep_versions", "keep_daily", "keep_weekly", "keep_monthly", "keep_visits", "keep_changes", "quota")


class DatedVersion(Struct, frozen=True):
    """A version by its number, with the time when it was first seen. Later versions have higher numbers."""

    number: int
    at: datetime


def select_stored_versions(
    versions: Iterable[DatedVersion], domain_settings: DomainSettings, *, now: datetime, needed: Collection[int] = ()
) -> frozenset[int]:
    """Return the numbers of the versions to keep: the newest `keep_versions` of a page, and others by age.

    Of older versions, the last of each day, week and month is kept up to an age of `keep_daily`, `keep_weekly` and
    `keep_monthly`; None means forever.
    versions: all versions of a page whose text is still stored.  now: must not be before any of them.
    needed: the numbers of versions to keep at any age.
    Invariants: the newest version is kept; what is kept at an instant was kept at every earlier one; a second pass
    removes nothing.
    """
    newest_first = sorted(versions, key=lambda version: -version.number)
    kept = {version.number for version in newest_first[: max(domain_settings.keep_versions, 1)]}
    covered_periods: set[tuple[int, ...]] = set()
    limits = (domain_settings.keep_daily, domain_settings.keep_weekly, domain_settings.keep_monthly)
    for version in newest_first:
        at, age = version.at.astimezone(UTC), now - version.at
        # Tuples of different lengths, so that no period equals one of another kind.
        day: tuple[int, ...] = (at.year, at.month, min((at.day - 1) // 7, 3), at.day)
        periods = (day, day[:3], day[:2])
        fitting = (period for period, longest in zip(periods, limits, strict=True) if longest is None or age <= longest)
        period = next(fitting, None)
        if version.number in needed or (period is not None and period not in covered_periods):
            kept.add(version.number)
        # Whichever rule keeps a version, it is the last of its day, week and month for the other rules too.
        covered_periods.update(periods)
    return frozenset(kept)


def has_same_retention(one: DomainSettings, other: DomainSettings) -> bool:
    """Return whether two settings keep the same amount of history."""
    return all(getattr(one, name) == getattr(other, name) for name in RETENTION)
