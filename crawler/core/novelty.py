"""Novelty: whether new pages of a URL template still have new text, or the template is a crawler trap.

A template, such as /blog/#/*, stands for all URLs of the same form (`derive_template`). `NoveltyMemory` measures which
share of the hashes in a page's sample (core/page/sample.py) is new, and learns which query parameters do not change the
page. `is_unproductive` decides whether a template's pages contain hardly anything new. Of the other packages of core,
this module uses core/http and core/page.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from urllib.parse import parse_qsl, urlencode, urlsplit

from msgspec import Struct, field

from crawler.core.http.urls import Url
from crawler.core.page.fingerprint import hash_text
from crawler.core.page.sample import Sample

HORIZON = 100.0  # number of further visits after which a visit counts 37%
DEFERRED_VISITS = 5.0  # the same for a deferred template, so that two pages with new text resume it
TEMPLATE_SHRINKAGE = 5.0  # a template's share of new text includes this many visits with its section's (`get_section`)
SECTION_SHRINKAGE = 3.0  # a section's share includes this many visits with only new text
BARREN_SHARE = 0.1  # a template's pages are deferred below this share of new text in first visits
FERTILE_SHARE = 0.3  # deferred pages are resumed above this share
# A template can be deferred after this many first visits of its own pages, or this many in its section.
MIN_TEMPLATE_VISITS = 30
MIN_SECTION_VISITS = 50
RETRY_INTERVAL = timedelta(days=1)  # between two pages of a deferred template
MAX_WAIT = timedelta(days=1000)  # longest time for which a page is deferred

MAX_HASHES = 8192  # per generation (see SeenHashes): of the texts of 1,000 pages, or of some thousand URLs
MAX_PARAMETERS = 256  # per domain
MIN_PARAMETER_VISITS = 5  # pages that differ from another only in a parameter, before the parameter can be irrelevant
MIN_NEW_SHARE = 0.1  # if less of the text of such pages is new, the parameter is irrelevant

MAX_REPEATS = 2  # of one folder in a path; real sites hardly have a folder three times
MIN_SLASHES = 2 + 1 + MAX_REPEATS + 1  # "//", one after the host, and one after each of MAX_REPEATS + 1 folders
MAX_URL_PARAMETERS = 8  # a URL with more is not compared with others


class NoveltyEvidence(Struct, frozen=True):
    """First visits of pages, and the sum of their shares of new text (0 to 1 each). Older visits decay."""

    visits: float = 0.0
    novelty_sum: float = 0.0

    def add_visit(self, novelty: float, *, horizon: float = HORIZON) -> "NoveltyEvidence":
        """Return the evidence with one more visit. novelty: its share of new text."""
        decay = 1 - 1 / horizon
        return NoveltyEvidence(self.visits * decay + 1, self.novelty_sum * decay + novelty)

    def __add__(self, other: "NoveltyEvidence") -> "NoveltyEvidence":
        return NoveltyEvidence(self.visits + other.visits, self.novelty_sum + other.novelty_sum)

    def compute_share(self, *, expected: float, shrinkage_visits: float) -> float:
        """Return the share of new text, with the expected share counted as that of shrinkage_visits visits."""
        return (self.novelty_sum + shrinkage_visits * expected) / (self.visits + shrinkage_visits)


NO_EVIDENCE = NoveltyEvidence()


class TemplateNovelty(Struct):
    """The novelty of a template. Mutable while a batch is recorded.

    no: the number of the template.
    deferred_until: the latest time assigned to one of its deferred pages; None if the template is not deferred.
    is_moving: whether pages of this template must still be deferred or resumed.
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
        """Defer the template's pages from `at` on, and discard older evidence."""
        self.deferred_until, self.is_moving, self.evidence = at, True, NoveltyEvidence(DEFERRED_VISITS, 0.0)

    def resume(self) -> None:
        self.deferred_until, self.is_moving = None, True


def compute_next_time(last: datetime | None, at: datetime) -> datetime:
    """Return when the next deferred page may be requested: one page per RETRY_INTERVAL, within MAX_WAIT.

    last: the time assigned to the previous page, or None.
    """
    return min(max(last or at, at) + RETRY_INTERVAL, at + MAX_WAIT)


def get_section(template: str) -> str:
    """Return the section of a template: its first folder, and a question mark if it has a query."""
    path, mark, _ = template.partition("?")
    folders = path.split("/")[1:-1]
    return (folders[0] if folders else "") + mark


def is_unproductive(template: TemplateNovelty, section: NoveltyEvidence) -> bool:
    """Return whether a template's pages contain too little new text.

    A trap whose URLs keep creating templates is detected by its section. A single template without new text needs more
    visits if its section has new text.
    section: the evidence of all templates in the template's section (`get_section`).
    """
    evidence = template.evidence
    if template.is_deferred:
        return evidence.novelty_sum < FERTILE_SHARE * evidence.visits
    if evidence.visits < MIN_TEMPLATE_VISITS and section.visits < MIN_SECTION_VISITS:
        return False
    expected = section.compute_share(expected=1.0, shrinkage_visits=SECTION_SHRINKAGE)
    return evidence.compute_share(expected=expected, shrinkage_visits=TEMPLATE_SHRINKAGE) < BARREN_SHARE


class SeenHashes(Struct):
    """The most recent hashes, about `max_hashes` to twice as many, in two generations."""

    newer: set[int] = field(default_factory=set)
    older: set[int] = field(default_factory=set)
    max_hashes: int = MAX_HASHES

    def __contains__(self, number: int) -> bool:
        return number in self.newer or number in self.older

    def add(self, numbers: Iterable[int]) -> None:
        """Remember hashes; repeated ones are kept longer."""
        self.newer.update(numbers)
        if len(self.newer) >= self.max_hashes:
            self.newer, self.older = set(), self.newer


class NoveltyMemory(Struct):
    """What a domain's recent new pages have shown. Mutable while a batch is recorded.

    texts: hashes of their texts.
    queued_urls, fetched_urls: hashes of the URLs, and of each URL with one of its parameters left out.
    parameters: the novelty of pages whose URL differs from an earlier one only in that parameter.
    next_time: the time that was last assigned to a page deferred because of its URL alone.
    has_queries: whether any URL had a query.
    """

    texts: SeenHashes = field(default_factory=SeenHashes)
    queued_urls: SeenHashes = field(default_factory=SeenHashes)
    fetched_urls: SeenHashes = field(default_factory=SeenHashes)
    parameters: dict[str, NoveltyEvidence] = field(default_factory=dict)
    next_time: datetime | None = None
    has_queries: bool = False

    def measure_novelty(self, sample: Sample) -> float:
        """Return the share of a page's sample, 0 to 1, that no earlier page had, and remember the sample."""
        new_hashes = sum(number not in self.texts for number in sample)
        self.texts.add(sample)
        return new_hashes / len(sample)

    def learn_parameters(self, url: Url, novelty: float) -> bool:
        """Return whether a fetched URL differs from an earlier one only in a parameter, and learn about that parameter.

        novelty: the share of new text of the page.
        """
        variants = [(name, _hash_url(other)) for name, other in drop_each_parameter(url)]
        known_names = [name for name, number in variants if number in self.fetched_urls]
        self._remember_url(self.fetched_urls, url, variants)
        for name in known_names:
            if name in self.parameters or len(self.parameters) < MAX_PARAMETERS:
                self.parameters[name] = self.parameters.get(name, NO_EVIDENCE).add_visit(novelty)
        return bool(known_names)

    def is_duplicate_url(self, url: Url) -> bool:
        """Return whether a new URL differs from an earlier one only in an irrelevant parameter, and remember it."""
        variants = [(name, _hash_url(other)) for name, other in drop_each_parameter(url)]
        is_duplicate = any(
            number in self.queued_urls and self.is_irrelevant_parameter(name) for name, number in variants
        )
        self._remember_url(self.queued_urls, url, variants)
        return is_duplicate

    def _remember_url(self, seen: SeenHashes, url: Url, variants: Sequence[tuple[str, int]]) -> None:
        """Remember a URL and its variants, once the site has query parameters. variants: names and hashes."""
        self.has_queries = self.has_queries or bool(variants)
        if self.has_queries:
            seen.add([_hash_url(url), *(number for _, number in variants)])

    def was_read_before(self, url: Url) -> bool:
        """Return whether a new URL differs from a fetched one only in an irrelevant parameter."""
        return any(
            self.is_irrelevant_parameter(name) and _hash_url(other) in self.fetched_urls
            for name, other in drop_each_parameter(url)
        )

    def is_irrelevant_parameter(self, name: str) -> bool:
        """Return whether URLs that differ only in this parameter lead to known text."""
        evidence = self.parameters.get(name, NO_EVIDENCE)
        return evidence.visits >= MIN_PARAMETER_VISITS and evidence.novelty_sum < MIN_NEW_SHARE * evidence.visits


def _hash_url(url: str) -> int:
    return hash_text(url) >> 32


def has_repeated_folders(url: Url) -> bool:
    """Return whether a folder, not a number, occurs more than MAX_REPEATS times, as with endless relative links.

    Source: the rule for pathological paths of Heritrix (Mohr, Stack, Ranitovic, Avery, Kimpton, IWAW 2004).
    """
    if url.count("/") < MIN_SLASHES:
        return False
    folders = Counter(folder for folder in urlsplit(url).path.split("/")[:-1] if folder and not folder.isdigit())
    return any(count > MAX_REPEATS for count in folders.values())


def drop_each_parameter(url: Url) -> list[tuple[str, str]]:
    """Return, for each query parameter of a URL, its name and the URL without it, with the other parameters sorted.

    The list is empty for a URL with more than MAX_URL_PARAMETERS parameters.
    Source of the comparison: Bar-Yossef, Keidar, Schonfeld, "Do not crawl in the DUST", WWW 2007.
    """
    if "?" not in url:
        return []
    parts = urlsplit(url)
    parameters = sorted(parse_qsl(parts.query, keep_blank_values=True))
    if not parameters or len(parameters) > MAX_URL_PARAMETERS:
        return []
    others = (urlencode(parameters[:at] + parameters[at + 1 :]) for at in range(len(parameters)))
    return [(name, parts._replace(query=query).geturl()) for (name, _), query in zip(parameters, others, strict=True)]
