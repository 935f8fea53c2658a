"""Detection of soft errors: responses with a 2xx status, or temporary redirects, that are not a version of their page.

Examples are soft 404s, logins, block pages and truncated bodies. Detection uses evidence, not lists of words: the
domain's response for a path that cannot exist (the not-found probe), one text on many pages that had different texts
before (a shared text), a new password field, and the share of the page's own text that is missing.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from itertools import pairwise
from zlib import crc32

from msgspec import Struct
from msgspec.structs import replace

from crawler.core.change.mask import NoiseMask
from crawler.core.http.response import SoftError
from crawler.core.http.urls import PageKey, Url
from crawler.core.noise.words import split_words
from crawler.core.page.block import Block, BlockKind, BlockList

MAX_WORDS = 256  # hashes stored per text, the smallest ones (Broder, 1997)
MAX_DIFFERENT_WORDS = 4  # between two copies of one text: a name, a code, the requested address
MIN_COMMON_SHARE = 0.9  # of the words of both texts together, if that allows more than MAX_DIFFERENT_WORDS to differ
MIN_BOILERPLATE_BLOCKS = 2  # blocks of boilerplate in the Snapshot; fewer show nothing about a response
MIN_BOILERPLATE_SHARE = 0.8  # of these blocks must remain in a response that has the site's boilerplate
# Words with a digit count only if they are this share of a text's distinct words and at least this many: a short notice
# may consist of an incident number and a time.
MIN_NUMBERS_SHARE = 0.5
MIN_NUMBERS = 20
MAX_KEPT_SHARE = 0.25  # if less of a page's own text remains, it counts as replaced completely

_LAST_HASH = (1 << 32) - 1

TextSketch = frozenset[int]  # hashes of a text's words; empty for a text without words
EMPTY_SKETCH: TextSketch = frozenset()


class TextReplacement(Struct, frozen=True):
    """How much of a page's own text, without boilerplate, was replaced since its last Snapshot.

    before, after: the number of words in each version.
    kept: the share of the old text that remains, 0 to 1.  added: the share of the new text that is new, 0 to 1.
    """

    before: int
    after: int
    kept: float
    added: float

    @property
    def is_complete(self) -> bool:
        """Return whether almost nothing of the page's own text remains."""
        return self.before > 0 and self.kept < MAX_KEPT_SHARE


def are_similar(first: TextSketch, second: TextSketch, *, ignored: TextSketch = EMPTY_SKETCH) -> bool:
    """Return whether two texts are equal except for a few words. A text without words is not similar to any.

    ignored: words that do not count on either side.
    """
    if not first or not second:
        return False
    # The largest hash up to which both sketches contain all words of their texts.
    last_common_hash = min(max(sketch) if len(sketch) >= MAX_WORDS else _LAST_HASH for sketch in (first, second))
    either = {word for word in (first | second) - ignored if word <= last_common_hash}
    common = len(either & first & second)
    different = len(either) - common
    return common > 0 and different <= min(common, max(MAX_DIFFERENT_WORDS, (1 - MIN_COMMON_SHARE) * len(either)))


def sketch_blocks(blocks: Iterable[Block], *, without_numbers: bool = False) -> TextSketch:
    """Return a sketch of the words of some blocks.

    Words with a digit are mostly times and incident numbers and are left out. If they are MIN_NUMBERS or more, and
    MIN_NUMBERS_SHARE of a text's words (a price list, a timetable, results), they are kept, because otherwise all such
    pages would have the same sketch.
    without_numbers: whether to leave them out in any case.
    """
    words = [word.casefold() for block in blocks for word in split_words(block)]
    with_digits = {word for word in words if not word.isalpha() and any(map(str.isdigit, word))}
    others = {word for word in words if word not in with_digits}
    is_made_of_numbers = len(with_digits) >= max(MIN_NUMBERS, MIN_NUMBERS_SHARE * len(with_digits | others))
    keeps_numbers = is_made_of_numbers and not without_numbers
    return _keep_smallest({_hash_word(word) for word in (with_digits | others if keeps_numbers else others)})


def sketch_url(url: Url) -> TextSketch:
    """Return a sketch of the words of a URL, which the response may repeat ("/x was not found")."""
    return _keep_smallest({_hash_word(word) for word in re.findall(r"\w+|[^\w\s]", url.casefold())})


def sketch_target(key: PageKey) -> TextSketch:
    """Return a sketch of a redirect's target, which is compared like a text."""
    return frozenset({crc32(key)})


def select_own_text(page: BlockList, mask: NoiseMask) -> tuple[Block, ...]:
    """Return the text blocks of a page that are not boilerplate."""
    return tuple(block for block in _iterate_text_blocks(page, mask) if not mask.is_boilerplate(block))


def select_boilerplate(page: BlockList, mask: NoiseMask) -> tuple[Block, ...]:
    """Return the text blocks of a page that are boilerplate; the complement of `select_own_text`."""
    return tuple(block for block in _iterate_text_blocks(page, mask) if mask.is_boilerplate(block))


def keeps_boilerplate(before: BlockList, after: BlockList, mask: NoiseMask) -> bool:
    """Return whether the site's boilerplate is still on a page; False if the page had too little of it.

    A response that replaces a page rarely has the site's menus and footer.
    """
    old, new = (set(map(mask.compute_form, select_boilerplate(page, mask))) for page in (before, after))
    return len(old) >= MIN_BOILERPLATE_BLOCKS and len(old & new) >= MIN_BOILERPLATE_SHARE * len(old)


def measure_replacement(before: Sequence[Block], after: Sequence[Block]) -> TextReplacement:
    """Measure how much of a page's own blocks was replaced.

    Pairs of words are compared, because all texts in a language share single words.
    """
    old_pairs, new_pairs = _count_word_pairs(before), _count_word_pairs(after)
    common = (old_pairs & new_pairs).total()
    return TextReplacement(
        before=sum(len(split_words(block)) for block in before),
        after=sum(len(split_words(block)) for block in after),
        kept=common / old_pairs.total() if old_pairs else 1.0,
        added=1 - common / new_pairs.total() if new_pairs else 0.0,
    )


def _iterate_text_blocks(page: BlockList, mask: NoiseMask) -> Iterable[Block]:
    return (block for block in mask.volatile.apply_aliases(page) if block.kind is BlockKind.TEXT)


def _count_word_pairs(blocks: Iterable[Block]) -> Counter[tuple[str, str]]:
    return Counter(pair for block in blocks for pair in pairwise(("", *split_words(block))))


def _hash_word(word: str) -> int:
    return crc32(word.encode("utf-8", "surrogatepass"))


def _keep_smallest(hashes: set[int]) -> TextSketch:
    return frozenset(sorted(hashes)[:MAX_WORDS])


MIN_PAGES = 3  # with different texts before and the same text now, which is then attributed to the site
SHARED_WITHIN = timedelta(days=1)  # maximum time between two of these pages, until there are MIN_PAGES
# Once there are MIN_PAGES, the text is remembered for this long after the last page that had it.
MAX_TEXT_AGE = timedelta(days=30)
MAX_SHARED_TEXTS = 32  # per domain; the oldest are dropped first
MIN_WORDS_WITHOUT_SNAPSHOT = 5  # of a page without a Snapshot; shorter texts are equal by chance
MIN_WORDS_BEFORE = 20  # own words in the Snapshot; if it had fewer, their loss proves nothing
SHRUNK_SHARE = 1 / 3  # a text with less than this share of the words before is SHRUNK, otherwise REPLACED
MIN_PROBE_WAIT = timedelta(hours=1)  # between two not-found probes; doubles while the response stays the same
MAX_PROBE_WAIT = timedelta(days=30)


# How long the content of a soft error is withheld, from the first visit that found it. A visit is scheduled for the end
# of this time; content that is still there becomes the page's next version.
MAX_WITHHELD = timedelta(days=2)
# After this many visits in a row with the soft error, the content is accepted sooner. The pauses start at one hour and
# double: 5 visits take 15 hours.
VISITS_UNTIL_ACCEPTED = {SoftError.SHRUNK: 2, SoftError.REPLACED: 2, SoftError.TRUNCATED: 5, SoftError.BLANK: 5}
VISITS_UNTIL_GONE = 2  # for a soft 404, as for a 404


class SharedText(Struct, frozen=True):
    """A text, or the target of a redirect, that replaced several pages.

    previous_digests: digests of the previous texts of these pages, all different and at most MIN_PAGES.
    last_at: when a page last had this text.
    """

    sketch: TextSketch
    previous_digests: tuple[bytes, ...]
    last_at: datetime

    @property
    def is_confirmed(self) -> bool:
        """Return whether the text replaced enough pages to attribute it to the site."""
        return len(self.previous_digests) >= MIN_PAGES


class SoftErrorMemory(Struct, frozen=True):
    """What a domain's soft errors have shown so far: texts that replace its pages. Immutable and bounded.

    not_found_text: a sketch of the last answer to a not-found probe; empty for an error status such as 404.
    answered_probe_at: when that probe was sent; None if none was answered yet.
    front_page_text: a sketch of the last intact seed.  shows_front_page: whether unknown paths return its text.
    probed_at, probe_wait: when the last probe was sent, and how long no other one is sent after it.
    good_visits: the number of visits to intact pages since the answered probe, counted up to MIN_PAGES.
    replaced_groups: groups (see Target.group) with a page whose text was replaced permanently.
    """

    shared_texts: tuple[SharedText, ...] = ()
    not_found_text: TextSketch = EMPTY_SKETCH
    answered_probe_at: datetime | None = None
    front_page_text: TextSketch = EMPTY_SKETCH
    shows_front_page: bool = False
    probed_at: datetime | None = None
    probe_wait: timedelta = timedelta(0)
    good_visits: int = 0
    replaced_groups: frozenset[int] = frozenset()

    @property
    def is_proven(self) -> bool:
        """Return whether pages were intact since the probe; then its response does not replace the whole site."""
        return self.good_visits >= MIN_PAGES


NO_SOFT_ERRORS = SoftErrorMemory()


class SoftErrorSignals(Struct, frozen=True):
    """The signals in a response by which a soft error is recognized.

    own_text: a sketch of the page's own text; empty if it is similar to the Snapshot's, which proves nothing.
    ignored_words: words of the boilerplate and of the page's URL, which prove nothing.
    replacement: the replacement of the Snapshot's own text; None for a page without a Snapshot.
    snapshot_digest: the Snapshot's main digest.  is_cut: the body ends too early, and the Snapshot's did not.
    is_empty: the body has no bytes.  is_blank: the page has no text, and had some.
    has_password_field: the page has a password field, and the Snapshot had none.
    changes_often: the page probably changes within a day, so a new text is expected.
    keeps_boilerplate: the text was replaced, but the site's boilerplate was not, or only words with digits differ.
    group: see Target.group.  is_seed: the page is a seed of the domain.
    """

    own_text: TextSketch
    ignored_words: TextSketch = EMPTY_SKETCH
    replacement: TextReplacement | None = None
    snapshot_digest: bytes = b""
    is_cut: bool = False
    is_empty: bool = False
    is_blank: bool = False
    has_password_field: bool = False
    changes_often: bool = False
    keeps_boilerplate: bool = False
    group: int = 0
    is_seed: bool = False


def collect_text_signals(
    after: BlockList, mask: NoiseMask, *, url: Url, is_seed: bool, before: BlockList | None = None
) -> SoftErrorSignals:
    """Collect the signals in the text of a page. before: the blocks of its Snapshot; None without one."""
    text = select_own_text(after, mask)
    own_sketch = sketch_blocks(text, without_numbers=is_seed)
    ignored = sketch_blocks(select_boilerplate(after, mask)) | sketch_url(url)
    if before is None:
        return SoftErrorSignals(own_sketch, ignored, is_seed=is_seed)
    own_before = select_own_text(before, mask)
    replacement = measure_replacement(own_before, text)
    has_boilerplate = replacement.is_complete and (
        keeps_boilerplate(before, after, mask)
        # Otherwise the texts must be similar when all words with a digit are left out.
        or are_similar(sketch_blocks(own_before, without_numbers=True), sketch_blocks(text, without_numbers=True))
    )
    if are_similar(sketch_blocks(own_before, without_numbers=is_seed), own_sketch, ignored=ignored):
        own_sketch = EMPTY_SKETCH
    return SoftErrorSignals(own_sketch, ignored, replacement, keeps_boilerplate=has_boilerplate, is_seed=is_seed)


def recognize_soft_error(signals: SoftErrorSignals, soft_errors: SoftErrorMemory, *, now: datetime) -> SoftError | None:
    """Return the soft error that a response shows, or None if it is a version of its page."""
    replacement = signals.replacement
    if signals.is_blank:
        return SoftError.EMPTY if signals.is_empty else SoftError.BLANK
    if replacement is None:
        return _recognize_new_page(signals, soft_errors, now=now)
    if signals.is_cut and replacement.kept < 1 and replacement.added <= 1 - MIN_COMMON_SHARE:
        return SoftError.TRUNCATED
    return _recognize_fetched_page(signals, replacement, soft_errors, now=now) if replacement.is_complete else None


def _recognize_fetched_page(
    signals: SoftErrorSignals, replacement: TextReplacement, soft_errors: SoftErrorMemory, *, now: datetime
) -> SoftError | None:
    """Return the soft error of a page whose own text was replaced completely, or None.

    Without other signs, None if it is expected, the page had few words, or a recent not-found probe got another text.
    """
    if replacement.after == 0:
        return SoftError.BLANK  # only boilerplate is left
    if signals.has_password_field:
        return SoftError.LOGIN
    if are_similar(signals.own_text, soft_errors.not_found_text, ignored=signals.ignored_words):
        return SoftError.SHARED_TEXT if signals.is_seed else SoftError.SOFT_404
    if is_shared(signals, soft_errors, now=now):
        return SoftError.SHARED_TEXT
    if replacement.before < MIN_WORDS_BEFORE:
        return None
    if replacement.after < SHRUNK_SHARE * replacement.before:
        return SoftError.SHRUNK
    is_expected = signals.changes_often or signals.keeps_boilerplate or signals.group in soft_errors.replaced_groups
    # If the domain returned one text for all paths now, the recent probe would have found it.
    is_answered = soft_errors.answered_probe_at is not None and now - soft_errors.answered_probe_at < MIN_PROBE_WAIT
    return None if is_expected or is_answered else SoftError.REPLACED


def _recognize_new_page(signals: SoftErrorSignals, soft_errors: SoftErrorMemory, *, now: datetime) -> SoftError | None:
    """Return the soft error of a page without a Snapshot, or None.

    If the domain returns its front page for unknown paths, no soft 404 is reported: a page may resemble the front page.
    """
    if signals.is_seed or len(signals.own_text) < MIN_WORDS_WITHOUT_SNAPSHOT:
        return None
    text, ignored = signals.own_text, signals.ignored_words
    if not soft_errors.shows_front_page and are_similar(text, soft_errors.not_found_text, ignored=ignored):
        return SoftError.SOFT_404
    shared_text = _find_shared_text(signals, soft_errors, now=now)
    return SoftError.SHARED_TEXT if shared_text is not None and shared_text.is_confirmed else None


def is_shared(signals: SoftErrorSignals, soft_errors: SoftErrorMemory, *, now: datetime) -> bool:
    """Return whether the texts of enough pages, including this one, were recently replaced by this text."""
    shared_text = _find_shared_text(signals, soft_errors, now=now)
    return shared_text is not None and len({*shared_text.previous_digests, signals.snapshot_digest}) >= MIN_PAGES


def _find_shared_text(signals: SoftErrorSignals, soft_errors: SoftErrorMemory, *, now: datetime) -> SharedText | None:
    text, ignored = signals.own_text, signals.ignored_words
    for shared in soft_errors.shared_texts:
        is_recent = now - shared.last_at <= (MAX_TEXT_AGE if shared.is_confirmed else SHARED_WITHIN)
        if is_recent and are_similar(text, shared.sketch, ignored=ignored):
            return shared
    return None


def remember_shared_text(soft_errors: SoftErrorMemory, signals: SoftErrorSignals, *, now: datetime) -> SoftErrorMemory:
    """Return the domain's memory after one more page's own text was replaced completely."""
    if not signals.own_text or not signals.snapshot_digest:
        return soft_errors
    shared_text = _find_shared_text(signals, soft_errors, now=now)
    others = tuple(text for text in soft_errors.shared_texts if text is not shared_text)
    digests = () if shared_text is None else shared_text.previous_digests
    if signals.snapshot_digest not in digests and len(digests) < MIN_PAGES:
        digests = (*digests, signals.snapshot_digest)
    shared = SharedText(signals.own_text if shared_text is None else shared_text.sketch, digests, now)
    return replace(soft_errors, shared_texts=(*others, shared)[-MAX_SHARED_TEXTS:])


# The not-found probe: a request for a path that cannot exist


def is_probe_due(soft_errors: SoftErrorMemory, *, now: datetime, lacks_evidence: bool = False) -> bool:
    """Return whether a not-found probe may be sent to the domain.

    lacks_evidence: only a probe can show whether a page has a soft error. Then the wait is at most MIN_PROBE_WAIT.
    """
    wait = min(soft_errors.probe_wait, MIN_PROBE_WAIT) if lacks_evidence else soft_errors.probe_wait
    return soft_errors.probed_at is None or now - soft_errors.probed_at >= wait


def record_probe_sent(soft_errors: SoftErrorMemory, *, now: datetime) -> SoftErrorMemory:
    """Return the domain's memory after a not-found probe is sent. The next one waits MIN_PROBE_WAIT or more."""
    return replace(soft_errors, probed_at=now, probe_wait=max(soft_errors.probe_wait, MIN_PROBE_WAIT))


def record_probe_response(
    soft_errors: SoftErrorMemory, not_found_text: TextSketch, *, keep_good_count: bool = False
) -> SoftErrorMemory:
    """Return the domain's memory after the response to a not-found probe.

    The wait until the next probe doubles while the response is the same.
    not_found_text: a sketch of the text of the response.
    keep_good_count: whether the page that caused this probe also caused the last one. Then `good_visits` is kept if the
    response is the same; otherwise each probe would reset it, and no page could ever be confirmed gone.
    """
    is_same = not_found_text == soft_errors.not_found_text or are_similar(not_found_text, soft_errors.not_found_text)
    is_same = is_same and soft_errors.answered_probe_at is not None
    return replace(
        soft_errors,
        not_found_text=not_found_text,
        answered_probe_at=soft_errors.probed_at,
        shows_front_page=are_similar(not_found_text, soft_errors.front_page_text),
        probe_wait=min(2 * soft_errors.probe_wait, MAX_PROBE_WAIT) if is_same else MIN_PROBE_WAIT,
        good_visits=soft_errors.good_visits if is_same and keep_good_count else 0,
    )


def record_good_visit(soft_errors: SoftErrorMemory, signals: SoftErrorSignals | None) -> SoftErrorMemory:
    """Return the domain's memory after a page was found intact. signals: those in the response, if collected."""
    if signals is not None and signals.is_seed and signals.own_text:
        is_front = are_similar(soft_errors.not_found_text, signals.own_text, ignored=signals.ignored_words)
        soft_errors = replace(soft_errors, front_page_text=signals.own_text, shows_front_page=is_front)
    is_counted = soft_errors.answered_probe_at is not None and soft_errors.good_visits < MIN_PAGES
    return replace(soft_errors, good_visits=soft_errors.good_visits + 1) if is_counted else soft_errors
