"""The effect of sources of change signals: the product's rule with each of them, compared with the rule without."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from labs.experiments.comparison import Mean, mean_of
from labs.experiments.policies.clairvoyant import Clairvoyant
from labs.experiments.policies.listening import Listening
from labs.experiments.policies.ours import Ours
from labs.experiments.simulation import simulate
from labs.experiments.worlds.populations import make_world
from labs.experiments.worlds.signal_sources import Behavior, SignalLog, SignalSource, generate_signals
from labs.experiments.worlds.world import World

WORLD = "log-normal"
RECALLS, PRECISIONS = (0.3, 0.6, 1.0), (0.2, 0.5, 1.0)
SOURCES = (
    *(SignalSource(recall=recall, precision=precision) for recall in RECALLS for precision in PRECISIONS),
    *(SignalSource(behavior) for behavior in Behavior if behavior is not Behavior.HONEST),
)


@dataclass(frozen=True, slots=True)
class SignalTrial:
    """The size of the experiment: pages and days, of which the second half counts."""

    pages: int = 800
    days: int = 500


@dataclass(frozen=True, slots=True)
class SourceRow:
    """The results of one source at one budget, over seeds.

    share: requests per day, as a share of the pages.  gain: freshness above that of the same crawl without signals.
    worst: the minimum gain of all worlds.
    ratio: freshness relative to the optimum, which knows the rates and uses no signals.  used: share of the ledger.
    calibration: expected - true freshness.
    """

    share: float
    source: SignalSource
    freshness: Mean
    gain: Mean
    worst: float
    ratio: Mean
    used: Mean
    calibration: Mean


def compare_sources(
    trial: SignalTrial, shares: Sequence[float], *, seeds: int, report: Callable[[str], None] = lambda _done: None
) -> Iterator[SourceRow]:
    """Yield a row for each source at each budget. report: called with the current step."""
    for share in shares:
        found: dict[SignalSource, list[tuple[float, ...]]] = {source: [] for source in SOURCES}
        for seed in range(1, seeds + 1):
            world = make_world(WORLD, pages=trial.pages, days=trial.days, seed=seed)
            budget = max(round(share * trial.pages), 1)
            best = simulate(world, Clairvoyant, budget_per_day=budget).freshness
            without_signals = simulate(world, lambda scene, _: Ours(scene), budget_per_day=budget).freshness
            for source in SOURCES:
                found[source].append(
                    _measure(
                        world,
                        generate_signals(source, world, seed=seed),
                        budget,
                        without_signals=without_signals,
                        best=best,
                    )
                )
                report(f"seed {seed}, {source.behavior}")
        yield from (_row(share, source, rows) for source, rows in found.items())


def _row(share: float, source: SignalSource, rows: Sequence[tuple[float, ...]]) -> SourceRow:
    freshness, gain, ratio, used, calibration = zip(*rows, strict=True)
    return SourceRow(
        share=share,
        source=source,
        freshness=mean_of(freshness),
        gain=mean_of(gain),
        worst=min(gain),
        ratio=mean_of(ratio),
        used=mean_of(used),
        calibration=mean_of(calibration),
    )


def _measure(
    world: World, signals: SignalLog, budget: int, *, without_signals: float, best: float
) -> tuple[float, ...]:
    """Return freshness, gain, ratio, used share of the budget and error of the report in one world."""
    outcome = simulate(world, lambda scene, _: Listening(scene, signals), budget_per_day=budget)
    fresh = outcome.freshness
    calibration = outcome.calibration
    error = calibration.expected - calibration.true if calibration is not None else float("nan")
    return fresh, fresh - without_signals, fresh / best, outcome.requests / outcome.granted, error
