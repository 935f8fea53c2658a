"""What earlier pages of a domain have said, and which query parameters make no other page. Bounded, and it forgets."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from crawler.core.http import Url
from crawler.core.novelty.evidence import NO_EVIDENCE, NoveltyEvidence
from crawler.core.novelty.sample import Sample
from crawler.core.novelty.urls import without_each_parameter
from crawler.core.page import number_of

MOST_HASHES = 8192  # of one generation: of texts those of 1,000 pages, and one or two of each URL
MOST_PARAMETERS = 256
ENOUGH_NAMES = 5  # pages that were one with another but for a parameter, before the parameter is judged
LEAST_NEW = 0.1  # of what such pages said, for the parameter to make other pages


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
