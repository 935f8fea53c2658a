"""The detectors to compare: how other crawlers decide whether a page has changed, and recrawl's own."""

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Protocol, TypeVar, runtime_checkable

from benchmarks.change.ours import Ours
from benchmarks.change.visits import PageVisit
from crawler.core.http.response import Fetched
from crawler.core.http.urls import Url
from crawler.core.page.content import PageContent, extract_content
from crawler.core.page.fingerprint import Fingerprint, compute_digest, compute_fingerprint, count_distance_bits

TOLERANCE_BITS = 3  # of 64; Manku, Jain, Das Sarma, WWW 2007
MIN_TOKEN_CHARS = 2  # Nutch's db.signature.text_profile.min_token_len
QUANT_RATE = 0.01  # Nutch's db.signature.text_profile.quant_rate

Sign = TypeVar("Sign")


class Detector(Protocol):
    """A detector for one site. It judges the site round by round and may keep state."""

    def judge(self, visits: Sequence[PageVisit]) -> Sequence[bool | None]:
        """Return for each visit of a round whether the page changed since its previous visit; None for a first
        visit.
        """


@runtime_checkable
class Measuring(Protocol):
    """A detector that measures how far each page moved since its previous version, in bits of SimHash."""

    def bits(self, page: Url) -> int | None:
        """Return the distance, or None without a previous version or without text."""


class SimHashes(Detector):
    """The simhash package on some text of each page, with a tolerance of a few bits, from visit to visit."""

    def __init__(self, text: Callable[[Fetched, Url], str]) -> None:
        self._text = text
        self._judge = _comparing(self._sign, _far)
        self._last: dict[Url, Fingerprint | None] = {}
        self._bits: dict[Url, int | None] = {}

    def _sign(self, visit: PageVisit) -> Fingerprint | None:
        return compute_fingerprint(self._text(visit.response, visit.page))

    def judge(self, visits: Sequence[PageVisit]) -> Sequence[bool | None]:
        for visit in visits:
            before, now = self._last.get(visit.page), self._sign(visit)
            self._bits[visit.page] = None if before is None or now is None else count_distance_bits(before, now)
            self._last[visit.page] = now
        return [self._judge(visit) for visit in visits]

    def bits(self, page: Url) -> int | None:
        return self._bits.get(page)


class Compared(Detector):
    """A detector that compares a signature of each page with the signature of its last version."""

    def __init__(self, sign: Callable[[PageVisit], Sign], differ: Callable[[Sign, Sign], bool]) -> None:
        self._judge = _comparing(sign, differ)

    def judge(self, visits: Sequence[PageVisit]) -> Sequence[bool | None]:
        return [self._judge(visit) for visit in visits]


def _comparing(
    sign: Callable[[PageVisit], Sign], differ: Callable[[Sign, Sign], bool]
) -> Callable[[PageVisit], bool | None]:
    last: dict[Url, Sign] = {}

    def judge(visit: PageVisit) -> bool | None:
        after = sign(visit)
        if visit.page not in last:
            last[visit.page] = after
            return None
        changed = differ(last[visit.page], after)
        if changed:
            last[visit.page] = after
        return changed

    return judge


def raw_digest() -> Detector:
    """Compare raw bytes, as Heritrix does, and Nutch by default."""
    return Compared(lambda visit: compute_digest(visit.response.body), lambda one, other: one != other)


def simhash_of_all_text() -> Detector:
    """Compare SimHashes of all text, the most common use."""
    return SimHashes(text_of)


def simhash_of_main_text() -> Detector:
    """Compare SimHashes of the main text that an extractor finds."""
    return SimHashes(main_of)


def _far(one: Fingerprint | None, other: Fingerprint | None) -> bool:
    return one is not other if one is None or other is None else count_distance_bits(one, other) > TOLERANCE_BITS


def text_profile() -> Detector:
    """Compare Nutch's TextProfileSignature: the frequent words with their approximate counts."""
    return Compared(lambda visit: profile(text_of(visit.response, visit.page)), lambda one, other: one != other)


def profile(text: str) -> tuple[tuple[str, int], ...]:
    """Return the words of more than MIN_TOKEN_CHARS, most frequent first, with counts rounded down to a quantum.

    The quantum is QUANT_RATE of the highest count, and at least 2 if any word occurs twice, which drops words that
    occur once. Source: the documentation of Nutch's class TextProfileSignature.
    """
    words = re.findall(r"[^\W_]+", text.lower())
    counts = Counter(word for word in words if len(word) > MIN_TOKEN_CHARS)
    most = max(counts.values(), default=0)
    quantum = max(round(most * QUANT_RATE), 2 if most > 1 else 1)
    kept = ((word, count // quantum * quantum) for word, count in counts.items() if count >= quantum)
    return tuple(sorted(kept, key=lambda each: (-each[1], each[0])))


def text_of(response: Fetched, page: Url) -> str:
    return _content(response.body, response.content_type, page).text


def main_of(response: Fetched, page: Url) -> str:
    return _content(response.body, response.content_type, page).main


@lru_cache(maxsize=64)
def _content(body: bytes, content_type: str, page: Url) -> PageContent:
    return extract_content(body, url=page, content_type=content_type)


DETECTORS: Mapping[str, Callable[[], Detector]] = {
    "raw digest": raw_digest,
    "simhash": simhash_of_all_text,
    "simhash main": simhash_of_main_text,
    "TextProfile": text_profile,
    "ours": Ours,
}
