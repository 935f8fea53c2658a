"""Runs detectors over sites, and counts."""

import difflib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import partial

from benchmarks.change import plan, visits
from benchmarks.change.detectors import DETECTORS, Detector, Measuring, text_of
from benchmarks.change.site import Site
from benchmarks.change.visits import Labelled, Look

FIRST_LOOK = 1
MOST_SHOWN_CHARS = 90


@dataclass(frozen=True, slots=True)
class Judged:
    """A labelled look with what each detector said.

    kind: what was edited or differs.  number: 1 for the first look that can be judged.  said: by detector; None where
    it gave no judgement.  bits: the distance, by each detector that measures one.  difference: the lines of text that
    differ, or what was edited; empty unless asked for.
    """

    page: str
    number: int
    kind: str
    changed: bool
    said: Mapping[str, bool | None]
    bits: Mapping[str, int | None] = field(default_factory=dict)
    difference: str = ""

    def is_right(self, detector: str) -> bool:
        """No judgement is no change: nobody is told anything."""
        return bool(self.said[detector]) == self.changed


@dataclass(frozen=True, slots=True)
class Result:
    """Of one or more sites. sequences: pages.  looks: all that were had once.  again: second looks, by detector."""

    judged: tuple[Judged, ...]
    sequences: int
    visits: int
    again: Mapping[str, int]

    def __add__(self, other: "Result") -> "Result":
        again = {name: self.again.get(name, 0) + other.again.get(name, 0) for name in {**self.again, **other.again}}
        return Result(self.judged + other.judged, self.sequences + other.sequences, self.visits + other.visits, again)


def separation(judged: Sequence[Judged], detector: str) -> float | None:
    """How well distances tell edits from noise: the chance that an edit is further than a noise (AUC), ties half.

    None where there are not both, or the detector measures nothing. A look without a distance has none: 0.
    """
    edits, noises = (
        Counter(each.bits[detector] or 0 for each in judged if each.changed is changed and detector in each.bits)
        for changed in (True, False)
    )
    if not edits or not noises:
        return None
    won = sum(
        edits[one] * noises[other] * (1.0 if one > other else 0.5 if one == other else 0.0)
        for one in edits
        for other in noises
    )
    return won / (edits.total() * noises.total())


EMPTY = Result((), 0, 0, {})


def measured(
    named: Sequence[tuple[int, int, bool]], detectors: Sequence[str], *, jobs: int, kinds: frozenset[str], shown: str
) -> Result:
    """All sites, in several processes. kinds: only sites that have one of these, if there are any."""
    one = partial(measure, detectors=detectors, kinds=kinds, shown=shown)
    if jobs == 1:
        return sum(map(one, named), start=EMPTY)
    with ProcessPoolExecutor(jobs) as pool:
        return sum(pool.map(one, named), start=EMPTY)


def measure(
    name: tuple[int, int, bool],
    *,
    detectors: Sequence[str],
    kinds: frozenset[str] = frozenset(),
    shown: str = "",
    made: Mapping[str, Callable[[], Detector]] = DETECTORS,
) -> Result:
    """One site, by detectors that have seen nothing else."""
    site = plan.site(*name)
    if kinds and not kinds & plan.kinds_of(site):
        return EMPTY
    judges = {name: made[name]() for name in detectors}
    again = dict.fromkeys(detectors, 0)
    judged: list[Judged] = []
    count = 0
    for labelled in visits.rounds(site):
        said = {}
        for detector, judge in judges.items():
            asked, counters = _asked(labelled, site)
            said[detector] = judge.judge(asked)
            again[detector] += sum(counter.taken for counter in counters)
        count += len(labelled)
        bits = {name: judge for name, judge in judges.items() if isinstance(judge, Measuring)}
        judged += _judged(labelled, said, bits, site, shown=shown)
    wanted = tuple(each for each in judged if not kinds or each.kind in kinds)
    return Result(wanted, len(site.pages), count, again)


def _asked(labelled: Sequence[Labelled], site: Site) -> tuple[Sequence[Look], Sequence[visits.Again]]:
    """The looks with counters of their own."""
    counters = [visits.Again(site, each.page, each.look.at) for each in labelled]
    asked = [
        Look(each.look.page, each.look.at, each.look.answer, counter)
        for each, counter in zip(labelled, counters, strict=True)
    ]
    return asked, counters


def _judged(
    labelled: Sequence[Labelled],
    said: Mapping[str, Sequence[bool | None]],
    measuring: Mapping[str, Measuring],
    site: Site,
    *,
    shown: str,
) -> Iterator[Judged]:
    for at, each in enumerate(labelled):
        if each.changed is not None:
            yield Judged(
                page=each.page.url,
                number=each.number,
                kind=each.kind,
                changed=each.changed,
                said={name: verdicts[at] for name, verdicts in said.items()},
                bits={name: detector.bits(each.look.page) for name, detector in measuring.items()},
                difference=difference(site, each) if each.kind == shown else "",
            )


def difference(site: Site, each: Labelled) -> str:
    """The lines of text in which two looks in a row differ; where there are none, of the bytes."""
    before = visits.look_before(site, each)
    one, other = (text_of(look.answer, look.page).split("\n") for look in (before, each.look))
    if one == other:
        one, other = (look.answer.body.decode("utf-8", "replace").split("\n") for look in (before, each.look))
    lines = [line for line in difflib.unified_diff(one, other, lineterm="", n=0) if not line.startswith(("---", "+++"))]
    return "\n".join(f"    {line[:MOST_SHOWN_CHARS]}" for line in lines[:12] if not line.startswith("@@"))
