"""The command `python -m labs signals`: the effect of sources of change signals, reliable and unreliable ones."""

from collections.abc import Sequence

from crawler.cli.output import print_json, say, show_table
from crawler.cli.session import DONE
from crawler.format.values import format_share
from labs.experiments.signals import SignalTrial, SourceRow, compare_sources
from labs.experiments.worlds.signal_sources import Behavior

SHARES = (0.05,)
NUMBERS = ("recall", "precision", "fresh", "gain, points", "worst", "of the optimum", "used", "expected - true")


def signals(trial: SignalTrial, shares: Sequence[float], *, seeds: int, as_json: bool) -> int:
    rows = list(compare_sources(trial, shares or SHARES, seeds=seeds))
    if as_json:
        print_json({"rows": rows})
        return DONE
    for share in dict.fromkeys(row.share for row in rows):
        say(f"\nRequests for {format_share(share)} of {trial.pages} pages a day\n")
        show_table(["source", *NUMBERS], [_row(row) for row in rows if row.share == share], right=NUMBERS)
    return DONE


def _row(row: SourceRow) -> tuple[str, ...]:
    is_honest = row.source.behavior is Behavior.HONEST
    return (
        "random errors" if is_honest else row.source.behavior.value,
        f"{row.source.recall:g}" if is_honest else "",
        f"{row.source.precision:g}" if is_honest else "",
        f"{row.freshness.mean:.4f} ± {row.freshness.error:.4f}",
        f"{100 * row.gain.mean:+.2f} ± {100 * row.gain.error:.2f}",
        f"{100 * row.worst:+.2f}",
        f"{row.ratio.mean:.3f}",
        format_share(row.used.mean),
        f"{row.calibration.mean:+.3f}",
    )
