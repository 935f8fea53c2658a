"""Run detectors over sites and count their verdicts."""

import difflib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import partial

from benchmarks.change import plan, visits
from benchmarks.change.detectors import DETECTORS, Detector, Measuring, text_of
from benchmarks.change.site import Site
from benchmarks.change.visits import Labelled, PageVisit

FIRST_VISIT = 1
MAX_SHOWN_CHARS = 90


@dataclass(frozen=True, slots=True)
class Judged:
    """A labeled visit with the verdicts of all detectors.

    kind: the kind of edit or noise.
    number: 1 for the first visit that can be judged.
    said: verdicts by detector; None if it has none.
    bits: distances by detector, for those that measure one.
    difference: the lines that differ, or the reason for the label; empty unless requested.
    """

    page: str
    number: int
    kind: str
    changed: bool
    said: Mapping[str, bool | None]
    bits: Mapping[str, int | None] = field(default_factory=dict)
    difference: str = ""

    def is_right(self, detector: str) -> bool:
        """Return whether the verdict is correct. No verdict counts as unchanged, because nobody is notified."""
        return bool(self.said[detector]) == self.changed


@dataclass(frozen=True, slots=True)
class Result:
    """The result of one or more sites. sequences: pages.  visits: all visits.  again: second fetches by detector."""

    judged: tuple[Judged, ...]
    sequences: int
    visits: int
    again: Mapping[str, int]

    def __add__(self, other: "Result") -> "Result":
        again = {name: self.again.get(name, 0) + other.again.get(name, 0) for name in {**self.again, **other.again}}
        return Result(self.judged + other.judged, self.sequences + other.sequences, self.visits + other.visits, again)


def separation(judged: Sequence[Judged], detector: str) -> float | None:
    """Return the probability that an edit has a larger distance than noise (AUC); ties count half.

    Return None unless there are both edits and noise and the detector measures distances. A missing distance counts as
    0.
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
    """Measure all sites in several processes. If kinds is not empty, skip sites without any of them."""
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
    """Measure one site with new detectors."""
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
            counted, counters = _with_counters(labelled, site)
            said[detector] = judge.judge(counted)
            again[detector] += sum(counter.taken for counter in counters)
        count += len(labelled)
        bits = {name: judge for name, judge in judges.items() if isinstance(judge, Measuring)}
        judged += _judged(labelled, said, bits, site, shown=shown)
    wanted = tuple(each for each in judged if not kinds or each.kind in kinds)
    return Result(wanted, len(site.pages), count, again)


def _with_counters(labelled: Sequence[Labelled], site: Site) -> tuple[Sequence[PageVisit], Sequence[visits.Again]]:
    """Return the visits with new counters of second fetches."""
    counters = [visits.Again(site, each.page, each.visit.at) for each in labelled]
    counted = [
        PageVisit(each.visit.page, each.visit.at, each.visit.response, counter)
        for each, counter in zip(labelled, counters, strict=True)
    ]
    return counted, counters


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
                bits={name: detector.bits(each.visit.page) for name, detector in measuring.items()},
                difference=difference(site, each) if each.kind == shown else "",
            )


def difference(site: Site, each: Labelled) -> str:
    """Return the lines of text in which two successive visits differ, or the lines of HTML if the text is equal."""
    before = visits.visit_before(site, each)
    one, other = (text_of(visit.response, visit.page).split("\n") for visit in (before, each.visit))
    if one == other:
        one, other = (visit.response.body.decode("utf-8", "replace").split("\n") for visit in (before, each.visit))
    lines = [line for line in difflib.unified_diff(one, other, lineterm="", n=0) if not line.startswith(("---", "+++"))]
    return "\n".join(f"    {line[:MAX_SHOWN_CHARS]}" for line in lines[:12] if not line.startswith("@@"))
