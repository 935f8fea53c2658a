"""What differs from one look to the next though nothing happened: clocks, counters, tokens, advertisements.

It is learnt from paired looks alone, two full looks seconds apart: what differs between these two is no news. That a
place differs between looks of different days proves nothing: a price that moves daily stays a change. There is one
other proof, by time itself: a number that has grown by exactly the hours, days or weeks that passed counts them.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TypeVar

from crawler.core.fingerprint import number_of
from crawler.core.outline import Part, Place
from crawler.core.words import NUMBER, Words, numberless, words_of

K = TypeVar("K")
V = TypeVar("V")

MOST_PATTERNS = 1024  # of one domain; the oldest are forgotten first
MOST_NOISE = 1024
MOST_PATHS = 4096
MOST_PARAMETERS = 1024  # names; a site that makes up more of them has links that are noise
ENOUGH_STEADY = 3  # pairs in which a path stood still, and it needs no more of them
FOUND_COUNTING = 3  # times that a place has counted the time exactly, before it is believed to do so
MOSTLY = 0.5  # of the places on a path
ALIKE = 0.5  # of the words that stay: a place that shares so many with a volatile one is the same place
UNITS_S = (1, 60, 3600, 86400, 7 * 86400, 30.44 * 86400, 365.25 * 86400)  # in which pages say how long ago it was

Pattern = tuple[str, ...]  # the words of a place, with ANY or, of words with another number, what is numberless
ANY = ""


@dataclass(frozen=True, slots=True)
class Steadiness:
    """How a path came through pairs. steady: all on it stood still.  swung: most of it differed.  mixed: some did."""

    steady: int = 0
    swung: int = 0
    mixed: int = 0


@dataclass(frozen=True, slots=True)
class Trial:
    """How places of one path and one number of words came through pairs. changes: found there since the last pair."""

    steady: int = 0
    changes: int = 0


@dataclass(frozen=True, slots=True)
class Volatile:
    """What is known of the volatile places of one domain; immutable, and bounded.

    patterns: by path and number of words.  anywhere: gaps at a path whatever its other words.
    parameters: of links, by name.  noise: whole places that came or went between two looks of a pair.
    steadiness: of paths.  counting: how often a pattern's number agreed with the time; below 0: it does not.
    trials: by trial_of.
    """

    patterns: Mapping[tuple[int, int], tuple[Pattern, ...]] = field(default_factory=dict)
    anywhere: Mapping[tuple[int, int], Mapping[int, str]] = field(default_factory=dict)
    parameters: frozenset[str] = frozenset()
    noise: Mapping[int, None] = field(default_factory=dict)
    steadiness: Mapping[int, Steadiness] = field(default_factory=dict)
    counting: Mapping[int, int] = field(default_factory=dict)
    trials: Mapping[int, Trial] = field(default_factory=dict)

    def masked(self, place: Place) -> Words:
        """The words of a place, with nothing in place of those that are volatile."""
        words = self.said(place)
        gaps = self.gaps(place.path, words)
        return tuple(gaps.get(n, word) for n, word in enumerate(words)) if gaps else words

    def both(self, before: Place, after: Place) -> tuple[Words, Words]:
        """The masked words of a place then and now: what is volatile in the one is so in the other."""
        one, other = self.said(before), self.said(after)
        if before.path != after.path or len(one) != len(other):
            return self.masked(before), self.masked(after)
        gaps = self.gaps(before.path, one) | self.gaps(after.path, other)
        if any(not _agrees(gap, one[n]) or not _agrees(gap, other[n]) for n, gap in gaps.items()):
            return self.masked(before), self.masked(after)
        return tuple(gaps.get(n, w) for n, w in enumerate(one)), tuple(gaps.get(n, w) for n, w in enumerate(other))

    def said(self, place: Place) -> Words:
        """The words of a place without volatile parameters, which other pages' links do not even have."""
        words = words_of(place)
        if place.part is Part.LINK and self.parameters:
            return tuple(word for word in words if _parameter(word) not in self.parameters)
        return words

    def gaps(self, path: int, words: Words) -> dict[int, str]:
        """Which words of a place are volatile, with what stands for them."""
        same = (path, len(words))
        found = {n: gap for n, gap in self.anywhere.get(same, {}).items() if _agrees(gap, words[n])}
        for pattern in self.patterns.get(same, ()):
            if all(
                n in found or _agrees(each, word) for n, (each, word) in enumerate(zip(pattern, words, strict=True))
            ):
                found |= _gaps(pattern)
        return found

    def is_noise(self, place: Place) -> bool:
        """Whether this very place came or went within seconds before, or nothing on its path ever stands still."""
        return noise_of(place) in self.noise or self.swings(place.path)

    def swings(self, path: int) -> bool:
        known = self.steadiness.get(path)
        return known is not None and known.swung > 2 * (known.steady + known.mixed)

    def is_tested(self, place: Place) -> bool:
        """Whether pairs have shown often enough that what stands here stands still; ever more seldom it is asked again,
        since places alike in name can hold a counter on other pages.
        """
        known = self.trials.get(trial_of(place), Trial())
        return known.steady >= ENOUGH_STEADY and known.changes < known.steady

    def is_unknown(self, place: Place) -> bool:
        """Whether one pair at most has told anything of places like this."""
        return self.trials.get(trial_of(place), Trial()).steady <= 1

    def has_gaps(self, place: Place) -> bool:
        """Whether some words of a place are volatile: a machine writes it."""
        return bool(self.gaps(place.path, self.said(place)))

    def takes_the_place(self, before: Place, after: Place) -> bool:
        """Whether a place stands where a volatile one stood and says much of the same, as "1 hour ago" in place of
        "59 minutes ago".
        """
        for (path, _), patterns in self.patterns.items():
            if path != before.path:
                continue
            for pattern in patterns:
                if (
                    len(pattern) != len(words_of(after))
                    and _fits(pattern, words_of(before))
                    and _shares(pattern, words_of(after))
                ):
                    return True
        return False


NOTHING_VOLATILE = Volatile()


def trial_of(place: Place) -> int:
    """A number for places of the same path and length."""
    return number_of(f"{place.path} {place.part} {len(words_of(place))}")


def noise_of(place: Place) -> int:
    """A number for a place with all that it says."""
    return number_of(f"{place.path} {place.part} {place.text}")


def _parameter(step: str) -> str:
    name, equals, _ = step.partition("=")
    return name if equals else ""


def _agrees(each: str, word: str) -> bool:
    """Whether a word of a pattern stands for this one."""
    return each in (ANY, word) or (NUMBER in each and each == numberless(word))


def _gaps(pattern: Pattern) -> dict[int, str]:
    return {n: each for n, each in enumerate(pattern) if each == ANY or NUMBER in each}


def _fits(pattern: Pattern, words: Words) -> bool:
    return len(pattern) == len(words) and all(map(_agrees, pattern, words))


def _shares(pattern: Pattern, words: Words) -> bool:
    fixed = [each for n, each in enumerate(pattern) if n not in _gaps(pattern)]
    said = set(words)
    return bool(fixed) and sum(each in said for each in fixed) >= ALIKE * len(fixed)


def learn_pair(
    volatile: Volatile,
    *,
    replaced: Sequence[tuple[Place, Place]],
    others: Sequence[Place],
    first: Sequence[Place],
    second: Sequence[Place],
) -> Volatile:
    """What two looks teach that were seconds apart.

    replaced: places of the first look and what stood there in the second.  others: places that only one of them had.
    first, second: all places of both.
    """
    known = volatile
    lost, named = list(others), set()
    for before, after in replaced:
        learnt = learn_replaced(known, before, after)
        if learnt is None:
            lost += [before, after]
        else:
            known = learnt
            named |= {noise_of(before), noise_of(after)}
    noise = dict(known.noise) | dict.fromkeys(noise_of(place) for place in lost)
    differing = named | {noise_of(place) for place in lost}
    return replace(
        known,
        noise=_newest(noise, MOST_NOISE),
        steadiness=_newest(_stood(known.steadiness, lost, named, (*first, *second)), MOST_PATHS),
        trials=_newest(_tried(known.trials, differing, (*first, *second)), MOST_PATHS),
    )


def _stood(
    known: Mapping[int, Steadiness], lost: Sequence[Place], named: set[int], places: Sequence[Place]
) -> dict[int, Steadiness]:
    """named: places of which only some words differed."""
    found = dict(known)
    differing = Counter(place.path for place in lost)
    partly = Counter(place.path for place in places if noise_of(place) in named)
    for path, many in Counter(place.path for place in places).items():
        stood = found.pop(path, Steadiness())
        if not differing[path] and not partly[path]:
            found[path] = replace(stood, steady=stood.steady + 1)
        elif differing[path] and differing[path] >= MOSTLY * (many - partly[path]):
            found[path] = replace(stood, swung=stood.swung + 1)
        else:
            found[path] = replace(stood, mixed=stood.mixed + 1)
    return found


def _tried(known: Mapping[int, Trial], differing: set[int], places: Sequence[Place]) -> dict[int, Trial]:
    found = dict(known)
    moved = {trial_of(place) for place in places if noise_of(place) in differing}
    for trial in {trial_of(place) for place in places}:
        before = found.pop(trial, Trial())
        found[trial] = Trial() if trial in moved else Trial(before.steady + 1)
    return found


def learn_changes(volatile: Volatile, places: Iterable[Place]) -> Volatile:
    """In these places there was news, and no pair was taken."""
    found = dict(volatile.trials)
    for trial in {trial_of(place) for place in places} & found.keys():
        found[trial] = replace(found[trial], changes=found[trial].changes + 1)
    return replace(volatile, trials=found)


def learn_replaced(volatile: Volatile, before: Place, after: Place) -> Volatile | None:
    """A place whose words differ here and there: these words are volatile. None if nothing of it stayed."""
    one, other = volatile.said(before), volatile.said(after)
    if before.path != after.path or len(one) != len(other):
        return None
    differing = {n for n in range(len(one)) if one[n] != other[n]}
    names = {_parameter(one[n]) for n in differing} if before.part is Part.LINK else {""}
    if all(names) and names == {_parameter(other[n]) for n in differing}:
        parameters = volatile.parameters | names
        return replace(volatile, parameters=parameters) if len(parameters) <= MOST_PARAMETERS else None
    pattern = tuple(_gap(word, other[n]) if n in differing else word for n, word in enumerate(one))
    own = pattern[ORIGIN_WORDS:] if before.part is Part.LINK else pattern
    if own.count(ANY) > ALIKE * len(own):
        return None
    return _with_pattern(volatile, before.path, pattern)


def _gap(one: str, other: str) -> str:
    """What stands for two words: where they differ in numbers only, what is about them."""
    alike = numberless(one)
    return alike if alike == numberless(other) else ANY


def _with_pattern(volatile: Volatile, path: int, pattern: Pattern) -> Volatile:
    """Its gaps join those of a known one that says the same; where only the other words differ, gaps hold anywhere."""
    same = (path, len(pattern))
    kept: list[Pattern] = []
    anywhere = dict(volatile.anywhere)
    for known in volatile.patterns.get(same, ()):
        joined = _joined(known, pattern)
        if joined is not None:
            pattern = joined
            continue
        kept.append(known)
        if _gaps(known) == _gaps(pattern):
            anywhere[same] = {**anywhere.get(same, {}), **_gaps(pattern)}
    patterns = dict(volatile.patterns)
    patterns.pop(same, None)
    patterns[same] = (*kept, pattern)[-MOST_SAME:]
    return replace(volatile, patterns=_newest(patterns, MOST_PATTERNS), anywhere=_newest(anywhere, MOST_PATTERNS))


def _joined(one: Pattern, other: Pattern) -> Pattern | None:
    """One pattern for both, if all their other words are the same."""
    gaps = _gaps(one) | _gaps(other)
    if any(a != b and n not in gaps for n, (a, b) in enumerate(zip(one, other, strict=True))):
        return None
    return tuple(a if a == b else _gap(a, b) for a, b in zip(one, other, strict=True))


ORIGIN_WORDS = 2  # of a link: all of a site's begin with the same
MOST_SAME = 32  # patterns of one path and length


def learn_elapsed(volatile: Volatile, before: Place, after: Place, *, elapsed: timedelta) -> Volatile:
    """What a place teaches that differs from what it was `elapsed` ago: whether it counts the time.

    One agreement is chance; FOUND_COUNTING of them without a single disagreement are not.
    """
    one, other = volatile.both(before, after)
    if before.path != after.path or len(one) != len(other):
        return volatile
    differing = [n for n in range(len(one)) if one[n] != other[n]]
    numbers = [(n, *grown) for n in differing if (grown := _numbers(one[n], other[n])) is not None]
    if len(numbers) != 1 or len(differing) > 2:  # the number, and perhaps its unit
        return volatile
    ((at, was, now),) = numbers
    pattern = tuple(_gap(word, other[n]) if n in differing else word for n, word in enumerate(one))
    key = number_of(f"{before.path} {len(one)} {at}")
    told = volatile.counting.get(key, 0)
    counts = _counts_time(was, now, elapsed.total_seconds())
    told = told + 1 if counts and told >= 0 else -1
    learnt = replace(volatile, counting=_newest({**volatile.counting, key: told}, MOST_PATHS))
    return _with_pattern(learnt, before.path, pattern) if told >= FOUND_COUNTING else learnt


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


def _newest(known: dict[K, V], most: int) -> dict[K, V]:
    for key in list(known)[: max(len(known) - most, 0)]:
        del known[key]
    return known
