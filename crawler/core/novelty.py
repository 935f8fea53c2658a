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
from crawler.core.page.fingerprint import compute_digest, hash_shingles, hash_text, split_text_words
from crawler.core.page.snapshot import Parsed, parse_body

HORIZON = 100.0  # looks that are remembered, about
DEFERRED_VISITS = 5.0  # remembered of a template whose pages are held back, so that two new pages let it go
TEMPLATE_SHRINKAGE = 5.0  # looks' worth of weight that a template's section has in it
SECTION_SHRINKAGE = 3.0  # and that the hope has which any section begins with: all is new
BARREN_SHARE = 0.1  # share of new text in first looks below which a template's pages are held back,
FERTILE_SHARE = 0.3  # and above which they are let go
MIN_TEMPLATE_VISITS = 30  # looks, or
MIN_SECTION_VISITS = 50
RETRY_INTERVAL = timedelta(days=1)  # one page of each template that is held back
MAX_WAIT = timedelta(days=1000)  # of one page

MAX_HASHES = 8192  # of one generation: of texts those of 1,000 pages, and one or two of each URL
MAX_PARAMETERS = 256
MIN_PARAMETER_VISITS = 5  # pages that were one with another but for a parameter, before the parameter is judged
MIN_NEW_SHARE = 0.1  # of what such pages said, for the parameter to make other pages

MAX_REPEATS = 2  # of one folder in a path; real sites have /2026/11/11/, and no folder three times
MIN_SLASHES = len("http://") - len("http:") + 1 + MAX_REPEATS + 1  # of a URL with so many folders
MAX_URL_PARAMETERS = 8  # that are taken out one by one

SAMPLE_SIZE = 8  # hashes of one page: its share of new ones is told in eighths, and added up over many pages
MAX_WORDS = 500  # from which on no more lines are read; what repeats shows at the beginning
MAX_CHARS = 20_000
LINE_END = [b"\n", b"\n"]  # so that no three words are of two lines
WILDCARD_WORD = b"0"  # in place of a word that tells pages apart without saying anything

Sample = tuple[int, ...]  # of 32 bits each, distinct; never empty

TO_32_BITS = np.uint64(32)
_WORD_OF_URL = re.compile(r"\w+")
_DIGIT = re.compile(rb"[0-9]")


@dataclass(frozen=True, slots=True)
class NoveltyEvidence:
    """First looks at pages, and how much of what they said was new (0 to 1 each); old ones fade."""

    visits: float = 0.0
    novelty_sum: float = 0.0

    def add_visit(self, novelty: float, *, horizon: float = HORIZON) -> "NoveltyEvidence":
        """With one more look."""
        decay = 1 - 1 / horizon
        return NoveltyEvidence(self.visits * decay + 1, self.novelty_sum * decay + novelty)

    def __add__(self, other: "NoveltyEvidence") -> "NoveltyEvidence":
        return NoveltyEvidence(self.visits + other.visits, self.novelty_sum + other.novelty_sum)

    def compute_share(self, *, expected: float, shrinkage_visits: float) -> float:
        """The share of new text, with `lean` looks' worth of what is expected anyway."""
        return (self.novelty_sum + shrinkage_visits * expected) / (self.visits + shrinkage_visits)


NO_EVIDENCE = NoveltyEvidence()


@dataclass(slots=True)
class TemplateNovelty:
    """What is known of a template. Changed in place, while a batch is recorded.

    no: of the group.  deferred_until: the last time given to a page that is held back; None: pages are not held back.
    is_moving: pages that were found before still have to be held back, or let go.
    """

    no: int
    evidence: NoveltyEvidence = NO_EVIDENCE
    deferred_until: datetime | None = None
    is_moving: bool = False

    @property
    def is_deferred(self) -> bool:
        return self.deferred_until is not None

    def learn(self, novelty: float) -> None:
        self.evidence = self.evidence.add_visit(novelty, horizon=DEFERRED_VISITS if self.is_deferred else HORIZON)

    def defer(self, at: datetime) -> None:
        """From now on its pages are held back, whatever it has brought long ago."""
        self.deferred_until, self.is_moving, self.evidence = at, True, NoveltyEvidence(DEFERRED_VISITS, 0.0)

    def resume(self) -> None:
        self.deferred_until, self.is_moving = None, True


def compute_next_time(last: datetime | None, at: datetime) -> datetime:
    """When the next page that is held back may be asked for: one an interval, whatever their number.

    last: when the page before it may be.
    """
    return min(max(last or at, at) + RETRY_INTERVAL, at + MAX_WAIT)


def get_section(template: str) -> str:
    """The section of a template: its first folder, and whether there is a query."""
    path, mark, _ = template.partition("?")
    folders = path.split("/")[1:-1]
    return (folders[0] if folders else "") + mark


def is_barren(template: TemplateNovelty, section: NoveltyEvidence) -> bool:
    """Whether the pages of a template bring too little. section: the evidence of all its templates together.

    A trap whose URLs make ever new templates shows in its section; one barren template of a section that is not needs
    more looks of its own.
    """
    evidence = template.evidence
    if template.is_deferred:
        return evidence.novelty_sum < FERTILE_SHARE * evidence.visits
    if evidence.visits < MIN_TEMPLATE_VISITS and section.visits < MIN_SECTION_VISITS:
        return False
    expected = section.compute_share(expected=1.0, shrinkage_visits=SECTION_SHRINKAGE)
    return evidence.compute_share(expected=expected, shrinkage_visits=TEMPLATE_SHRINKAGE) < BARREN_SHARE


@dataclass(slots=True)
class SeenHashes:
    """The last hashes that were added, at least `most` and at most twice as many, in two generations."""

    newer: set[int] = field(default_factory=set)
    older: set[int] = field(default_factory=set)
    max_hashes: int = MAX_HASHES

    def __contains__(self, number: int) -> bool:
        return number in self.newer or number in self.older

    def add(self, numbers: Iterable[int]) -> None:
        """Remember; what is met again is remembered for longer."""
        self.newer.update(numbers)
        if len(self.newer) >= self.max_hashes:
            self.newer, self.older = set(), self.newer


@dataclass(slots=True)
class NoveltyMemory:
    """What a domain's new pages have shown of late. Changed in place, while a batch is recorded.

    texts: hashes of what they said.  admitted_urls, read_urls: hashes of URLs, each also without any one of its
    parameters.  parameters: what pages said that are one URL with an earlier one but for that parameter.  next_time:
    the last time given to a page that is held back for its URL alone.  has_queries: any URL had a query.
    """

    texts: SeenHashes = field(default_factory=SeenHashes)
    admitted_urls: SeenHashes = field(default_factory=SeenHashes)
    read_urls: SeenHashes = field(default_factory=SeenHashes)
    parameters: dict[str, NoveltyEvidence] = field(default_factory=dict)
    next_time: datetime | None = None
    has_queries: bool = False

    def measure_novelty(self, sample: Sample) -> float:
        """The share of a page's sample, 0 to 1, that no earlier page had; from then on it has been seen."""
        new_hashes = sum(number not in self.texts for number in sample)
        self.texts.add(sample)
        return new_hashes / len(sample)

    def learn_parameters(self, url: Url, novelty: float) -> bool:
        """Whether a page was read before under the same URL but for one parameter, which its novelty then judges."""
        variants = [(name, _hash_url(other)) for name, other in drop_each_parameter(url)]
        known_names = [name for name, number in variants if number in self.read_urls]
        self._remember_url(self.read_urls, url, variants)
        for name in known_names:
            if name in self.parameters or len(self.parameters) < MAX_PARAMETERS:
                self.parameters[name] = self.parameters.get(name, NO_EVIDENCE).add_visit(novelty)
        return bool(known_names)

    def is_duplicate_url(self, url: Url) -> bool:
        """Whether a new URL is an earlier one but for a parameter that makes no other page; remembers the URL."""
        variants = [(name, _hash_url(other)) for name, other in drop_each_parameter(url)]
        is_duplicate = any(
            number in self.admitted_urls and self.is_irrelevant_parameter(name) for name, number in variants
        )
        self._remember_url(self.admitted_urls, url, variants)
        return is_duplicate

    def _remember_url(self, seen: SeenHashes, url: Url, variants: Sequence[tuple[str, int]]) -> None:
        """On a site without query parameters there is nothing to remember."""
        self.has_queries = self.has_queries or bool(variants)
        if self.has_queries:
            seen.add([_hash_url(url), *(number for _, number in variants)])

    def was_read_before(self, url: Url) -> bool:
        """Whether a new URL is one that was read but for a parameter that makes no other page."""
        return any(
            self.is_irrelevant_parameter(name) and _hash_url(other) in self.read_urls
            for name, other in drop_each_parameter(url)
        )

    def is_irrelevant_parameter(self, name: str) -> bool:
        """Whether URLs that differ in this parameter alone lead to what was read before."""
        evidence = self.parameters.get(name, NO_EVIDENCE)
        return evidence.visits >= MIN_PARAMETER_VISITS and evidence.novelty_sum < MIN_NEW_SHARE * evidence.visits


def _hash_url(url: str) -> int:
    return hash_text(url) >> 32


def sample_text(content: PageContent, body: bytes, *, url: Url) -> Sample:
    """The smallest hashes of the text's words in threes, line by line; of the bytes, where there is no text.

    So the same lines in another order are nothing new. Words with a digit, and the words of the page's own URL, count
    as one word: a calendar names another day on each page, and "/x was not found" another URL.
    """
    echoed = {word.encode("utf-8", "surrogatepass") for word in _WORD_OF_URL.findall(url.lower())}
    words = list(LINE_END)
    for line in content.main[:MAX_CHARS].split("\n"):
        words += [
            WILDCARD_WORD if word in echoed or (not word.isalpha() and _DIGIT.search(word)) else word
            for word in split_text_words(line)
        ]
        words += LINE_END
        if len(words) >= MAX_WORDS:
            break
    if len(words) == 2 * len(LINE_END):
        return (int.from_bytes(compute_digest(body)[:4], "big"),)
    hashes = np.unique(hash_shingles(words) >> TO_32_BITS)
    return tuple(hashes[:SAMPLE_SIZE].tolist())


def parse_with_sample(body: bytes, *, url: Url, **options: Any) -> Parsed:
    """Parse a body and take its sample, in one call for the process that reads it. how: what else `parse` is given."""
    parsed = parse_body(body, url=url, **options)
    return replace(parsed, sample=sample_text(parsed.content, body, url=url))


def has_repeated_folders(url: Url) -> bool:
    """Whether a folder of the path comes more than MAX_REPEATS times, as where relative links lead on for ever.

    Source: the rule for pathological paths of Heritrix (Mohr, Stack, Ranitovic, Avery, Kimpton, IWAW 2004).
    """
    if url.count("/") < MIN_SLASHES:
        return False
    folders = Counter(folder for folder in urlsplit(url).path.split("/")[:-1] if folder and not folder.isdigit())
    return any(count > MAX_REPEATS for count in folders.values())


def drop_each_parameter(url: Url) -> list[tuple[str, str]]:
    """The URL without each of its query parameters in turn, the others sorted: pairs of name and URL.

    Source of the comparison: Bar-Yossef, Keidar, Schonfeld, "Do not crawl in the DUST", WWW 2007.
    """
    if "?" not in url:
        return []
    parts = urlsplit(url)
    parameters = sorted(parse_qsl(parts.query, keep_blank_values=True))
    if not parameters or len(parameters) > MAX_URL_PARAMETERS:
        return []
    bare = parts._replace(query="").geturl()
    variants = []
    for at, (name, _) in enumerate(parameters):
        query = urlencode(parameters[:at] + parameters[at + 1 :])
        variants.append((name, f"{bare}?{query}" if query else bare))
    return variants
