"""Two versions of real pages, as Debian's main archive and its security archive have them, labelled by reading both.

pairs.tsv has a line for each: the package and its two versions, the page, the digests of both sides (as
crawler.core.page.snapshot takes them), the label, its kind, and why. "changed" is what the page says of its subject,
"same" what only its frame says: the number of the release, the date of the build, the name of the next page. "open" is
what readers may see either way; it is not scored.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from csv import DictReader
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from urllib.parse import quote

from benchmarks.change.detectors import DETECTORS, Detector, Measuring
from benchmarks.change.score import EMPTY, Judged, Result
from benchmarks.change.visits import Look
from crawler.core.http.response import Fetched
from crawler.core.http.urls import Url
from crawler.core.page.fingerprint import compute_digest
from tests.engine.corpus import CorpusError, fetch

LABELS = Path(__file__).with_name("pairs.tsv")
OTHERS = 200  # pages of a package that are looked at, too, so that its boilerplate is known
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
    """All that are labelled, those of a package together."""
    with LABELS.open(encoding="utf-8", newline="") as file:
        return [Pair(**row) for row in DictReader(file, delimiter="\t")]


def measured(detectors: Sequence[str]) -> tuple[Result, Sequence[str]]:
    """Of all packages that can be had in both versions, and why others could not be."""
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
    """One package, seen twice by detectors that have seen nothing else."""
    roots = [fetch(labelled[0].package, version=version) for version in (labelled[0].old, labelled[0].new)]
    pages = {pair.page for pair in labelled} | set(others(roots))
    visits = [list(round_of(labelled[0].package, sorted(pages), root, AT + n * APART)) for n, root in enumerate(roots)]
    check(labelled, visits)
    said: dict[str, Mapping[Url, bool | None]] = {}
    measuring: dict[str, Measuring] = {}
    for name in detectors:
        detector = made[name]()
        detector.judge(visits[0])
        if isinstance(detector, Measuring):
            measuring[name] = detector
        said[name] = {look.page: verdict for look, verdict in zip(visits[1], detector.judge(visits[1]), strict=True)}
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
    """Pages that both versions have, evenly over all."""
    names = ({file.relative_to(root).as_posix() for file in root.rglob("*.html*") if file.is_file()} for root in roots)
    common = sorted(set.intersection(*names))
    return common[:: max(1, len(common) // OTHERS)]


def round_of(package: str, pages: Sequence[str], root: Path, at: datetime) -> Iterator[Look]:
    for number, page in enumerate(pages):
        body = (root / page).read_bytes()
        answer = Fetched(200, body, len(body), timedelta(milliseconds=80), content_type="text/html")
        # Files do not differ between two looks in a row.
        yield Look(url_of(package, page), at + number * BETWEEN_PAGES, answer, lambda answer=answer: answer)  # type: ignore[misc]


def check(labelled: Sequence[Pair], visits: Sequence[Sequence[Look]]) -> None:
    """What was read is what was labelled; CorpusError if not."""
    old, new = ({look.page: compute_digest(look.answer.body).hex() for look in seen} for seen in visits)
    for pair in labelled:
        if (old[pair.url], new[pair.url]) != (pair.digest_old, pair.digest_new):
            raise CorpusError(f"{pair.page} is not as it was when it was labelled")
