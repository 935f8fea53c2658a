"""Novelty: whether first looks at the pages of a template still bring anything new, or the site has no end there.

`sample_of` takes a few hashes of a page's text; `NoveltyMemory` tells how many of them no earlier page had, and which
query parameters make no other page; `is_barren` says of a template that its pages bring nothing new. Uses page and
http.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import numpy as np

from crawler.core.http.urls import Url
from crawler.core.page.content import PageContent
from crawler.core.page.fingerprint import digest, number_of, shingles_of_words, words_of_text
from crawler.core.page.snapshot import Parsed, parse

HORIZON = 100.0  # looks that are remembered, about
HELD_LOOKS = 5.0  # remembered of a template whose pages are held back, so that two new pages let it go
TEMPLATE_LEAN = 5.0  # looks' worth of weight that a template's section has in it
SECTION_LEAN = 3.0  # and that the hope has which any section begins with: all is new
BARREN = 0.1  # share of new text in first looks below which a template's pages are held back,
FERTILE = 0.3  # and above which they are let go
ENOUGH_OF_TEMPLATE = 30  # looks, or
ENOUGH_OF_SECTION = 50
ASK_AGAIN_EVERY = timedelta(days=1)  # one page of each template that is held back
LONGEST_WAIT = timedelta(days=1000)  # of one page

MOST_HASHES = 8192  # of one generation: of texts those of 1,000 pages, and one or two of each URL
MOST_PARAMETERS = 256
ENOUGH_NAMES = 5  # pages that were one with another but for a parameter, before the parameter is judged
LEAST_NEW = 0.1  # of what such pages said, for the parameter to make other pages

MOST_REPEATS = 2  # of one folder in a path; real sites have /2026/11/11/, and no folder three times
FEWEST_SLASHES = len("http://") - len("http:") + 1 + MOST_REPEATS + 1  # of a URL with so many folders
MOST_PARAMETERS_OF_URL = 8  # that are taken out one by one

SAMPLED = 8  # hashes of one page: its share of new ones is told in eighths, and added up over many pages
MOST_WORDS = 500  # from which on no more lines are read; what repeats shows at the beginning
MOST_CHARS = 20_000
LINE_END = [b"\n", b"\n"]  # so that no three words are of two lines
ANYTHING = b"0"  # in place of a word that tells pages apart without saying anything

Sample = tuple[int, ...]  # of 32 bits each, distinct; never empty

TO_32_BITS = np.uint64(32)
_WORD_OF_URL = re.compile(r"\w+")
_DIGIT = re.compile(rb"[0-9]")


@dataclass(frozen=True, slots=True)
class NoveltyEvidence:
    """First looks at pages, and how much of what they said was new (0 to 1 each); old ones fade."""

    looks: float = 0.0
    found: float = 0.0

    def after(self, novelty: float, *, horizon: float = HORIZON) -> "NoveltyEvidence":
        """With one more look."""
        kept = 1 - 1 / horizon
        return NoveltyEvidence(self.looks * kept + 1, self.found * kept + novelty)

    def __add__(self, other: "NoveltyEvidence") -> "NoveltyEvidence":
        return NoveltyEvidence(self.looks + other.looks, self.found + other.found)

    def share(self, *, expected: float, lean: float) -> float:
        """The share of new text, with `lean` looks' worth of what is expected anyway."""
        return (self.found + lean * expected) / (self.looks + lean)


NO_EVIDENCE = NoveltyEvidence()


@dataclass(slots=True)
class TemplateNovelty:
    """What is known of a template. Changed in place, while a batch is recorded.

    no: of the group.  held_until: the last time given to a page that is held back; None: pages are not held back.
    is_moving: pages that were found before still have to be held back, or let go.
    """

    no: int
    evidence: NoveltyEvidence = NO_EVIDENCE
    held_until: datetime | None = None
    is_moving: bool = False

    @property
    def is_held(self) -> bool:
        return self.held_until is not None

    def learn(self, novelty: float) -> None:
        self.evidence = self.evidence.after(novelty, horizon=HELD_LOOKS if self.is_held else HORIZON)

    def hold(self, at: datetime) -> None:
        """From now on its pages are held back, whatever it has brought long ago."""
        self.held_until, self.is_moving, self.evidence = at, True, NoveltyEvidence(HELD_LOOKS, 0.0)

    def let_go(self) -> None:
        self.held_until, self.is_moving = None, True


def time_after(last: datetime | None, at: datetime) -> datetime:
    """When the next page that is held back may be asked for: one an interval, whatever their number.

    last: when the page before it may be.
    """
    return min(max(last or at, at) + ASK_AGAIN_EVERY, at + LONGEST_WAIT)


def section_of(template: str) -> str:
    """The section of a template: its first folder, and whether there is a query."""
    path, mark, _ = template.partition("?")
    folders = path.split("/")[1:-1]
    return (folders[0] if folders else "") + mark


def is_barren(known: TemplateNovelty, section: NoveltyEvidence) -> bool:
    """Whether the pages of a template bring too little. section: the evidence of all its templates together.

    A trap whose URLs make ever new templates shows in its section; one barren template of a section that is not needs
    more looks of its own.
    """
    template = known.evidence
    if known.is_held:
        return template.found < FERTILE * template.looks
    if template.looks < ENOUGH_OF_TEMPLATE and section.looks < ENOUGH_OF_SECTION:
        return False
    expected = section.share(expected=1.0, lean=SECTION_LEAN)
    return template.share(expected=expected, lean=TEMPLATE_LEAN) < BARREN


@dataclass(slots=True)
class SeenHashes:
    """The last hashes that were added, at least `most` and at most twice as many, in two generations."""

    newer: set[int] = field(default_factory=set)
    older: set[int] = field(default_factory=set)
    most: int = MOST_HASHES

    def __contains__(self, number: int) -> bool:
        return number in self.newer or number in self.older

    def add(self, numbers: Iterable[int]) -> None:
        """Remember; what is met again is remembered for longer."""
        self.newer.update(numbers)
        if len(self.newer) >= self.most:
            self.newer, self.older = set(), self.newer


@dataclass(slots=True)
class NoveltyMemory:
    """What a domain's new pages have shown of late. Changed in place, while a batch is recorded.

    texts: hashes of what they said.  admitted, read: hashes of URLs, each also without any one of its parameters.
    parameters: what pages said that are one URL with an earlier one but for that parameter.
    next_time: the last time given to a page that is held back for its URL alone.  has_queries: any URL had a query.
    """

    texts: SeenHashes = field(default_factory=SeenHashes)
    admitted: SeenHashes = field(default_factory=SeenHashes)
    read: SeenHashes = field(default_factory=SeenHashes)
    parameters: dict[str, NoveltyEvidence] = field(default_factory=dict)
    next_time: datetime | None = None
    has_queries: bool = False

    def novelty_of(self, sample: Sample) -> float:
        """The share of a page's sample, 0 to 1, that no earlier page had; from then on it has been seen."""
        new = sum(number not in self.texts for number in sample)
        self.texts.add(sample)
        return new / len(sample)

    def learn_names(self, url: Url, novelty: float) -> bool:
        """Whether a page was read before under the same URL but for one parameter, which its novelty then judges."""
        alike = [(name, _hash(other)) for name, other in without_each_parameter(url)]
        known = [name for name, number in alike if number in self.read]
        self._remember(self.read, url, alike)
        for name in known:
            if name in self.parameters or len(self.parameters) < MOST_PARAMETERS:
                self.parameters[name] = self.parameters.get(name, NO_EVIDENCE).after(novelty)
        return bool(known)

    def is_another_name(self, url: Url) -> bool:
        """Whether a new URL is an earlier one but for a parameter that makes no other page; remembers the URL."""
        alike = [(name, _hash(other)) for name, other in without_each_parameter(url)]
        found = any(number in self.admitted and self.makes_no_page(name) for name, number in alike)
        self._remember(self.admitted, url, alike)
        return found

    def _remember(self, seen: SeenHashes, url: Url, alike: Sequence[tuple[str, int]]) -> None:
        """On a site without query parameters there is nothing to remember."""
        self.has_queries = self.has_queries or bool(alike)
        if self.has_queries:
            seen.add([_hash(url), *(number for _, number in alike)])

    def is_read_already(self, url: Url) -> bool:
        """Whether a new URL is one that was read but for a parameter that makes no other page."""
        return any(
            self.makes_no_page(name) and _hash(other) in self.read for name, other in without_each_parameter(url)
        )

    def makes_no_page(self, name: str) -> bool:
        """Whether URLs that differ in this parameter alone lead to what was read before."""
        evidence = self.parameters.get(name, NO_EVIDENCE)
        return evidence.looks >= ENOUGH_NAMES and evidence.found < LEAST_NEW * evidence.looks


def _hash(url: str) -> int:
    return number_of(url) >> 32


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


def has_repeats(url: Url) -> bool:
    """Whether a folder of the path comes more than MOST_REPEATS times, as where relative links lead on for ever.

    Source: the rule for pathological paths of Heritrix (Mohr, Stack, Ranitovic, Avery, Kimpton, IWAW 2004).
    """
    if url.count("/") < FEWEST_SLASHES:
        return False
    folders = Counter(folder for folder in urlsplit(url).path.split("/")[:-1] if folder and not folder.isdigit())
    return any(many > MOST_REPEATS for many in folders.values())


def without_each_parameter(url: Url) -> list[tuple[str, str]]:
    """The URL without each of its query parameters in turn, the others sorted: pairs of name and URL.

    Source of the comparison: Bar-Yossef, Keidar, Schonfeld, "Do not crawl in the DUST", WWW 2007.
    """
    if "?" not in url:
        return []
    parts = urlsplit(url)
    given = sorted(parse_qsl(parts.query, keep_blank_values=True))
    if not given or len(given) > MOST_PARAMETERS_OF_URL:
        return []
    bare = parts._replace(query="").geturl()
    found = []
    for at, (name, _) in enumerate(given):
        left = urlencode(given[:at] + given[at + 1 :])
        found.append((name, f"{bare}?{left}" if left else bare))
    return found
