"""The command `python -m labs mechanisms`: the effect of each mechanism of the product's rule, by world and budget."""

from collections.abc import Sequence

from crawler.cli.output import print_json, say, show_table
from crawler.cli.session import DONE
from crawler.format.values import format_share
from labs.experiments.cli.compare import LabRequest, format_mean, measured
from labs.experiments.comparison import ComparisonRow, Mean, mean_of
from labs.experiments.policies.named import OURS, SWITCHED, UNIFORM
from labs.experiments.worlds.populations import POPULATIONS

SHARES = (0.01, 0.03, 0.1, 0.3)
# The same as log-normal if a wrong Last-Modified is ignored and each change counts equally.
ALIKE = ("echo", "frozen", "amounts", "fast-large", "fast-small", "even-amounts", "adding-up")
WORLDS = tuple(name for name in POPULATIONS if name not in ALIKE)
OTHERS = (UNIFORM, *SWITCHED)
COMPARED = (OURS, *OTHERS)


def switched_off(request: LabRequest, *, as_json: bool) -> int:
    """Compare the rule with simpler ones, and with itself with one mechanism changed."""
    rows = measured(request.job_list(), workers=request.jobs)
    if as_json:
        print_json({"rows": rows})
        return DONE
    say("Freshness relative to the optimum, and percentage points by which the rule is fresher than each of these\n")
    heads = ["world", "budget", OURS, *OTHERS]
    show_table(heads, list(_lines(rows)), right=heads[2:])
    return DONE


def _lines(rows: Sequence[ComparisonRow]) -> list[tuple[str, ...]]:
    found = {(row.world, row.share, row.policy): row for row in rows}
    places = dict.fromkeys((row.world, row.share) for row in rows)
    return [
        (
            world,
            format_share(share),
            format_mean(found[world, share, OURS].ratio, 4),
            *(_points(gain(found[world, share, OURS], found[world, share, other])) for other in OTHERS),
        )
        for world, share in places
    ]


def gain(ours: ComparisonRow, other: ComparisonRow) -> Mean:
    """Return the percentage points by which ours is fresher, over the same worlds."""
    return mean_of(100 * (one - two) for one, two in zip(ours.ratios, other.ratios, strict=True))


def _points(points: Mean) -> str:
    return f"{points.mean:+.2f} ± {points.error:.2f}"
