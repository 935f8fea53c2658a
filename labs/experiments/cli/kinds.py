"""The command `python -m labs kinds`: the first month of new domains, with and without priors of their kind of site."""

from collections.abc import Sequence

from crawler.cli.output import print_json, say, show_table
from crawler.cli.session import DONE
from crawler.format.values import format_share
from labs.experiments.kinds import MEDIAN_RATES, KindRow, Start, Trial, compare_kinds

SHARES = (0.03, 0.1)
BEGINS = {
    Start.NOTHING: "with the default prior",
    Start.ALL: "with the prior of all sites",
    Start.KIND: "with the prior of their kind",
    Start.OPTIMUM: "(with known true rates)",
}
NUMBERS = ("fresh", "gain, points", "of the gap", "requests used")


def first_month(trial: Trial, shares: Sequence[float], *, seeds: int, as_json: bool) -> int:
    rows = list(compare_kinds(trial, shares or SHARES, seeds=seeds))
    if as_json:
        print_json({"median_rates_per_day": MEDIAN_RATES, "rows": rows})
        return DONE
    kinds = ", ".join(f".{kind} every {1 / rate:.0f} days" for kind, rate in MEDIAN_RATES.items())
    say(f"{trial.domains} new domains of {trial.pages} pages, {trial.days} days; the median page changes: {kinds}")
    for share in dict.fromkeys(row.share for row in rows):
        here = [row for row in rows if row.share == share]
        best = next(row for row in here if row.start is Start.OPTIMUM)
        say(f"\nRequests for {format_share(share)} of the pages a day\n")
        show_table(["start", *NUMBERS], [_row(row, best) for row in here], right=NUMBERS)
    return DONE


def _row(row: KindRow, best: KindRow) -> tuple[str, ...]:
    return (
        BEGINS[row.start],
        f"{row.freshness.mean:.4f} ± {row.freshness.error:.4f}",
        "" if row.start is Start.NOTHING else f"{100 * row.gain.mean:+.2f} ± {100 * row.gain.error:.2f}",
        format_share(row.gain.mean / best.gain.mean),
        format_share(row.used.mean),
    )
