"""recrawl lab dai and estimator: how well and how soon change rates are learnt."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from crawler.cli.charts.chart import Chart, Series
from crawler.cli.charts.show import show_charts
from crawler.cli.exits import DONE
from crawler.cli.output import print_json, say, show
from crawler.cli.values import shown_share
from crawler.lab import dai, estimator
from crawler.lab.dai import Timing, Track
from crawler.lab.estimator import Gaps, PointBias, PriorFit

VISITS = (1, 2, 5, 10, 20, 40, 60, 100, 200, 500, 1000)


def revisit_periods(*, looks: int, pages: int, seed: int, figures: Path | None, as_json: bool) -> int:
    tracks = {timing.value: dai.dai(timing=timing, seed=seed, pages=pages, looks=looks) for timing in Timing}
    if as_json:
        print_json({"tracks": tracks})
    else:
        for timing, found in tracks.items():
            _show_tracks(timing, found, looks)
    charts = [chart for timing, found in tracks.items() for chart in _dai_charts(timing, found)]
    show_charts(charts, folder=figures, on_terminal=not as_json)
    return DONE


def _show_tracks(timing: str, tracks: Sequence[Track], looks: int) -> None:
    """Revisit periods by the number of looks, and what the looks were worth; then the sums of each rule."""
    visits = [n for n in VISITS if n <= looks]
    say(f"\nPages that change by {timing}: days to the next look after the nth\n")
    numbers = ["period", *(f"n = {n}" for n in visits), "redundant", "fresh", "looks a day"]
    show(
        ["rule", *numbers],
        [
            (
                track.rule,
                f"{track.period_days:g} d",
                *(f"{track.revisit_days[n - 1]:.1f}" for n in visits),
                shown_share(track.redundant),
                shown_share(track.fresh),
                f"{track.looks_per_day:.3f}",
            )
            for track in tracks
        ],
        right=numbers,
    )
    say("")
    sums = dai.sums(tracks)
    show(
        ["rule", "fresh", "looks a day", "redundant a day", "redundant looks spared"],
        [
            (
                each.rule,
                shown_share(each.fresh),
                f"{each.looks_per_day:.3f}",
                f"{each.redundant_per_day:.3f}",
                shown_share(1 - each.redundant_per_day / sums[0].redundant_per_day),
            )
            for each in sums
        ],
        right=["fresh", "looks a day", "redundant a day", "redundant looks spared"],
    )


def _dai_charts(timing: str, tracks: Sequence[Track]) -> Iterator[tuple[str, Chart]]:
    """The period that each rule holds true, over its true value, by the number of looks."""
    chosen = [track for track in tracks if track.period_days in {5.0, 20.0} and track.rule != dai.AS_MANY]
    yield (
        f"time-dai-{timing}",
        Chart(
            title=f"The period held true, over the true one; pages change by {timing}",
            x_label="looks",
            y_label="period held true / true period",
            series=tuple(
                Series(
                    f"{track.rule}, {track.period_days:g} days",
                    tuple((n, each / track.period_days) for n, each in enumerate(track.held_days, start=1)),
                )
                for track in chosen
            ),
            log_x=True,
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
    numbers = ["looks", "rate x gap", "ours", "changes/time", "(changes + 1)/time"]
    say("Bias of point estimates at fixed rates, without a prior\n")
    show(
        ["gaps", *numbers],
        [
            (
                point.gaps.value,
                str(point.looks),
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
    numbers = ["shape", "looks", "bias of the mean", "true rate within"]
    say("\nBeliefs of pages whose rates come from the prior\n")
    show(
        numbers,
        [(f"{fit.shape:g}", str(fit.looks), f"{fit.bias:+.1%}", shown_share(fit.covered)) for fit in fits],
        right=numbers,
    )
    say("\nThe true rate should lie within the interval of nine tenths 90 % of the time.")


def _bias_charts(points: Sequence[PointBias]) -> Iterator[tuple[str, Chart]]:
    for gaps in Gaps:
        here = [point for point in points if point.gaps is gaps and point.looks == 10]
        yield (
            f"time-estimator-{gaps.name.lower()}",
            Chart(
                title=f"Estimate over true rate, 10 looks, gaps {gaps.value} times their mean",
                x_label="rate x mean gap",
                y_label="mean estimate / true rate",
                series=(
                    Series("ours", tuple((p.rate_times_gap, 1 + p.ours) for p in here)),
                    Series("changes/time", tuple((p.rate_times_gap, 1 + p.naive) for p in here)),
                    Series("(changes + 1)/time", tuple((p.rate_times_gap, 1 + p.padded) for p in here)),
                ),
            ),
        )
