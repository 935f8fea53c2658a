"""The commands `python -m labs dai` and `estimator`: how well and how fast change rates are learned."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from crawler.cli.output import print_json, say, show_table
from crawler.cli.plot import Chart, Series
from crawler.cli.session import DONE
from crawler.format.values import format_share
from labs.charts import show_charts
from labs.experiments import dai, estimator
from labs.experiments.dai import Timing, Track
from labs.experiments.estimator import Gaps, PointBias, PriorFit

AFTER = 20  # visits, as in published figures


def revisit_periods(*, visits: int, pages: int, seed: int, figures: Path | None, as_json: bool) -> int:
    tracks = {timing.value: dai.dai(timing=timing, seed=seed, pages=pages, visits=visits) for timing in Timing}
    if as_json:
        print_json({"tracks": tracks})
    else:
        for timing, found in tracks.items():
            _show_tracks(timing, found, visits)
    charts = [chart for timing, found in tracks.items() for chart in _dai_charts(timing, found)]
    show_charts(charts, folder=figures, on_terminal=not as_json)
    return DONE


def _show_tracks(timing: str, tracks: Sequence[Track], visits: int) -> None:
    """Show periods after AFTER visits and the usefulness of visits, then the sums of each rule."""
    after = min(AFTER, visits)
    say(f"\nPages that change by {timing}: the period after {after} visits, and the second half of {visits}\n")
    numbers = ["true period", "mean", "median", "redundant", "fresh", "visits per day"]
    show_table(
        ["rule", *numbers],
        [
            (
                track.rule,
                f"{track.period_days:g} d",
                f"{track.mean_days[after - 1]:.1f} d",
                f"{track.median_days[after - 1]:.1f} d",
                format_share(track.redundant),
                format_share(track.fresh),
                f"{track.visits_per_day:.3f}",
            )
            for track in tracks
        ],
        right=numbers,
    )
    say("")
    sums = dai.sums(tracks)
    (fixed,) = (each for each in sums if each.rule == dai.FIXED)
    numbers = ["fresh", "visits per day", "redundant per day", "redundant visits saved"]
    show_table(
        ["rule", *numbers],
        [
            (
                each.rule,
                format_share(each.fresh),
                f"{each.visits_per_day:.3f}",
                f"{each.redundant_per_day:.3f}",
                format_share(1 - each.redundant_per_day / max(fixed.redundant_per_day, 1e-9)),
            )
            for each in sums
        ],
        right=numbers,
    )


def _dai_charts(timing: str, tracks: Sequence[Track]) -> Iterator[tuple[str, Chart]]:
    """Yield charts of the period that similarity reaches, relative to the true one, by the number of visits."""
    chosen = [track for track in tracks if track.rule == dai.SIMILARITY]
    series = [
        Series(
            f"{track.period_days:g} days",
            tuple((n, each / track.period_days) for n, each in enumerate(track.mean_days, start=1)),
        )
        for track in chosen
    ]
    last = float(max(len(track.mean_days) for track in chosen))
    yield (
        f"time-dai-{timing}",
        Chart(
            title=f"Similarity: mean period relative to the true one; pages change by {timing}",
            x_label="visits",
            y_label="mean period / true period",
            series=(*series, Series("true period", ((1.0, 1.0), (last, 1.0)))),
            is_log_x=True,
            is_log_y=True,
        ),
    )


def estimates(*, pages: int, seed: int, figures: Path | None, as_json: bool) -> int:
    points = estimator.point_biases(seed=seed, pages=pages)
    fits = estimator.prior_fits(seed=seed, pages=pages)
    if as_json:
        print_json({"points": points, "priors": fits})
    else:
        _show_points(points)
        _show_fits(fits)
    show_charts(list(_bias_charts(points)), folder=figures, on_terminal=not as_json)
    return DONE


def _show_points(points: Sequence[PointBias]) -> None:
    numbers = ["visits", "rate x gap", "ours", "changes/time", "(changes + 1)/time"]
    say("Bias of point estimates at fixed rates, without a prior\n")
    show_table(
        ["gaps", *numbers],
        [
            (
                point.gaps.value,
                str(point.visits),
                f"{point.rate_times_gap:g}",
                f"{point.ours:+.1%} ± {point.ours_error:.1%}",
                f"{point.naive:+.1%}",
                f"{point.padded:+.1%}",
            )
            for point in points
        ],
        right=numbers,
    )


def _show_fits(fits: Sequence[PriorFit]) -> None:
    numbers = ["shape", "visits", "bias of the mean", "true rate within"]
    say("\nEstimates for pages whose rates are drawn from the prior\n")
    show_table(
        numbers,
        [(f"{fit.shape:g}", str(fit.visits), f"{fit.bias:+.1%}", format_share(fit.covered)) for fit in fits],
        right=numbers,
    )
    say("\nThe true rate should be within the 90 % interval 90 % of the time.")


def _bias_charts(points: Sequence[PointBias]) -> Iterator[tuple[str, Chart]]:
    for gaps in Gaps:
        here = [point for point in points if point.gaps is gaps and point.visits == 10]
        yield (
            f"time-estimator-{gaps.name.lower()}",
            Chart(
                title=f"Estimate relative to the true rate, 10 visits, gaps {gaps.value} times their mean",
                x_label="rate x mean gap",
                y_label="mean estimate / true rate",
                series=(
                    Series("ours", tuple((p.rate_times_gap, 1 + p.ours) for p in here)),
                    Series("changes/time", tuple((p.rate_times_gap, 1 + p.naive) for p in here)),
                    Series("(changes + 1)/time", tuple((p.rate_times_gap, 1 + p.padded) for p in here)),
                ),
            ),
        )
