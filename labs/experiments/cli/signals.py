"""The command `python -m labs signals`: the effect of sources of change signals, reliable and unreliable ones."""

from collections.abc import Sequence

from crawler.cli.output import print_json, say, show_table
from crawler.cli.session import DONE
from crawler.format.values import format_share
from labs.experiments.signals import SignalTrial, VoiceRow, voices_compared
from labs.experiments.worlds.told import Manner

SHARES = (0.05,)
NUMBERS = ("recall", "precision", "fresh", "gain, points", "worst", "of the optimum", "used", "expected - true")


def signals(trial: SignalTrial, shares: Sequence[float], *, seeds: int, as_json: bool) -> int:
    rows = list(voices_compared(trial, shares or SHARES, seeds=seeds))
    if as_json:
        print_json({"rows": rows})
        return DONE
    for share in dict.fromkeys(row.share for row in rows):
        say(f"\nRequests for {format_share(share)} of {trial.pages} pages a day\n")
        show_table(["source", *NUMBERS], [_row(row) for row in rows if row.share == share], right=NUMBERS)
    return DONE


def _row(row: VoiceRow) -> tuple[str, ...]:
    is_honest = row.voice.manner is Manner.HONEST
    return (
        "random errors" if is_honest else row.voice.manner.value,
        f"{row.voice.recall:g}" if is_honest else "",
        f"{row.voice.precision:g}" if is_honest else "",
        f"{row.freshness.mean:.4f} ± {row.freshness.error:.4f}",
        f"{100 * row.gain.mean:+.2f} ± {100 * row.gain.error:.2f}",
        f"{100 * row.worst:+.2f}",
        f"{row.ratio.mean:.3f}",
        format_share(row.used.mean),
        f"{row.calibration.mean:+.3f}",
    )
