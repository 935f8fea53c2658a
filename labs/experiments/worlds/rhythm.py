"""The times of changes at a given rate: even (Poisson), in bursts, in office hours, or with a release."""

import numpy as np
from numpy.random import Generator

from labs.experiments.worlds.world import Floats, Ints, Segments

WEEK_HOURS = 168
OFFICE = range(8, 19)  # hours of a working day
OFFICE_WEIGHT, EVENING_WEIGHT, NIGHT_WEIGHT = 10.0, 1.0, 0.3  # weight of an hour of each kind, before scaling
MIN_VARIATION, MAX_VARIATION = 1.3, 1.8  # of the gaps between changes, as measured on four sites (1 for Poisson)


def poisson(rng: Generator, segments: Segments, ends: Floats) -> tuple[Ints, Floats]:
    """Return independent changes (page, day).

    ends: the last day of each page.  A segment lasts until its page's next one begins.
    """
    until = _ends_of(segments, ends)
    counts = rng.poisson(segments.rate * (until - segments.since))
    which = np.repeat(np.arange(len(counts)), counts)
    at = segments.since[which] + rng.random(len(which)) * (until - segments.since)[which]
    return segments.page[which], at


def bursts(rng: Generator, segments: Segments, ends: Floats) -> tuple[Ints, Floats]:
    """Return changes with Gamma gaps that vary more than their mean, page by page, starting long before day 0.

    Each page must have only one segment, as without drift.
    """
    variation = rng.uniform(MIN_VARIATION, MAX_VARIATION, len(segments.page))
    shape = 1 / variation**2
    run_up = 10 / segments.rate  # days before the start, so that day 0 is at a random point of a gap
    expected = segments.rate * (ends[segments.page] - segments.since + run_up)
    counts = np.ceil(expected + 6 * variation * np.sqrt(expected) + 20).astype(np.int64)  # almost certainly enough
    which = np.repeat(np.arange(len(counts)), counts)
    gaps = rng.gamma(shape[which], 1.0) / (shape * segments.rate)[which]
    total = np.cumsum(gaps)
    first = np.repeat(np.cumsum(counts) - counts, counts)
    at = total - (total - gaps)[first] + (segments.since - run_up)[which]
    inside = (at > segments.since[which]) & (at <= ends[segments.page[which]])
    return segments.page[which[inside]], at[inside]


def office_hours(rng: Generator, segments: Segments, ends: Floats) -> tuple[Ints, Floats]:
    """Return the changes of a Poisson process, moved mostly into the working hours of the page's time zone."""
    page, at = poisson(rng, segments, ends)
    zone = rng.integers(24, size=len(ends)) / 24
    weights = _week()
    passed = np.concatenate([[0.0], np.cumsum(weights)]) * 7 / weights.sum()  # activity until each hour, in days
    local = at + zone[page]
    week, rest = np.divmod(local, 7)
    moved = week * 7 + np.interp(rest, passed, np.arange(WEEK_HOURS + 1) / 24) - zone[page]
    return page, np.maximum(moved, 0.0)


def released(rng: Generator, page: Ints, at: Floats, *, days: float, apart: float) -> tuple[Ints, Floats]:
    """Delay changes to the next release and merge those of one page until then. apart: mean days between releases."""
    releases = np.append(np.sort(rng.uniform(0, days, rng.poisson(days / apart))), np.inf)
    found = np.unique(np.stack([page, np.searchsorted(releases, at)]), axis=1)
    return found[0], releases[found[1]]


def _week() -> Floats:
    """Return the activity of each hour of a week, which begins on a Monday."""
    weights = np.full(WEEK_HOURS, NIGHT_WEIGHT)
    for day in range(5):
        weights[day * 24 + 7 : day * 24 + 23] = EVENING_WEIGHT
        weights[[day * 24 + hour for hour in OFFICE]] = OFFICE_WEIGHT
    return weights


def _ends_of(segments: Segments, ends: Floats) -> Floats:
    """Return when each segment ends: when its page's next one begins, or when its page vanishes."""
    order = np.lexsort((segments.since, segments.page))
    page, since = segments.page[order], segments.since[order]
    until = ends[page].copy()
    follows = page[1:] == page[:-1]
    until[:-1][follows] = since[1:][follows]
    result = np.empty_like(until)
    result[order] = until
    return result
