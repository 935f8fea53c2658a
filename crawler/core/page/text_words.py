"""The words of a text, for fingerprints and samples."""

import re

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray
from xxhash import xxh3_64_digest

# Each character of Chinese, Japanese and Korean scripts counts as a word, because most such texts have no spaces.
UNSPACED = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
_DIGIT = re.compile(rb"[0-9]")
_UNSPACED_CHAR = re.compile(f"[{UNSPACED}]")
_WORD_OR_UNSPACED_CHAR = re.compile(rf"[^\W{UNSPACED}]+|[{UNSPACED}]")
NON_ASCII_SEPARATOR = re.compile(rf"[^\w\x00-\x7f{UNSPACED}]")
# The translation table that turns each ASCII separator into a space.
_SPACED = bytes(byte if byte >= 0x80 or chr(byte).isalnum() or byte == ord("_") else ord(" ") for byte in range(256))


STARTS_LINE, HAS_DIGIT = 1, 2  # the marks of a word


class WordHashes(Struct, frozen=True):
    """The words of a text. hashes: 64 bits each.  marks: bits STARTS_LINE, and HAS_DIGIT of ASCII digits."""

    hashes: NDArray[np.uint64]
    marks: NDArray[np.uint8]

    def __len__(self) -> int:
        return len(self.hashes)


def hash_text_words(text: str, *, max_words: int) -> WordHashes:
    """Return the hashes and the marks of the first words of a text, see `split_text_words`."""
    words: list[bytes] = []
    marks = bytearray()
    for line in text.split("\n"):
        of_line = split_text_words(line)[: max_words - len(words)]
        words += of_line
        marks += bytes(
            STARTS_LINE * (at == 0) | HAS_DIGIT * bool(_DIGIT.search(word)) for at, word in enumerate(of_line)
        )
    return WordHashes(hash_each(words), np.frombuffer(bytes(marks), dtype=np.uint8))


def split_text_words(text: str) -> list[bytes]:
    r"""Return the lowercase words of a text in UTF-8, as the expression \w+ finds them, in half its time.

    Each character in UNSPACED is a word.
    """
    text = text.lower()
    if not text.isascii():
        if _UNSPACED_CHAR.search(text):
            return [word.encode() for word in _WORD_OR_UNSPACED_CHAR.findall(text)]
        text = NON_ASCII_SEPARATOR.sub(" ", text)
    return text.encode().translate(_SPACED).split()


def hash_each(words: list[bytes]) -> NDArray[np.uint64]:
    """Return the 64-bit hash of each word."""
    return np.frombuffer(b"".join(map(xxh3_64_digest, words)), dtype=">u8").astype(np.uint64)
