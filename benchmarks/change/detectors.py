"""What ours is compared with: how other crawlers tell a changed page from one that is the same."""

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Protocol, TypeVar

from benchmarks.change.looks import Look
from benchmarks.change.ours import Ours
from crawler.core.http import Fetched, Url
from crawler.core.page import Fingerprint, digest, distance_bits, extract
from crawler.core.page.fingerprint import fingerprint_of

TOLERANCE_BITS = 3  # of 64; Manku, Jain, Das Sarma, WWW 2007
MIN_TOKEN_CHARS = 2  # Nutch's db.signature.text_profile.min_token_len
QUANT_RATE = 0.01  # Nutch's db.signature.text_profile.quant_rate

Sign = TypeVar("Sign")


class Detector(Protocol):
    """Judges one site, round by round, and may remember whatever it likes."""

    def judge(self, looks: Sequence[Look]) -> Sequence[bool | None]:
        """For each look of a round whether the page changed since the look before; None for a page's first look."""


class Compared(Detector):
    """Takes a signature of each page and compares it with that of the last version."""

    def __init__(self, sign: Callable[[Look], Sign], differ: Callable[[Sign, Sign], bool]) -> None:
        self._judge = _comparing(sign, differ)

    def judge(self, looks: Sequence[Look]) -> Sequence[bool | None]:
        return [self._judge(look) for look in looks]


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
    return Compared(lambda look: digest(look.answer.body), lambda one, other: one != other)


def simhash_of_all_text() -> Detector:
    """The package of that name, as this crawler calls it, on the whole text; a few bits are forgiven."""
    return Compared(lambda look: fingerprint_of(text_of(look.answer, look.page)), _far)


def _far(one: Fingerprint | None, other: Fingerprint | None) -> bool:
    return one is not other if one is None or other is None else distance_bits(one, other) > TOLERANCE_BITS


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
    return _text(answer.body, answer.content_type, page)


@lru_cache(maxsize=64)
def _text(body: bytes, content_type: str, page: Url) -> str:
    return extract(body, url=page, content_type=content_type).text


DETECTORS: Mapping[str, Callable[[], Detector]] = {
    "raw digest": raw_digest,
    "simhash": simhash_of_all_text,
    "TextProfile": text_profile,
    "ours": Ours,
}
