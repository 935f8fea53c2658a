"""Numbers that count the time: they have grown by exactly the hours, days or weeks that passed, and never otherwise."""

import re
from dataclasses import dataclass, replace
from datetime import timedelta

from crawler.core.bounded import newest
from crawler.core.fingerprint import number_of
from crawler.core.outline import Place
from crawler.core.patterns import Pattern, pattern_of
from crawler.core.volatile import MOST_PATHS, Volatile, with_pattern

FOUND_COUNTING = 3  # times that a place has counted the time exactly, before it is believed to do so
UNITS_S = (1, 60, 3600, 86400, 7 * 86400, 30.44 * 86400, 365.25 * 86400)  # in which pages say how long ago it was


def learn_elapsed(volatile: Volatile, before: Place, after: Place, *, elapsed: timedelta) -> Volatile:
    """What a place teaches that differs from what it was `elapsed` ago: whether it counts the time.

    One agreement is chance; FOUND_COUNTING of them without a single disagreement are not.
    """
    grown = _grown(volatile, before, after)
    if grown is None:
        return volatile
    told = volatile.counting.get(grown.key, 0)
    told = told + 1 if grown.by(elapsed) and told >= 0 else -1
    learnt = replace(volatile, counting=newest({**volatile.counting, grown.key: told}, MOST_PATHS))
    return with_pattern(learnt, before.path, grown.pattern) if told >= FOUND_COUNTING else learnt


def counts_time(volatile: Volatile, before: Place, after: Place, *, elapsed: timedelta) -> bool:
    """Whether all that differs is a number that counts the time, and has grown by as much as passed."""
    grown = _grown(volatile, before, after)
    return grown is not None and volatile.counting.get(grown.key, 0) >= FOUND_COUNTING and grown.by(elapsed)


@dataclass(frozen=True, slots=True)
class _Grown:
    """A place of which only one number differs, and perhaps its unit. key: of all numbers that stand so."""

    key: int
    pattern: Pattern
    was: int
    now: int

    def by(self, elapsed: timedelta) -> bool:
        """Whether it is by the time that passed."""
        return _counts_time(self.was, self.now, elapsed.total_seconds())


def _grown(volatile: Volatile, before: Place, after: Place) -> _Grown | None:
    one, other = volatile.both(before, after)
    if before.path != after.path or len(one) != len(other):
        return None
    differing = [n for n in range(len(one)) if one[n] != other[n]]
    numbers = [(n, *grown) for n in differing if (grown := _numbers(one[n], other[n])) is not None]
    if len(numbers) != 1 or len(differing) > 2:
        return None
    ((at, was, now),) = numbers
    pattern = pattern_of(one, other)
    # By what stands beside it, since the words before it, a name perhaps, are others on other pages.
    beside = one[at + 1] if at + 1 < len(one) else one[at - 1] if at else ""
    return _Grown(number_of(f"{before.path} {pattern[at]} {beside}"), pattern, was, now)


_NUMBER = re.compile(r"(\D*)(\d{1,9}|\d{1,3}(?:[., ']\d{3}){1,2})(\D*)")


def _numbers(one: str, other: str) -> tuple[int, int] | None:
    """The numbers in two words that are alike but for them: 394 and 397 in "394d" and "397d"."""
    before, after = _NUMBER.fullmatch(one), _NUMBER.fullmatch(other)
    if before is None or after is None or (before[1], before[3]) != (after[1], after[3]):
        return None
    return _integer(before[2]), _integer(after[2])


def _integer(written: str) -> int:
    return int("".join(filter(str.isdecimal, written)))


def _counts_time(before: int, after: int, elapsed_s: float) -> bool:
    """Whether the number grew by as many of some unit as have passed."""
    grown = after - before
    return grown >= 1 and any(abs(grown * unit - elapsed_s) < unit for unit in UNITS_S if unit <= elapsed_s * 2)
