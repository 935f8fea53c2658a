"""Compare policies, budgets and seeds in many runs, with means and standard errors."""

import multiprocessing
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

import numpy as np

from labs.experiments.measures import Measured
from labs.experiments.policies.named import EVERY, OPTIMUM, OURS
from labs.experiments.simulation import simulate
from labs.experiments.worlds.populations import make_world
from labs.experiments.worlds.world import World


class WorldSource(Hashable, Protocol):
    """A source of worlds; hashable and picklable."""

    @property
    def name(self) -> str: ...

    @property
    def pages(self) -> int:
        """Return the number of pages that exist at a time."""
        ...

    def world(self, seed: int) -> World: ...


@dataclass(frozen=True, slots=True)
class Made:
    """A named population with a number of pages and days."""

    name: str
    pages: int
    days: float

    def world(self, seed: int) -> World:
        return make_world(self.name, pages=self.pages, days=self.days, seed=seed)


@dataclass(frozen=True, slots=True)
class Job:
    """One run. share: requests per day, as a share of the pages."""

    source: WorldSource
    share: float
    policy: str
    seed: int


@dataclass(frozen=True, slots=True)
class Mean:
    """A mean over seeds with its standard error; 0 for a single seed."""

    mean: float
    error: float


@dataclass(frozen=True, slots=True)
class ComparisonRow:
    """One policy in one world at one budget, over the seeds, measured in the second half of the time.

    ratio: freshness relative to the clairvoyant optimum in the same world; ratios: seed by seed.
    plain: freshness with all pages equal.  age_days: mean age of the copies.  over_days: as in Measured, in total.
    divergence: mean share of the text by which a copy differs from its page, weighted by importance.
    wasted: share of the requests that found nothing new.  used: share of the requests that the ledger allowed.
    calibration, worst_decile: absolute difference of expected and true freshness; None if the policy expects nothing.
    deciles: expected and true freshness by tenths of importance, the least important first; or empty.
    """

    world: str
    share: float
    policy: str
    seeds: int
    freshness: Mean
    ratio: Mean
    ratios: tuple[float, ...]
    plain: Mean
    divergence: Mean
    age_days: Mean
    requests_per_day: Mean
    wasted: Mean
    used: Mean
    over_days: int
    calibration: Mean | None
    worst_decile: Mean | None
    deciles: tuple[tuple[float, float], ...]


Progress = Callable[[int, int, str], None]  # runs done, runs in total, the last one


def compare(
    jobs: Sequence[Job], *, workers: int, progress: Progress = lambda _done, _all, _name: None
) -> list[ComparisonRow]:
    """Run all jobs and return their rows, in the order of the jobs; missing runs of the optimum are added.

    workers: number of processes; 1: run everything in this one.
    """
    wanted = list(dict.fromkeys(jobs))
    needed = list(dict.fromkeys([*(Job(job.source, job.share, OPTIMUM, job.seed) for job in wanted), *wanted]))
    outcomes: dict[Job, Measured] = {}
    for done, (job, outcome) in enumerate(_runs(needed, workers), start=1):
        outcomes[job] = outcome
        progress(done, len(needed), f"{job.source.name}, {job.policy}")
    keys = dict.fromkeys((job.source, job.share, job.policy) for job in wanted)
    return [_row(outcomes, [job for job in wanted if (job.source, job.share, job.policy) == key]) for key in keys]


def _runs(jobs: Sequence[Job], workers: int) -> Iterator[tuple[Job, Measured]]:
    if workers <= 1:
        yield from ((job, run(job)) for job in jobs)
        return
    # Not forked: the copy of a process with threads, such as the progress bar's, may hang on their locks.
    with ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn")) as pool:
        waiting = {pool.submit(run, job): job for job in jobs}
        for future in as_completed(waiting):
            yield waiting[future], future.result()


def run(job: Job) -> Measured:
    """Run a job."""
    return simulate(_world(job.source, job.seed), EVERY[job.policy], budget_per_day=per_day(job))


def per_day(job: Job) -> int:
    """Return the job's requests per day; at least one."""
    return max(round(job.share * job.source.pages), 1)


@lru_cache(maxsize=2)
def _world(source: WorldSource, seed: int) -> World:
    return source.world(seed)


def _row(outcomes: dict[Job, Measured], jobs: Sequence[Job]) -> ComparisonRow:
    """Summarize one policy's seeds in one world at one budget."""
    first, found = jobs[0], [outcomes[job] for job in jobs]
    best = [outcomes[Job(job.source, job.share, OPTIMUM, job.seed)] for job in jobs]
    ratios = tuple(each.freshness / top.freshness for each, top in zip(found, best, strict=True))
    known = [each.calibration for each in found if each.calibration is not None and first.policy == OURS]
    return ComparisonRow(
        world=first.source.name,
        share=first.share,
        policy=first.policy,
        seeds=len(jobs),
        freshness=mean_of(each.freshness for each in found),
        ratio=mean_of(ratios),
        ratios=ratios,
        plain=mean_of(each.plain for each in found),
        divergence=mean_of(each.divergence for each in found),
        age_days=mean_of(each.age_days for each in found),
        requests_per_day=mean_of(each.requests / each.granted * per_day(first) for each in found),
        wasted=mean_of(each.wasted / max(each.requests, 1) for each in found),
        used=mean_of(each.requests / each.granted for each in found),
        over_days=sum(each.over_days for each in found),
        calibration=mean_of(each.error for each in known) if known else None,
        worst_decile=mean_of(each.worst_decile_error for each in known) if known else None,
        deciles=tuple(map(tuple, np.mean([each.by_decile for each in known], axis=0).tolist())) if known else (),
    )


def mean_of(values: Iterable[float]) -> Mean:
    """Return the mean over some seeds."""
    found = np.array(list(values))
    error = found.std(ddof=1) / np.sqrt(len(found)) if len(found) > 1 else 0.0
    return Mean(float(found.mean()), float(error))
