"""The command `python -m labs run`: compare policies in worlds."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from crawler.cli.output import print_json, say, show_table
from crawler.cli.plot import Chart, Series
from crawler.cli.session import DONE
from crawler.errors import BadInput
from crawler.format.values import format_share
from labs.charts import show_charts
from labs.experiments.comparison import ComparisonRow, Job, Made, Mean, WorldSource, compare
from labs.experiments.policies.named import AMOUNTS, EVERY, INFORMED, OPTIMUM, OURS, POLICIES, SWITCHED
from labs.experiments.worlds.populations import POPULATIONS
from labs.experiments.worlds.traces import read_trace
from labs.progress import Runs

SHARES = (0.01, 0.03, 0.1)  # requests per day for each page
NUMBERS = (
    "fresh",
    "of the optimum",
    "unweighted",
    "divergence",
    "age",
    "requests a day",
    "wasted",
    "used",
    "expected - true",
)


@dataclass(frozen=True, slots=True)
class LabRequest:
    """What to run. Empty fields: log-normal worlds, budgets of 1, 3 and 10%, all policies."""

    worlds: tuple[str, ...]
    shares: tuple[float, ...]
    policies: tuple[str, ...]
    traces: tuple[Path, ...]
    pages: int
    days: int
    seeds: int
    jobs: int

    def sources(self) -> list[WorldSource]:
        """Return the worlds to draw. Raise BadInput for an unknown name, or a file that is not a trace."""
        names = self.worlds or (() if self.traces else ("log-normal",))
        names = tuple(POPULATIONS) if "all" in names else names
        _refuse_unknown("world", names, POPULATIONS)
        made: list[WorldSource] = [Made(name, self.pages, float(self.days)) for name in names]
        return made + [read_trace(path) for path in self.traces]

    def job_list(self) -> list[Job]:
        """Return every run. Raise BadInput like sources, and for an unknown policy."""
        _refuse_unknown("policy", self.policies, EVERY)
        return [
            Job(source, share, policy, seed)
            for source in self.sources()
            for share in self.shares or SHARES
            for policy in self.policies or POLICIES
            for seed in range(1, self.seeds + 1)
        ]


def _refuse_unknown(kind: str, names: Sequence[str], known: Iterable[str]) -> None:
    for name in names:
        if name not in known:
            raise BadInput(f"unknown {kind} {name!r}; choose one of {', '.join(known)}")


def names(*, as_json: bool) -> int:
    if as_json:
        print_json({"worlds": {name: each.story for name, each in POPULATIONS.items()}, "policies": list(EVERY)})
        return DONE
    show_table(["world", "description"], [(name, each.story) for name, each in POPULATIONS.items()])
    say(f"\nPolicies: {', '.join(EVERY)}")
    return DONE


def run(request: LabRequest, *, figures: Path | None, as_json: bool) -> int:
    rows = measured(request.job_list(), workers=request.jobs)
    charts = list(charts_of(rows))
    if as_json:
        print_json({"rows": rows})
    else:
        show_rows(rows)
    show_charts(charts, folder=figures, on_terminal=not as_json)
    return DONE


def measured(jobs: Sequence[Job], *, workers: int) -> list[ComparisonRow]:
    """Run the jobs with a progress bar, and return their rows."""
    with Runs(len(jobs)) as progress:
        return compare(jobs, workers=workers, progress=progress.count)


def show_rows(rows: Sequence[ComparisonRow]) -> None:
    """Show a table for each world and budget, the freshest policy first, and the distance of the best rival."""
    for world, share in dict.fromkeys((row.world, row.share) for row in rows):
        here = sorted(
            (row for row in rows if (row.world, row.share) == (world, share)), key=lambda row: -row.ratio.mean
        )
        story = f" ({POPULATIONS[world].story})" if world in POPULATIONS else ""
        say(f"\n{world}{story}; requests for {format_share(share)} of the pages a day\n")
        show_table(["policy", *NUMBERS], [_cells(row) for row in here], right=NUMBERS)
        for sentence in verdict(here):
            say(sentence)


def _cells(row: ComparisonRow) -> tuple[str, ...]:
    decile = f" ({row.worst_decile.mean:.3f})" if row.worst_decile else ""
    return (
        row.policy,
        f"{row.freshness.mean:.4f}",
        format_mean(row.ratio, 4),
        f"{row.plain.mean:.3f}",
        format_mean(row.divergence, 4),
        f"{row.age_days.mean:.1f} d",
        f"{row.requests_per_day.mean:.1f}",
        format_share(row.wasted.mean),
        format_share(row.used.mean),
        f"{row.calibration.mean:.3f}{decile}" if row.calibration else "",
    )


def format_mean(value: Mean, digits: int) -> str:
    """Format a mean with its standard error, if there is one."""
    return f"{value.mean:.{digits}f}" + (f" ± {value.error:.{digits}f}" if value.error else "")


def verdict(rows: Sequence[ComparisonRow]) -> Iterator[str]:
    """Yield sentences: the share of the best rival's distance to the optimum that `ours` closes, also with prior."""
    ratios = {row.policy: row.ratio.mean for row in rows}
    rivals = [policy for policy in ratios if policy not in {OURS, AMOUNTS, OPTIMUM, INFORMED, *SWITCHED}]
    if OURS in ratios and rivals:
        best = max(rivals, key=lambda policy: ratios[policy])
        gap = max(1 - ratios[best], 1e-12)
        yield (
            f"\nThe best rival is {best}; ours closes {(ratios[OURS] - ratios[best]) / gap:.0%} "
            "of its distance to the optimum."
        )
        if INFORMED in ratios:
            yield f"With the true prior from the first day it could be {(ratios[INFORMED] - ratios[best]) / gap:.0%}."


def charts_of(rows: Sequence[ComparisonRow]) -> Iterator[tuple[str, Chart]]:
    """Yield charts by file name: the ratio by budget, if there are several, and expected and true freshness."""
    for world in dict.fromkeys(row.world for row in rows):
        here = [row for row in rows if row.world == world]
        if len({row.share for row in here}) > 1:
            yield f"time-{world}", _by_budget(world, here)
        for row in here:
            if row.policy == OURS and row.deciles:
                yield f"time-{world}-{row.share * 100:g}-calibration", _by_decile(row)


def _by_budget(world: str, rows: Sequence[ComparisonRow]) -> Chart:
    policies = [name for name in dict.fromkeys(row.policy for row in rows) if name != OPTIMUM]
    return Chart(
        title=f"{world}: freshness relative to the clairvoyant optimum",
        x_label="requests per day, % of the pages",
        y_label="ratio",
        series=tuple(
            Series(name, tuple((row.share * 100, row.ratio.mean) for row in rows if row.policy == name))
            for name in policies
        ),
        is_log_x=True,
    )


def _by_decile(row: ComparisonRow) -> Chart:
    expected, true = zip(*row.deciles, strict=True)
    return Chart(
        title=f"{row.world}, {row.share:.0%} of the pages a day: freshness by tenths of importance",
        x_label="tenth of the pages, the most important last",
        y_label="fresh",
        series=(
            Series("as reported", tuple((n, each) for n, each in enumerate(expected, start=1))),
            Series("in truth", tuple((n, each) for n, each in enumerate(true, start=1))),
        ),
    )
