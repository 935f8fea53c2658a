"""The sample of a page's text: a few hashes that show whether the text is new to its domain."""

import re

import numpy as np

from crawler.core.http.urls import Url
from crawler.core.page.compiled_scan import JoinedLines, WordLimits
from crawler.core.page.fingerprint import (
    MAX_CHARS,
    Fingerprint,
    compute_digest,
    compute_fingerprint,
    hash_text,
    mix_shingles,
    read_words,
)
from crawler.core.page.fingerprint import MAX_WORDS as MAX_FINGERPRINT_WORDS
from crawler.core.page.text_words import HAS_DIGIT, STARTS_LINE, WordHashes

SAMPLE_SIZE = 8  # hashes per page: the share of new ones has steps of an eighth, which suffices over many pages
MAX_WORDS = 500  # that are read; the beginning shows whether a text is known
LINE_END = hash_text("\n")  # twice around each line, so that no shingle spans two lines
WILDCARD = hash_text("0")  # replaces a word that distinguishes pages without adding content

Sample = tuple[int, ...]  # 32 bits each, distinct; never empty

_TO_32_BITS = np.uint64(32)
_URL_WORD = re.compile(r"\w+")


_LIMITS = WordLimits(MAX_CHARS, MAX_FINGERPRINT_WORDS, MAX_WORDS, LINE_END, WILDCARD)


def digest_words(joined: JoinedLines, body: bytes, *, url: Url) -> tuple[Fingerprint | None, Sample]:
    """Return the fingerprint and the sample of the main text of a page."""
    if joined.source is not None:
        found = joined.source.digest_words(_LIMITS, _hash_url_words(url), is_whole=joined.main is joined.whole)
        if found is not None and found.words:
            return Fingerprint(found.fingerprint), found.sample
    main = joined.main.decode("utf-8", "surrogatepass")
    words = read_words(main)
    return compute_fingerprint(main, words), sample_words(words, body, url=url)


def _hash_url_words(url: Url) -> list[int]:
    return [hash_text(word) for word in _URL_WORD.findall(url.lower())]


def sample_words(words: WordHashes, body: bytes, *, url: Url) -> Sample:
    """Return the SAMPLE_SIZE smallest hashes of the three-word shingles of a text's start, or a hash of the bytes.

    The latter is for a body without text. No shingle spans two lines, so the same lines in another order are not new.
    Words with a digit, and the words of the page's own URL, are replaced by a wildcard, because each page of a calendar
    names another day, and "/x was not found" another URL.
    """
    if not len(words):
        return (int.from_bytes(compute_digest(body)[:4], "big"),)
    hashes, marks = words.hashes[:MAX_WORDS], words.marks[:MAX_WORDS]
    url_words = np.array(_hash_url_words(url), dtype=np.uint64)
    is_replaced = (url_words[:, np.newaxis] == hashes).any(axis=0) | (marks & HAS_DIGIT > 0)
    lines = np.cumsum(marks & STARTS_LINE, dtype=np.intp)  # of each word, from 1
    separated = np.full(len(hashes) + 2 * (lines[-1] + 1), LINE_END, dtype=np.uint64)
    separated[np.arange(len(hashes)) + 2 * lines] = np.where(is_replaced, np.uint64(WILDCARD), hashes)
    ascending = np.sort(mix_shingles(separated) >> _TO_32_BITS)
    return (int(ascending[0]), *ascending[1:][ascending[1:] > ascending[:-1]][: SAMPLE_SIZE - 1].tolist())
