"""A few hashes of a page's text, to tell whether earlier pages have said the same."""

import re
from dataclasses import replace
from typing import Any

import numpy as np

from crawler.core.http import Url
from crawler.core.page import PageContent, Parsed, digest, parse, shingles_of_words, words_of_text

SAMPLED = 8  # hashes of one page: its share of new ones is told in eighths, and added up over many pages
MOST_WORDS = 500  # from which on no more lines are read; what repeats shows at the beginning
MOST_CHARS = 20_000
LINE_END = [b"\n", b"\n"]  # so that no three words are of two lines
ANYTHING = b"0"  # in place of a word that tells pages apart without saying anything

Sample = tuple[int, ...]  # of 32 bits each, distinct; never empty

TO_32_BITS = np.uint64(32)
_WORD_OF_URL = re.compile(r"\w+")
_DIGIT = re.compile(rb"[0-9]")


def sample_of(content: PageContent, body: bytes, *, url: Url) -> Sample:
    """The smallest hashes of the text's words in threes, line by line; of the bytes, where there is no text.

    So the same lines in another order are nothing new. Words with a digit, and the words of the page's own URL, count
    as one word: a calendar names another day on each page, and "/x was not found" another URL.
    """
    echoed = {word.encode("utf-8", "surrogatepass") for word in _WORD_OF_URL.findall(url.lower())}
    words = list(LINE_END)
    for line in content.main[:MOST_CHARS].split("\n"):
        words += [
            ANYTHING if word in echoed or (not word.isalpha() and _DIGIT.search(word)) else word
            for word in words_of_text(line)
        ]
        words += LINE_END
        if len(words) >= MOST_WORDS:
            break
    if len(words) == 2 * len(LINE_END):
        return (int.from_bytes(digest(body)[:4], "big"),)
    hashes = np.unique(shingles_of_words(words) >> TO_32_BITS)
    return tuple(hashes[:SAMPLED].tolist())


def parse_with_sample(body: bytes, *, url: Url, **how: Any) -> Parsed:
    """Parse a body and take its sample, in one call for the process that reads it. how: what else `parse` is given."""
    parsed = parse(body, url=url, **how)
    return replace(parsed, sample=sample_of(parsed.content, body, url=url))
