"""Fingerprints that measure how much two texts differ, and digests that show whether two bodies are equal."""

import warnings
from hashlib import sha256
from typing import NewType

import numpy as np
from numpy.typing import NDArray
from xxhash import xxh3_64_intdigest

from crawler.core.page.compiled_scan import hash_words
from crawler.core.page.text_words import WordHashes

with warnings.catch_warnings(action="ignore", category=SyntaxWarning):  # of invalid escapes in simhash
    from simhash import Simhash

Fingerprint = NewType("Fingerprint", int)  # unsigned, 64 bit

# With shingles of three words, unrelated pages with a common vocabulary are at least 24 bits apart; with shingles of
# letters, only 12.
SHINGLE_WORDS = 3
MAX_CHARS = 2_000_000  # of the text, before it is split into words
MAX_WORDS = 100_000  # hashing them takes 30 ms; further words do not count toward the fingerprint
MAX_BYTE = 255


def read_words(text: str) -> WordHashes:
    """Return the hashes of the words of a text that count toward its fingerprint."""
    return hash_words(text[:MAX_CHARS], max_words=MAX_WORDS)


def compute_fingerprint(text: str, words: WordHashes | None = None) -> Fingerprint | None:
    """Return the SimHash of a text's three-word shingles, weighted by frequency; None for an empty or blank text.

    Similar texts have fingerprints that differ in few bits. Case, whitespace and punctuation do not count, unless there
    is only punctuation. words: the words of the text, if they are known.
    Source: Charikar, "Similarity estimation techniques from rounding algorithms", STOC 2002.
    """
    hashes = (read_words(text) if words is None else words).hashes
    if not len(hashes):
        hashes = np.array([hash_text(word) for word in text[:MAX_CHARS].split()[:MAX_WORDS]], dtype=np.uint64)
    if not len(hashes):
        return None
    hashes = mix_shingles(hashes)
    return Fingerprint(int.from_bytes(np.packbits(_count_set_bits(hashes) > len(hashes) / 2).tobytes()))


def _count_set_bits(hashes: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return how many of the hashes have each bit set, highest bit first.

    `Simhash(shingles)` sums the same in a loop over features. Here the bits, one byte each, are summed eight at a time,
    and in groups of at most 255 hashes, so that a byte cannot overflow. This takes a fifth of the package's time.
    """
    bits = Simhash._bitarray_from_bytes(hashes.astype(">u8").tobytes())  # noqa: SLF001  pinned, compared in a test
    eights = bits.view(np.uint64).reshape(-1, 8)
    parts = np.add.reduceat(eights, np.arange(0, len(eights), MAX_BYTE))
    return np.asarray(np.sum(parts.view(np.uint8).reshape(-1, 64), axis=0, dtype=np.uint64))


def mix_shingles(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return a 64-bit hash of each run of SHINGLE_WORDS words, or of all together if there are fewer.

    words: their hashes, at least one.
    """
    width = min(SHINGLE_WORDS, len(words))
    mixed = np.zeros(len(words) - width + 1, dtype=np.uint64)
    for at in range(width):
        mixed = (mixed ^ words[at : len(words) - width + 1 + at]) * _ODD
        mixed ^= mixed >> _SHIFT  # makes the order of the words count
    return mixed


_ODD = np.uint64(0x9E3779B97F4A7C15)  # 2^64 over the golden ratio: its multiples spread over all bits
_SHIFT = np.uint64(29)


def hash_text(text: str) -> int:
    """Return a 64-bit hash of a text. It does not protect against adversaries."""
    return xxh3_64_intdigest(text.encode("utf-8", "surrogatepass"))


def count_distance_bits(one: Fingerprint, other: Fingerprint) -> int:
    """Return the number of differing bits, of 64: 0 for equal texts, about 32 for unrelated ones."""
    return (one ^ other).bit_count()


def compute_digest(*parts: bytes) -> bytes:
    """Return a 16-byte digest of parts of data, joined, that is equal only for equal data."""
    digest = sha256(usedforsecurity=False)  # processors have instructions for it: twice as fast as BLAKE2
    for part in parts:
        digest.update(part)
    return digest.digest()[:16]
