"""The charts of the results, each with its file name."""

import math
from collections.abc import Sequence

from crawler.cli.plot import Chart, NamedCharts, Series
from labs.experiments.discovery import Coverage
from labs.experiments.interpolation import Interpolation
from labs.experiments.trials import Beside, Curve, Ranking, Reaction

MAX_POINTS = 100  # per line; more points make the file larger, but not the picture clearer
BY_SIZE = ("interpolation", "variable")  # figure 4 of the paper compares sizes, figure 6 kinds


def of_errors(graph: str, curves: Sequence[Curve], reaction: Reaction | None) -> NamedCharts:
    """Return the paper's figures 2 and 3, and the recovery of the error after a change."""
    charts = [
        ("error-all", _errors(f"Error over all pages: {graph}", curves, top=False)),
        ("error-top", _errors(f"Error over the most important tenth: {graph}", curves, top=True)),
    ]
    if reaction is not None:
        charts.append(("reaction", _reaction(f"After a tenth of the links is replaced: {graph}", reaction)))
    return charts


def of_factors(graph: str, curves: Sequence[Curve], compared: Sequence[Beside]) -> NamedCharts:
    """Return the paper's error factor over time, and the error of random choice relative to greedy."""
    series = [Series(curve.label, tuple((p.visits, 100 * p.error_factor) for p in curve.points)) for curve in curves]
    axis, factor = "visits of each page, on average", "error factor 1 / G, per cent"
    charts = [("error-factor", Chart(f"Error factor: {graph}", axis, factor, tuple(series), is_log_y=True))]
    if compared:
        ratios = (
            Series("error factor", tuple((each.visits, each.factor) for each in compared)),
            Series("error, all", tuple((each.visits, each.every) for each in compared)),
            Series("error, top tenth", tuple((each.visits, each.top) for each in compared)),
        )
        charts.append(("random-greedy", Chart(f"Random beside greedy: {graph}", axis, "times", ratios, is_log_y=True)))
    return charts


def of_interpolation(graph: str, followed: Interpolation | None) -> NamedCharts:
    """Return the paper's figure 1."""
    if followed is None:
        return []
    series = (
        Series("cash of the window", tuple((each.visits, each.exact) for each in followed.moments)),
        Series("interpolation", tuple((each.visits, each.interpolated) for each in followed.moments)),
        Series(
            "truth",
            (
                (0.0, followed.before),
                (followed.changed_at, followed.before),
                (followed.changed_at, followed.after),
                (followed.moments[-1].visits, followed.after),
            ),
        ),
    )
    title = f"One page while a tenth of the links is replaced: {graph}"
    return [("interpolation", Chart(title, "visits of each page, on average", "importance", series))]


def _errors(title: str, curves: Sequence[Curve], *, top: bool) -> Chart:
    series = [
        Series(curve.label, tuple((p.visits, 100 * (p.errors.top if top else p.errors.every)) for p in curve.points))
        for curve in curves
    ]
    return Chart(title, "visits of each page, on average", "mean error, per cent", tuple(series), is_log_y=True)


def _reaction(title: str, reaction: Reaction) -> Chart:
    every = tuple((p.windows, 100 * p.errors.every) for p in reaction.points)
    top = tuple((p.windows, 100 * p.errors.top) for p in reaction.points)
    ends = (0.0, reaction.points[-1].windows)
    settled = tuple((x, 100 * reaction.settled.every) for x in ends)
    series = (Series("all", every), Series("top tenth", top), Series("all, nothing changed", settled))
    return Chart(title, "windows since the change", "mean error, per cent", series, is_log_y=True)


def of_windows(graph: str, standings: Sequence[Ranking]) -> NamedCharts:
    """Return the paper's figures 4 and 6, with what each policy stores; none without at least two rates above 0."""
    if len({standing.rate for standing in standings if standing.rate > 0}) < 2:
        return []
    policies = list(dict.fromkeys(standing.policy for standing in standings))
    sizes = [policy for policy in policies if policy.startswith(BY_SIZE)]
    kinds = [policy for policy in policies if not policy.startswith("variable") or policy == "variable:8"]
    return [
        ("window-sizes", _by_rate(f"Sizes of windows: {graph}", standings, sizes)),
        ("window-policies", _by_rate(f"Kinds of windows: {graph}", standings, kinds)),
    ]


def _by_rate(title: str, standings: Sequence[Ranking], policies: Sequence[str]) -> Chart:
    series = [Series(_label(policy, standings), _line(policy, standings)) for policy in policies]
    axis = "pages whose links double or halve in a pass, per cent"
    return Chart(title, axis, "mean error, per cent", tuple(series), is_log_x=True, is_log_y=True)


def _label(policy: str, standings: Sequence[Ranking]) -> str:
    numbers = [standing.numbers for standing in standings if standing.policy == policy]
    return f"{policy} ({sum(numbers) / len(numbers):.0f} numbers)"


def _line(policy: str, standings: Sequence[Ranking]) -> tuple[tuple[float, float], ...]:
    return tuple((100 * s.rate, 100 * s.errors.every) for s in standings if s.policy == policy)


def of_discovery(graph: str, coverages: Sequence[Coverage]) -> NamedCharts:
    """Return the chart of the importance of the first pages."""
    series = [Series(c.way.value, _thinned(c.shares)) for c in coverages]
    chart = Chart(f"Importance found: {graph}", "pages fetched", "share of all importance, per cent", tuple(series))
    return [("discovery", chart)]


def _thinned(shares: Sequence[float]) -> tuple[tuple[float, float], ...]:
    """Return at most MAX_POINTS points of a curve, including the last one."""
    step = math.ceil(len(shares) / MAX_POINTS)
    return tuple((float(n), 100 * shares[n - 1]) for n in range(len(shares), 0, -step))[::-1]
