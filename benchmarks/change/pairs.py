"""Pairs of real page versions, from Debian's main and security archives, labeled by hand.

pairs.tsv has one line per pair: the package, its two versions, the page, the digests of both sides, the label, its
kind, and the reason. The label is "changed" if the content changed; "same" if only boilerplate did, such as the release
number, the build date or the name of the next page; and "open", which is not scored, if readers may disagree.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from csv import DictReader
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from urllib.parse import quote

from benchmarks.change.detectors import DETECTORS, Detector, Measuring
from benchmarks.change.score import EMPTY, Judged, Result
from benchmarks.change.visits import PageVisit
from crawler.core.http.response import Fetched
from crawler.core.http.urls import Url
from crawler.core.page.fingerprint import compute_digest
from tests.engine.corpus import CorpusError, fetch

LABELS = Path(__file__).with_name("pairs.tsv")
OTHERS = 200  # other pages of the package to visit, from which the boilerplate is learned
AT = datetime(2026, 3, 2, 10, tzinfo=UTC)
APART = timedelta(days=30)
BETWEEN_PAGES = timedelta(seconds=11)


@dataclass(frozen=True, slots=True)
class Pair:
    package: str
    old: str
    new: str
    page: str
    digest_old: str
    digest_new: str
    label: str
    kind: str
    why: str

    @property
    def url(self) -> Url:
        return url_of(self.package, self.page)


def url_of(package: str, page: str) -> Url:
    return Url(f"https://{package}.test/{quote(page)}")


def pairs() -> Sequence[Pair]:
    """Return all labeled pairs; the pairs of a package are adjacent."""
    with LABELS.open(encoding="utf-8", newline="") as file:
        return [Pair(**row) for row in DictReader(file, delimiter="\t")]


def measured(detectors: Sequence[str]) -> tuple[Result, Sequence[str]]:
    """Measure all packages for which both versions are available. Return the result and why others are not
    available.
    """
    result, missing = EMPTY, []
    for _, found in groupby(pairs(), key=attrgetter("package")):
        labelled = list(found)
        try:
            result += measure(labelled, detectors)
        except CorpusError as reason:
            missing.append(f"{labelled[0].package}: {reason}")
    return result, missing


def measure(
    labelled: Sequence[Pair],
    detectors: Sequence[str],
    *,
    made: Mapping[str, Callable[[], Detector]] = DETECTORS,
) -> Result:
    """Measure one package, with new detectors that see its two versions."""
    roots = [fetch(labelled[0].package, version=version) for version in (labelled[0].old, labelled[0].new)]
    pages = {pair.page for pair in labelled} | set(others(roots))
    visits = [list(visits_of(labelled[0].package, sorted(pages), root, AT + n * APART)) for n, root in enumerate(roots)]
    check(labelled, visits)
    said: dict[str, Mapping[Url, bool | None]] = {}
    measuring: dict[str, Measuring] = {}
    for name in detectors:
        detector = made[name]()
        detector.judge(visits[0])
        if isinstance(detector, Measuring):
            measuring[name] = detector
        said[name] = {visit.page: verdict for visit, verdict in zip(visits[1], detector.judge(visits[1]), strict=True)}
    judged = (
        Judged(
            page=pair.url,
            number=1,
            kind=pair.kind,
            changed=pair.label == "changed",
            said={name: verdicts[pair.url] for name, verdicts in said.items()},
            bits={name: each.bits(pair.url) for name, each in measuring.items()},
            difference=f"    {pair.why}",
        )
        for pair in labelled
        if pair.label != "open"
    )
    return Result(tuple(judged), len(labelled), 2 * len(pages), {})


def others(roots: Sequence[Path]) -> Sequence[str]:
    """Return pages that both versions have, evenly spread."""
    names = ({file.relative_to(root).as_posix() for file in root.rglob("*.html*") if file.is_file()} for root in roots)
    common = sorted(set.intersection(*names))
    return common[:: max(1, len(common) // OTHERS)]


def visits_of(package: str, pages: Sequence[str], root: Path, at: datetime) -> Iterator[PageVisit]:
    for number, page in enumerate(pages):
        body = (root / page).read_bytes()
        response = Fetched(200, body, len(body), timedelta(milliseconds=80), content_type="text/html")
        again = partial(lambda response: response, response)  # a second fetch returns the same file
        yield PageVisit(url_of(package, page), at + number * BETWEEN_PAGES, response, again)


def check(labelled: Sequence[Pair], visits: Sequence[Sequence[PageVisit]]) -> None:
    """Raise CorpusError unless the files are the ones that were labeled."""
    old, new = ({visit.page: compute_digest(visit.response.body).hex() for visit in seen} for seen in visits)
    for pair in labelled:
        if (old[pair.url], new[pair.url]) != (pair.digest_old, pair.digest_new):
            raise CorpusError(f"{pair.page} differs from the labeled version; label it again")
