"""What ours is compared with: how other crawlers tell a changed page from one that is the same."""

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Protocol, TypeVar, runtime_checkable

from benchmarks.change.ours import Ours
from benchmarks.change.visits import Look
from crawler.core.http.response import Fetched
from crawler.core.http.urls import Url
from crawler.core.page.content import PageContent, extract_content
from crawler.core.page.fingerprint import Fingerprint, compute_digest, compute_fingerprint, count_distance_bits

TOLERANCE_BITS = 3  # of 64; Manku, Jain, Das Sarma, WWW 2007
MIN_TOKEN_CHARS = 2  # Nutch's db.signature.text_profile.min_token_len
QUANT_RATE = 0.01  # Nutch's db.signature.text_profile.quant_rate

Sign = TypeVar("Sign")


class Detector(Protocol):
    """Judges one site, round by round, and may remember whatever it likes."""

    def judge(self, visits: Sequence[Look]) -> Sequence[bool | None]:
        """For each look of a round whether the page changed since the look before; None for a page's first look."""


@runtime_checkable
class Measuring(Protocol):
    """Says how far each page of the last round is from its version before, in bits of SimHash."""

    def bits(self, page: Url) -> int | None:
        """None where there is no version before it, or no text."""


class SimHashes(Detector):
    """The package of that name on some text of each page; a few bits are forgiven. Distances are from look to look."""

    def __init__(self, text: Callable[[Fetched, Url], str]) -> None:
        self._text = text
        self._judge = _comparing(self._sign, _far)
        self._last: dict[Url, Fingerprint | None] = {}
        self._bits: dict[Url, int | None] = {}

    def _sign(self, look: Look) -> Fingerprint | None:
        return compute_fingerprint(self._text(look.answer, look.page))

    def judge(self, visits: Sequence[Look]) -> Sequence[bool | None]:
        for look in visits:
            before, now = self._last.get(look.page), self._sign(look)
            self._bits[look.page] = None if before is None or now is None else count_distance_bits(before, now)
            self._last[look.page] = now
        return [self._judge(look) for look in visits]

    def bits(self, page: Url) -> int | None:
        return self._bits.get(page)


class Compared(Detector):
    """Takes a signature of each page and compares it with that of the last version."""

    def __init__(self, sign: Callable[[Look], Sign], differ: Callable[[Sign, Sign], bool]) -> None:
        self._judge = _comparing(sign, differ)

    def judge(self, visits: Sequence[Look]) -> Sequence[bool | None]:
        return [self._judge(look) for look in visits]


def _comparing(sign: Callable[[Look], Sign], differ: Callable[[Sign, Sign], bool]) -> Callable[[Look], bool | None]:
    last: dict[Url, Sign] = {}

    def judge(look: Look) -> bool | None:
        after = sign(look)
        if look.page not in last:
            last[look.page] = after
            return None
        changed = differ(last[look.page], after)
        if changed:
            last[look.page] = after
        return changed

    return judge


def raw_digest() -> Detector:
    """Heritrix, and Nutch by default: any other byte is a change."""
    return Compared(lambda look: compute_digest(look.answer.body), lambda one, other: one != other)


def simhash_of_all_text() -> Detector:
    """On the whole text, as most who use it do."""
    return SimHashes(text_of)


def simhash_of_main_text() -> Detector:
    """On what an extractor takes for the main text."""
    return SimHashes(main_of)


def _far(one: Fingerprint | None, other: Fingerprint | None) -> bool:
    return one is not other if one is None or other is None else count_distance_bits(one, other) > TOLERANCE_BITS


def text_profile() -> Detector:
    """Nutch's TextProfileSignature: words that are frequent, with roughly how frequent."""
    return Compared(lambda look: profile(text_of(look.answer, look.page)), lambda one, other: one != other)


def profile(text: str) -> tuple[tuple[str, int], ...]:
    """The text's words of more than MIN_TOKEN_CHARS, the most frequent first, counts rounded down to a quantum.

    The quantum is QUANT_RATE of the highest count, and at least 2 where any word comes twice: then all that come once
    are left out.  Source: the documentation of Nutch's class TextProfileSignature.
    """
    words = re.findall(r"[^\W_]+", text.lower())
    counts = Counter(word for word in words if len(word) > MIN_TOKEN_CHARS)
    most = max(counts.values(), default=0)
    quantum = max(round(most * QUANT_RATE), 2 if most > 1 else 1)
    kept = ((word, count // quantum * quantum) for word, count in counts.items() if count >= quantum)
    return tuple(sorted(kept, key=lambda each: (-each[1], each[0])))


def text_of(answer: Fetched, page: Url) -> str:
    return _content(answer.body, answer.content_type, page).text


def main_of(answer: Fetched, page: Url) -> str:
    return _content(answer.body, answer.content_type, page).main


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
