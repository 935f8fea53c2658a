"""What the plan flow does for the store, done for the laboratory: prices, longest interval, the day's floor visits."""

from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from crawler.core.budget import (
    FLOOR_VISITS_SHARE,
    NOBODY,
    Budget,
    PageArrays,
    Work,
    heard_columns,
    longest_gap,
    page_arrays,
    price_correction,
    sampled,
    shadow_price,
    shadow_prices,
)
from crawler.core.freshness import NO_SOURCE, SourceWorth
from crawler.lab.policies.policy import Scene
from crawler.lab.worlds.world import Flags, Floats, Ints

SAMPLE = 2000  # pages that fix a price within a few per cent; freshness is flat around the optimum
SAMPLE_PER_HOST = 100
TRIMMED_EVERY_DAYS = 1 / 24
LONGEST_DAYS = 180.0  # a page may be promised to be looked at so often, if the budget bears it


@dataclass(slots=True)
class PlannedRates:
    """A day's numbers. solved: the price of a request at each host.  longest_days: between two looks, by host.

    source: of signals, that the policy listens to.
    floor_left: visits below the price that are left of the day.  trim: what the budget's use makes of the solved price,
    hourly over all hosts; a host at its cap has a price of its own, and a daily trim of it, host_trim.
    """

    solved: Floats
    longest_days: Floats
    floor_left: int
    host_trim: Floats
    trim: float = 1.0
    trimmed_at: float = 0.0
    source: SourceWorth = NO_SOURCE

    @property
    def capped(self) -> Flags:
        """The hosts whose cap makes them dearer than the others."""
        return np.asarray(self.solved > self.solved.min() * (1 + 1e-6))

    @property
    def prices(self) -> Floats:
        return self.solved * np.where(self.capped, self.host_trim, self.trim)

    def watch(self, now: float, *, used: int, allowed: int, waiting: float) -> None:
        """Move the trim after a claim, once an hour at most. waiting: looks that are due and were not granted."""
        if now - self.trimmed_at >= TRIMMED_EVERY_DAYS - 1e-9:
            self.trim = price_correction(self.trim, used=used, allowed=allowed, waiting=waiting)
            self.trimmed_at = now

    def watch_hosts(self, *, used: Floats, allowed: float, cap: float, waiting: Floats) -> None:
        """Move the trims after a day where hosts have caps. used, waiting: of each host.  allowed: the whole budget."""
        free = float(waiting[~self.capped].sum())
        self.trim = price_correction(self.trim, used=float(used.sum()), allowed=allowed, waiting=free)
        own = zip(self.host_trim, used, waiting, strict=True)
        trims = [price_correction(trim, used=had, allowed=cap, waiting=left) for trim, had, left in own]
        self.host_trim = np.where(self.capped, trims, 1.0)


def plan(
    a: Floats,
    b: Floats,
    weight: Floats,
    scene: Scene,
    *,
    known: Ints,
    new: PageArrays,
    rng: Generator,
    before: PlannedRates,
) -> PlannedRates:
    """Today's numbers from today's beliefs: (a, b) and weight are of the `known` pages, by number."""
    hosts, host = int(scene.host.max()) + 1, scene.host[known]
    longest = longest_days(scene, host, hosts)
    domain = host if scene.cap_per_day is not None else 0
    pages = page_arrays(a, b, weight, most=longest[host], domain=domain, **heard_columns(before.source, a / b))
    some = sampled(pages, most=SAMPLE, per_domain=SAMPLE_PER_HOST, seed=int(rng.integers(2**31)))
    if scene.cap_per_day is None:
        price = shadow_price(Work(some, new), Budget(scene.budget_per_day), near=float(before.solved[0]))
        prices = np.full(hosts, price.per_request)
    else:
        limits = np.full(hosts, scene.cap_per_day)
        prices = shadow_prices(Work(some, new, hosts), limits, scene.budget_per_day, near=before.solved)
    left = int(FLOOR_VISITS_SHARE * scene.budget_per_day)
    return PlannedRates(prices, longest, left, before.host_trim, before.trim, before.trimmed_at, before.source)


def longest_days(scene: Scene, host: Ints, hosts: int) -> Floats:
    """The longest interval that each host's pages can be promised, by the whole budget and by its own cap."""
    promised = longest_gap(float(len(host)), scene.budget_per_day, most=LONGEST_DAYS)
    if scene.cap_per_day is None:
        return np.full(hosts, promised)
    pages = np.bincount(host, minlength=hosts).astype(np.float64)
    return np.maximum(promised, longest_gap(pages, scene.cap_per_day, most=LONGEST_DAYS))


def new_pages(a: Floats, b: Floats, weight: Floats, scene: Scene, *, pages: Ints, longest: Floats) -> PageArrays:
    """Pages never fetched, as a plan sees them."""
    if not len(pages):
        return NOBODY
    host = scene.host[pages]
    return page_arrays(a, b, weight, most=longest[host], domain=host if scene.cap_per_day is not None else 0)
