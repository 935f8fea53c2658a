"""A policy's life in a world: a virtual clock, a ledger, looks at continuous times, and what they came to."""

from collections.abc import Callable

import numpy as np

from crawler.lab.measures import Copies, Outcome
from crawler.lab.policies.policy import Looks, Policy, Scene
from crawler.lab.world import Floats, Ints, World

LOOKS_PER_CLAIM = 12
LEAST_CLAIMS, MOST_CLAIMS = 4, 24  # a day
COMPARED_EVERY_DAYS = 10

Maker = Callable[[Scene, World], Policy]
Progress = Callable[[int, int], None]  # days done, days in all


def simulate(
    world: World, maker: Maker, *, budget_per_day: float, progress: Progress = lambda _done, _all: None
) -> Outcome:
    """Let a policy look at a world's pages within a budget, and measure the second half of the time.

    maker: makes the policy; the world is for clairvoyants only.  budget_per_day: requests per day of virtual time.
    """
    run = _Run(world, maker, budget_per_day)
    for day in range(int(world.days)):
        run.live(day)
        progress(day + 1, int(world.days))
    return run.outcome()


class _Run:
    """One policy in one world, day by day."""

    def __init__(self, world: World, maker: Maker, budget_per_day: float) -> None:
        self._world, self._budget = world, budget_per_day
        self._scene = Scene(world.importance, world.host, world.group, budget_per_day, world.cap_per_day)
        self._policy = maker(self._scene, world)
        self._window = world.days / 2
        self._copies = Copies(world, window=self._window)
        self._last = np.zeros(world.size)
        self._fetched = world.born <= 0
        self._arrivals = np.argsort(world.born, kind="stable")
        self._met = int((world.born <= 0).sum())
        present = self._arrivals[: self._met]
        self._policy.meet(present, 0.0)
        self._copies.refresh(present, np.zeros(len(present)))
        self._claims = int(np.clip(round(budget_per_day / LOOKS_PER_CLAIM), LEAST_CLAIMS, MOST_CLAIMS))
        self._requests = self._wasted = self._over_days = 0
        self._compared = False

    def live(self, day: int) -> None:
        """A UTC day: claims at even times, a ledger that begins anew."""
        spent, by_host = 0, np.zeros(int(self._world.host.max()) + 1)
        for claim in range(self._claims):
            now, until = day + claim / self._claims, day + (claim + 1) / self._claims
            self._welcome(now)
            slots = int(np.floor(self._budget * (claim + 1) / self._claims + 1e-9)) - spent
            room = self._room(by_host, (claim + 1) / self._claims)
            pages = self._policy.choose(now, slots, room) if slots > 0 else np.zeros(0, np.int64)
            assert len(pages) <= slots
            spent += len(pages)
            by_host += np.bincount(self._world.host[pages], minlength=len(by_host))
            if len(pages):
                self._look(pages, now + (np.arange(len(pages)) + 0.5) / len(pages) * (until - now))
        self._over_days += spent > self._budget + 1e-9
        if day >= self._window and day % COMPARED_EVERY_DAYS == 0:
            self._compare(day + 1.0)

    def _room(self, by_host: Floats, share: float) -> Ints | None:
        cap = self._world.cap_per_day
        return None if cap is None else np.maximum(np.floor(cap * share + 1e-9) - by_host, 0).astype(np.int64)

    def _welcome(self, now: float) -> None:
        until = int(np.searchsorted(self._world.born[self._arrivals], now, side="right"))
        if until > self._met:
            self._policy.meet(self._arrivals[self._met : until], now)
            self._met = until

    def _look(self, pages: Ints, at: Floats) -> None:
        world = self._world
        gone, first = at >= world.died[pages], ~self._fetched[pages]
        since = self._last[pages]
        count = world.changes_between(pages, since, at)
        changed = (count > 0) & ~first & ~gone
        self._copies.refresh(pages[~gone], at[~gone])
        self._copies.close(pages[gone], at[gone])
        self._policy.learn(
            Looks(
                page=pages,
                at=at,
                gap=np.where(first, 0.0, at - since),
                first=first,
                changed=changed,
                gone=gone,
                modified_age=world.modified_age(pages, at),
                distance_bits=world.distance_bits(pages, count),
            )
        )
        self._last[pages], self._fetched[pages] = at, True
        counted = at >= self._window
        self._requests += int(counted.sum())
        self._wasted += int((counted & ~changed & ~first).sum())

    def _compare(self, now: float) -> None:
        expected = self._policy.expects(now)
        if expected is not None:
            self._copies.compare(expected, now)
            self._compared = True

    def outcome(self) -> Outcome:
        world, copies = self._world, self._copies
        copies.close(np.arange(world.size), world.days)
        return Outcome(
            freshness=copies.freshness(world.importance),
            plain=copies.freshness(np.ones(world.size)),
            age_days=copies.age_days(world.importance),
            requests=self._requests,
            wasted=self._wasted,
            granted=self._budget * (world.days - self._window),
            over_days=self._over_days,
            calibration=copies.calibration() if self._compared else None,
        )
