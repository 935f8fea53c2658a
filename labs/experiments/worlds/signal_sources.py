"""Signals about a generated world: from reliable sources of some precision and recall, and from unreliable ones."""

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.random import Generator

from labs.experiments.worlds.world import Floats, Ints, World

TURNS_AT = 0.6  # of the time, when a source becomes unreliable or stops
QUIET_DAYS = 10.0  # an unreliable source signals changes of pages that have not changed for this long
BURST_SHARE, BURST_SIGNALS = 0.1, 5  # of all pages, each day, and signals about each of them


class Behavior(StrEnum):
    """How a source sends signals."""

    HONEST = "honest"  # some changes, at once, and false signals, evenly over pages and time
    TODAY = "today"  # a change of every page, every day
    UNCHANGED = "unchanged"  # only pages that have not changed
    BURSTS = "bursts"  # every day a random tenth of the pages, five times each
    TURNS_TODAY = "turns liar: today"  # all changes and nothing else, then a change of every page every day
    TURNS_UNCHANGED = "turns liar: unchanged"  # all changes and nothing else, then only pages that have not changed
    FALLS_SILENT = "falls silent"  # all changes and nothing else, then nothing
    HALF = "half the pages"  # all changes of every second page and nothing of the others


@dataclass(frozen=True, slots=True)
class SignalLog:
    """Signals ordered by day. page: number of the page that is reported as changed."""

    page: Ints
    day: Floats


@dataclass(frozen=True, slots=True)
class SignalSource:
    """A source. recall: share of the changes that it signals.  precision: share of its signals that are true."""

    behavior: Behavior = Behavior.HONEST
    recall: float = 1.0
    precision: float = 1.0


def generate_signals(source: SignalSource, world: World, *, seed: int) -> SignalLog:
    """Return a source's signals about a world. Equal arguments give equal signals."""
    rng = np.random.default_rng([seed, 1])
    turn = TURNS_AT * world.days
    match source.behavior:
        case Behavior.HONEST:
            page, day = _honest(rng, world, source)
        case Behavior.TODAY:
            page, day = _today(world, 0.0)
        case Behavior.UNCHANGED:
            page, day = _unchanged(rng, world, 0.0)
        case Behavior.BURSTS:
            page, day = _bursts(rng, world)
        case Behavior.HALF:
            page, day = _honest(rng, world, SignalSource())
            page, day = page[page % 2 == 0], day[page % 2 == 0]
        case _:
            page, day = _honest(rng, world, SignalSource())
            page, day = page[day < turn], day[day < turn]
            lies = None
            if source.behavior is Behavior.TURNS_TODAY:
                lies = _today(world, turn)
            elif source.behavior is Behavior.TURNS_UNCHANGED:
                lies = _unchanged(rng, world, turn)
            if lies is not None:
                page, day = np.append(page, lies[0]), np.append(day, lies[1])
    order = np.argsort(day, kind="stable")
    return SignalLog(page[order], day[order])


def _changes(world: World) -> tuple[Ints, Floats]:
    keys = world.keys[np.isfinite(world.keys)]
    page = np.floor(keys / world.stride).astype(np.int64)
    return page, keys - page * world.stride


def _honest(rng: Generator, world: World, source: SignalSource) -> tuple[Ints, Floats]:
    page, day = _changes(world)
    is_signaled = rng.random(len(page)) < source.recall
    many = rng.poisson(is_signaled.sum() * (1 - source.precision) / source.precision)
    false = rng.integers(world.size, size=many), rng.uniform(0, world.days, many)
    return np.append(page[is_signaled], false[0]), np.append(day[is_signaled], false[1])


def _today(world: World, since: float) -> tuple[Ints, Floats]:
    days = np.arange(np.ceil(since), world.days) + 0.01
    return np.tile(np.arange(world.size), len(days)), np.repeat(days, world.size)


def _unchanged(rng: Generator, world: World, since: float) -> tuple[Ints, Floats]:
    """Return as many signals as there are changes, none about a page that has changed within the last days."""
    many = len(_changes(world)[0])
    page, day = rng.integers(world.size, size=many), rng.uniform(0, world.days, many)
    quiet = (day - world.last_change(page, day) > QUIET_DAYS) & (day >= since)
    return page[quiet], day[quiet]


def _bursts(rng: Generator, world: World) -> tuple[Ints, Floats]:
    days = np.arange(1.0, world.days)
    hit = rng.random((len(days), world.size)) < BURST_SHARE
    day, page = np.nonzero(hit)
    return np.repeat(page, BURST_SIGNALS), np.repeat(days[day], BURST_SIGNALS)
