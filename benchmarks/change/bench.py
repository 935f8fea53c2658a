"""Compare change detectors on sites of real pages with real edits and noise, by kind of edit or noise.

Each page is visited several times, days apart. A visit is labeled "changed" if the page was edited since the previous
visit, and "unchanged" otherwise, whatever else differs. The tables show the share of visits that each detector judges
correctly.
"""

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

from benchmarks.change import pairs, plan
from benchmarks.change.detectors import DETECTORS
from benchmarks.change.edits import DIGITS, EDITS
from benchmarks.change.score import FIRST_VISIT, Judged, Result, measured, separation
from benchmarks.harness.table import table
from tests.engine.corpus import CorpusError


@dataclass(frozen=True, slots=True)
class Figures:
    """The accuracy of one detector. precision is 1 if it reports no change; recall is 1 if there is none to find."""

    visits: int
    changed: int
    precision: float
    recall: float


def main(arguments: Sequence[str]) -> int:
    given = options().parse_args(arguments)
    return of_pairs(given.detectors, as_json=given.json) if given.pairs else of_sites(given)


def of_sites(given: argparse.Namespace) -> int:
    named = plan.sites(given.seed, is_held_out=given.held_out, most=given.sites)
    kinds = frozenset(given.kinds or ()) | ({given.show} if given.show else set())
    try:
        result = measured(named, given.detectors, jobs=given.jobs, kinds=kinds, shown=given.show or "")
    except CorpusError as reason:
        print(f"The pages are not available: {reason}", file=sys.stderr)
        return 1
    if given.json:
        print(json.dumps(summary(result, given.detectors)))
    elif given.show:
        print(mistakes(result, given.detectors[-1], given.show))
    else:
        print(report(result, given.detectors, is_held_out=given.held_out, seed=given.seed))
    return 0


def options() -> argparse.ArgumentParser:
    names = sorted({*EDITS, *plan.NOISES, *filter(None, plan.REFORMS), plan.MIXED})
    parser = argparse.ArgumentParser(prog="python -m benchmarks change", description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--held-out", action="store_true", help="use the held-out pool of words and formats")
    parser.add_argument("--sites", type=int, default=plan.SITES, metavar="N")
    parser.add_argument(
        "--kinds", nargs="+", metavar="KIND", choices=names, help="limit to these kinds: " + ", ".join(names)
    )
    parser.add_argument("--detectors", nargs="+", choices=list(DETECTORS), default=list(DETECTORS))
    parser.add_argument(
        "--show", metavar="KIND", choices=names, help="list the mistakes of the last detector on visits of KIND"
    )
    parser.add_argument("--jobs", type=int, default=2, help="number of processes")
    parser.add_argument("--pairs", action="store_true", help="compare pairs of real versions, labeled by hand, instead")
    parser.add_argument("--json", action="store_true")
    return parser


def of_pairs(detectors: Sequence[str], *, as_json: bool) -> int:
    """Print the accuracy on the real pairs and the mistakes of the last detector."""
    result, missing = pairs.measured(detectors)
    if as_json:
        print(json.dumps(summary(result, detectors)))
    else:
        print(f"{len(result.judged)} labeled pairs of versions; judged correctly, %:\n")
        print(f"{kinds_table(result, detectors)}\n\n{totals_table({'pairs': result.judged}, detectors)}")
        print(f"\n{separation_line(result, detectors)}")
        for kind in sorted({each.kind for each in result.judged}):
            print(f"\n{mistakes(result, detectors[-1], kind)}")
    for reason in missing:
        print(f"Not available: {reason}", file=sys.stderr)
    return 0 if result.judged else 1


def figures(judged: Sequence[Judged], detector: str) -> Figures:
    changed = sum(each.changed for each in judged)
    reported = sum(bool(each.said[detector]) for each in judged)
    found = sum(each.changed and bool(each.said[detector]) for each in judged)
    return Figures(len(judged), changed, found / reported if reported else 1.0, found / changed if changed else 1.0)


def by_kind(judged: Sequence[Judged]) -> Mapping[tuple[bool, str], Sequence[Judged]]:
    """Group the visits by kind, edits first."""
    found: dict[tuple[bool, str], list[Judged]] = {}
    for each in judged:
        found.setdefault((not each.changed, each.kind), []).append(each)
    return dict(sorted(found.items()))


def totals(judged: Sequence[Judged]) -> Mapping[str, Sequence[Judged]]:
    return {
        "all visits": judged,
        "first judged visit": [each for each in judged if each.number == FIRST_VISIT],
        "later visits": [each for each in judged if each.number > FIRST_VISIT],
        "digits, first judged visit": [each for each in judged if each.number == FIRST_VISIT and each.kind in DIGITS],
    }


def report(result: Result, detectors: Sequence[str], *, is_held_out: bool, seed: int) -> str:
    again = [f"{name} {result.again.get(name, 0) / max(1, result.visits):.3f}" for name in detectors]
    pool = "held-out" if is_held_out else "development"
    return "\n".join(
        [
            f"{result.sequences:,} sequences, {result.visits:,} visits, pool {pool}, seed {seed}; judged correctly, %:",
            "",
            kinds_table(result, detectors),
            "",
            totals_table(totals(result.judged), detectors),
            "",
            f"Second fetches per visit: {', '.join(again)}",
            separation_line(result, detectors),
        ]
    )


def separation_line(result: Result, detectors: Sequence[str]) -> str:
    """Describe how well the distances of each detector separate edits from noise."""
    found = {name: separation(result.judged, name) for name in detectors}
    reported = ", ".join(f"{name} {auc:.3f}" for name, auc in found.items() if auc is not None)
    return f"Separation of edits from noise by distance (AUC): {reported or 'no detector measures a distance'}"


def kinds_table(result: Result, detectors: Sequence[str]) -> str:
    rows = [
        (kind, "unchanged" if is_same else "changed", len(judged), *(right(judged, detector) for detector in detectors))
        for (is_same, kind), judged in by_kind(result.judged).items()
    ]
    return table(("kind", "label", "visits", *detectors), rows)


def totals_table(parts: Mapping[str, Sequence[Judged]], detectors: Sequence[str]) -> str:
    rows = [
        (what, detector, n.visits, n.changed, f"{n.precision:.3f}", f"{n.recall:.3f}")
        for what, judged in parts.items()
        for detector in detectors
        for n in [figures(judged, detector)]
    ]
    return table(("", "detector", "visits", "changed", "precision", "recall"), rows)


def right(judged: Sequence[Judged], detector: str) -> str:
    return f"{100 * sum(each.is_right(detector) for each in judged) / len(judged):.1f}"


def summary(result: Result, detectors: Sequence[str]) -> Mapping[str, object]:
    return {
        "sequences": result.sequences,
        "visits": result.visits,
        "again": result.again,
        "separation": {name: separation(result.judged, name) for name in detectors},
        "kinds": [
            {"kind": kind, "changed": not is_same, "visits": len(judged)}
            | {"right": {name: sum(each.is_right(name) for each in judged) for name in detectors}}
            for (is_same, kind), judged in by_kind(result.judged).items()
        ],
        "totals": {
            what: {name: asdict(figures(judged, name)) for name in detectors}
            for what, judged in totals(result.judged).items()
        },
    }


def mistakes(result: Result, detector: str, kind: str) -> str:
    of_kind = [each for each in result.judged if each.kind == kind]
    wrong = [each for each in of_kind if not each.is_right(detector)]
    lines = [f"{detector} is wrong about {len(wrong)} of {len(of_kind)} visits of {kind}"]
    for each in wrong:
        label, verdict = ("changed", "unchanged") if each.changed else ("unchanged", "changed")
        lines += ["", f"{each.page} visit {each.number}: label {label}, verdict {verdict}", each.difference]
    return "\n".join(lines)
