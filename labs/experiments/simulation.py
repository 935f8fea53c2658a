"""The simulation of a policy in a world: a virtual clock, a ledger, and visits at continuous times."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import numpy as np

from crawler.core.budget.ledger import Ledger, count_grantable_requests, debit_ledger, roll_over
from labs.experiments.measures import Copies, Measured
from labs.experiments.policies.policy import Policy, Scene, VisitBatch
from labs.experiments.worlds.world import Floats, Ints, World

VISITS_PER_CLAIM = 25  # approximate number of pages chosen at once, and visited at even times until the next claim
MIN_CLAIMS, MAX_CLAIMS = 4, 24  # per day
COMPARISONS = 50  # approximate number of comparisons of expected and true freshness in the second half

START = datetime(2026, 1, 1, tzinfo=UTC)  # any day; the ledger needs one
DAY_SECONDS = 86_400

BITS = 64  # of a fingerprint

NO_PAGES = np.zeros(0, np.int64)

Maker = Callable[[Scene, World], Policy]
Progress = Callable[[int, int], None]  # days done, days in total


def simulate(
    world: World,
    maker: Maker,
    *,
    budget_per_day: int,
    from_day: int | None = None,
    progress: Progress = lambda _done, _all: None,
) -> Measured:
    """Let a policy visit a world's pages within a budget; measure from a day on, by default in the second half.

    maker: makes the policy; only policies that know the truth use the world.  budget_per_day: requests per virtual day.
    """
    run = _Run(world, maker, budget_per_day, from_day)
    for day in range(int(world.days)):
        run.live(day)
        progress(day + 1, int(world.days))
    return run.outcome()


class _Run:
    """One policy in one world, day by day."""

    def __init__(self, world: World, maker: Maker, budget_per_day: int, from_day: int | None) -> None:
        self._world, self._budget = world, budget_per_day
        self._scene = Scene(world.importance, world.host, world.group, budget_per_day, world.cap_per_day)
        self._policy = maker(self._scene, world)
        # Ledgers know only whole days.
        self._window = float(np.ceil(world.days / 2)) if from_day is None else float(from_day)
        self._copies = Copies(world, window=self._window)
        self._last = np.zeros(world.size)
        self._fetched = world.born <= 0
        self._arrivals = np.argsort(world.born, kind="stable")
        self._met = int((world.born <= 0).sum())
        present = self._arrivals[: self._met]
        self._policy.meet(present, 0.0)
        self._copies.refresh(present, np.zeros(len(present)))
        self._claims = int(np.clip(round(budget_per_day / VISITS_PER_CLAIM), MIN_CLAIMS, MAX_CLAIMS))
        self._requests = self._wasted = self._over_days = 0
        self._compared = False
        self._rng = np.random.default_rng(0)  # for fingerprints

    def live(self, day: int) -> None:
        """Simulate a UTC day: claims at even times, with a new ledger."""
        ledger, by_host = Ledger(START.date()), np.zeros(int(self._world.host.max()) + 1)
        for claim in range(self._claims):
            now, part = day + claim / self._claims, (claim + 1) / self._claims
            self._add_arrivals(now)
            # A claim's visits are spread until the next one, so all that may be granted until then is granted.
            last = START + timedelta(days=day, seconds=part * DAY_SECONDS - 1)
            ledger = roll_over(ledger, now=last)
            slots = count_grantable_requests(ledger, self._budget, now=last)
            pages = self._policy.choose(now, slots, self._room(by_host, part)) if slots > 0 else NO_PAGES
            if len(pages) > slots:
                raise AssertionError(f"{len(pages)} pages were chosen for {slots} slots")
            ledger = debit_ledger(ledger, len(pages))
            by_host += np.bincount(self._world.host[pages], minlength=len(by_host))
            if len(pages):
                self._visit(pages, now + (np.arange(len(pages)) + 0.5) / len(pages) / self._claims)
        self._over_days += ledger.requests > self._budget
        if day >= self._window and day % max(int(self._world.days / 2 / COMPARISONS), 1) == 0:
            self._compare(day + 1.0)

    def _room(self, by_host: Floats, share: float) -> Ints | None:
        cap = self._world.cap_per_day
        return None if cap is None else np.maximum(np.floor(cap * share + 1e-9) - by_host, 0).astype(np.int64)

    def _add_arrivals(self, now: float) -> None:
        until = int(np.searchsorted(self._world.born[self._arrivals], now, side="right"))
        if until > self._met:
            self._policy.meet(self._arrivals[self._met : until], now)
            self._met = until

    def _visit(self, pages: Ints, at: Floats) -> None:
        world = self._world
        gone, first = at >= world.died[pages], ~self._fetched[pages]
        since = self._last[pages]
        count = world.changes_between(pages, since, at)
        changed = (count > 0) & ~first & ~gone
        self._copies.refresh(pages[~gone], at[~gone])
        self._copies.close(pages[gone], at[gone])
        self._policy.learn(
            VisitBatch(
                page=pages,
                at=at,
                gap=np.where(first, 0.0, at - since),
                first=first,
                changed=changed,
                gone=gone,
                modified_age=world.modified_age(pages, at),
                distance_bits=self._rng.binomial(BITS, world.distance_bits(pages, count) / BITS).astype(np.float64),
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

    def outcome(self) -> Measured:
        world, copies = self._world, self._copies
        copies.close(np.arange(world.size), world.days)
        return Measured(
            freshness=copies.freshness(world.importance),
            plain=copies.freshness(np.ones(world.size)),
            divergence=copies.divergence(world.importance),
            age_days=copies.age_days(world.importance),
            requests=self._requests,
            wasted=self._wasted,
            granted=self._budget * (world.days - self._window),
            over_days=self._over_days,
            calibration=copies.calibration() if self._compared else None,
        )
