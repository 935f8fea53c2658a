"""Recognise soft errors: answers with status 200 that are no version of their page (soft 404, login, block, truncated).

Evidence decides, never a list of words: what the domain answers for a path that cannot exist (the not-found probe),
one text on many pages that said different things before (a shared text), a password field that is new, and how much
of the page's own text is gone.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from itertools import pairwise
from zlib import crc32

from crawler.core.change.mask import NoiseMask
from crawler.core.http.urls import PageKey, Url
from crawler.core.noise.words import split_words
from crawler.core.page.outline import Block, BlockKind, BlockList

MAX_WORDS = 256  # hashes kept of one text, the smallest ones (Broder, 1997)
MAX_DIFFERENT_WORDS = 4  # by which two copies of one text may differ: a name, a code, the address that was asked for
MIN_COMMON_SHARE = 0.9  # of the words of both texts together, where that allows more than MAX_DIFFERENT_WORDS to differ
MIN_BOILERPLATE_BLOCKS = 2  # blocks of boilerplate, to tell a page of the site by them,
MIN_BOILERPLATE_SHARE = 0.8  # and the share of them that is still there
MIN_NUMBERS_SHARE = 0.5  # of a text's words, above which it is made of numbers and codes, and they count,
MIN_NUMBERS = 20  # if it has so many: a short notice may consist of an incident's number and its time
MAX_KEPT_SHARE = 0.25  # of a page's own text, where all of it counts as gone

_LAST_HASH = (1 << 32) - 1

TextSketch = frozenset[int]  # hashes of the words of a text; empty for a text without words
EMPTY_SKETCH: TextSketch = frozenset()


@dataclass(frozen=True, slots=True)
class TextReplacement:
    """How much of a page's own text, without boilerplate, was replaced since its last Snapshot.

    before, after: number of words then and now.  kept: share of the text before that is still there, 0 to 1.
    added: share of the text now that is new, 0 to 1.
    """

    before: int
    after: int
    kept: float
    added: float

    @property
    def is_complete(self) -> bool:
        """Whether next to nothing of the page's own text is left."""
        return self.before > 0 and self.kept < MAX_KEPT_SHARE


def are_similar(first: TextSketch, second: TextSketch, *, ignored: TextSketch = EMPTY_SKETCH) -> bool:
    """Whether two texts are one, but for a few words. A text without words is like none.

    ignored: words that count on neither side.
    """
    if not first or not second:
        return False
    last_common_hash = min(_get_last_hash(first), _get_last_hash(second))
    either = {word for word in (first | second) - ignored if word <= last_common_hash}
    common = len(either & first & second)
    different = len(either) - common
    return common > 0 and different <= min(common, max(MAX_DIFFERENT_WORDS, (1 - MIN_COMMON_SHARE) * len(either)))


def _get_last_hash(sketch: TextSketch) -> int:
    """The largest hash up to which a sketch holds all the words of its text."""
    return max(sketch) if len(sketch) >= MAX_WORDS else _LAST_HASH


def sketch_blocks(blocks: Iterable[Block], *, is_seed: bool = False) -> TextSketch:
    """Return the words of some blocks as a sketch.

    Words with a digit are left out, as they are times and incident numbers. Where a text is made of them (a price list,
    a timetable, results) they are kept: without them all such pages would be one text. Not so of a seed: its page is
    compared with what stands in place of others, and may list their numbers.
    """
    words = [word.casefold() for block in blocks for word in split_words(block)]
    with_digits = {word for word in words if not word.isalpha() and any(map(str.isdigit, word))}
    others = {word for word in words if word not in with_digits}
    is_made_of_numbers = len(with_digits) >= max(MIN_NUMBERS, MIN_NUMBERS_SHARE * len(with_digits | others))
    keeps_numbers = is_made_of_numbers and not is_seed
    return _keep_smallest({_hash_word(word) for word in (with_digits | others if keeps_numbers else others)})


def sketch_url(url: Url) -> TextSketch:
    """The words of a URL, which its page may repeat ("/x was not found")."""
    return _keep_smallest({_hash_word(word) for word in re.findall(r"\w+|[^\w\s]", url.casefold())})


def sketch_target(key: PageKey) -> TextSketch:
    """The target of a redirect as a sketch, compared in place of a text."""
    return frozenset({crc32(key)})


def select_own_text(page: BlockList, mask: NoiseMask) -> tuple[Block, ...]:
    """The text blocks of a page that are its own, not the site's boilerplate."""
    return tuple(block for block in _iterate_text_blocks(page, mask) if not mask.is_boilerplate(block))


def select_boilerplate(page: BlockList, mask: NoiseMask) -> tuple[Block, ...]:
    """The text blocks of a page that belong to the site's boilerplate; the complement of `own_text`."""
    return tuple(block for block in _iterate_text_blocks(page, mask) if mask.is_boilerplate(block))


def keeps_boilerplate(before: BlockList, after: BlockList, mask: NoiseMask) -> bool:
    """Whether the site's boilerplate is on a page as it was; False where too little of it is known.

    Who answers in place of a page seldom has its menus and its footer.
    """
    forms_before, forms_after = (
        {mask.compute_form(block) for block in select_boilerplate(page, mask)} for page in (before, after)
    )
    return len(forms_before) >= MIN_BOILERPLATE_BLOCKS and len(
        forms_before & forms_after
    ) >= MIN_BOILERPLATE_SHARE * len(forms_before)


def measure_replacement(before: Sequence[Block], after: Sequence[Block]) -> TextReplacement:
    """How much of a page's own blocks was replaced.

    Pairs of words are compared, since single words are common to all texts of a language.
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


MIN_PAGES = 3  # pages that said different things before and say one thing now: then it is the site's doing
SHARED_WITHIN = timedelta(days=1)  # between two pages that turn into one text, until ENOUGH_PAGES have
# for which a text of ENOUGH_PAGES is known, counted from the last page that showed it
MAX_TEXT_AGE = timedelta(days=30)
MAX_SHARED_TEXTS = 32  # of one domain; the oldest are forgotten first
MIN_WORDS_WITHOUT_SNAPSHOT = 5  # of a page without a Snapshot; a shorter text equals another by chance
MIN_WORDS_BEFORE = 20  # own words in the Snapshot, below which their loss proves nothing
SHRUNK_SHARE = 1 / 3  # of the words of before; less is SHRUNK rather than REPLACED
MIN_PROBE_WAIT = timedelta(hours=1)  # from one not-found probe to the next; doubles while the answer stays the same
MAX_PROBE_WAIT = timedelta(days=30)


class SoftError(StrEnum):
    """Kind of soft error: why an answer is no version of its page."""

    SOFT_404 = "soft_404"  # what the domain answers for a path that cannot exist
    LOGIN = "login"  # a form for a password, in place of what the page said
    SHARED_TEXT = "shared_text"  # one text, or one redirect, on many pages: maintenance, consent, block, captcha, login
    TRUNCATED = "truncated"
    EMPTY = "empty_body"  # not a byte
    BLANK = "no_text"
    SHRUNK = "shrunk"  # little text is left, and that is new; perhaps a block page that no other sign has shown yet
    REPLACED = "replaced"  # another text of about the same length, without the site's frame around it


# From the first look that met a soft error on, the new content is withheld no longer: the next look that shows it is
# the page's next version. Follow-up looks are scheduled so that one falls on this instant.
MAX_WITHHELD = timedelta(days=2)
# After so many looks in a row the content is accepted sooner. The pauses double from an hour on: 5 looks take 15 hours.
VISITS_UNTIL_ACCEPTED = {
    SoftError.SHRUNK: 2,
    SoftError.REPLACED: 2,
    SoftError.TRUNCATED: 5,
    SoftError.BLANK: 5,
}
VISITS_UNTIL_GONE = 2  # of a soft 404, as of a 404


@dataclass(frozen=True, slots=True)
class SharedText:
    """A text, or the target of a redirect, that pages turned into.

    previous_digests: digests of what each page said before.
    """

    sketch: TextSketch
    previous_digests: tuple[bytes, ...]
    last_at: datetime

    @property
    def is_confirmed(self) -> bool:
        """Whether enough pages turned into the text to call it the site's doing."""
        return len(self.previous_digests) >= MIN_PAGES


@dataclass(frozen=True, slots=True)
class SoftErrorMemory:
    """A domain's memory of soft errors: texts shown in place of its pages; immutable, and bounded.

    not_found_text: text of the last answer to a not-found probe; empty where its status said 404.
    answered_probe_at: when the probe was sent that brought this answer; None where there was none yet.
    front_page_text: text of a seed.  shows_front_page: unknown paths are answered with the front page.
    probed_at, probe_wait: when the last probe was sent, and how long no other one is.
    good_visits: looks since the probe that brought other pages as they are, counted up to ENOUGH_PAGES.
    replaced_groups: groups of pages, one of which had its text replaced for good.
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
        """Whether other pages were well since the probe: then its answer is no block page that hides the whole site."""
        return self.good_visits >= MIN_PAGES


NO_SOFT_ERRORS = SoftErrorMemory()


@dataclass(frozen=True, slots=True)
class SoftErrorSignals:
    """The signs in an answer by which a soft error is recognised.

    own_text: the page's own text; nothing where the Snapshot had the same words, which then prove nothing.
    ignored_words: words that prove nothing, of the boilerplate and of the page's URL.
    replacement: of the Snapshot's own text; None for a page without a Snapshot.  snapshot_digest: the Snapshot's main
    digest.  is_cut: the body ends too early, and the Snapshot's did not.  is_empty: the body has not a byte. is_blank:
    there is no text where there was some.  has_password_field: there is one, and the Snapshot had none. changes_often:
    the page changes so often that a new text is no surprise.  keeps_boilerplate: the site's boilerplate is around its
    text as it was, or nothing but numbers differs.  group: of the page.  is_seed: the page is a seed of the domain.
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
    """The signals in the text of a page. before: the blocks of its Snapshot; None where it has none."""
    text = select_own_text(after, mask)
    own_sketch = sketch_blocks(text, is_seed=is_seed)
    ignored = sketch_blocks(select_boilerplate(after, mask)) | sketch_url(url)
    if before is None:
        return SoftErrorSignals(own_sketch, ignored, is_seed=is_seed)
    own_before = select_own_text(before, mask)
    replacement = measure_replacement(own_before, text)
    has_boilerplate = replacement.is_complete and (
        keeps_boilerplate(before, after, mask)
        # Else the two are one, but for a few words, when all words with a digit are left out.
        or are_similar(sketch_blocks(own_before, is_seed=True), sketch_blocks(text, is_seed=True))
    )
    if are_similar(sketch_blocks(own_before, is_seed=is_seed), own_sketch, ignored=ignored):
        own_sketch = EMPTY_SKETCH
    return SoftErrorSignals(own_sketch, ignored, replacement, keeps_boilerplate=has_boilerplate, is_seed=is_seed)


def recognize_soft_error(signals: SoftErrorSignals, soft_errors: SoftErrorMemory, *, now: datetime) -> SoftError | None:
    """The soft error that an answer shows, or None where the answer is a version of its page."""
    replacement = signals.replacement
    if signals.is_blank:
        return SoftError.EMPTY if signals.is_empty else SoftError.BLANK
    if replacement is None:
        return _recognize_first_visit(signals, soft_errors, now=now)
    if signals.is_cut and replacement.kept < 1 and replacement.added <= 1 - MIN_COMMON_SHARE:
        return SoftError.TRUNCATED
    return _recognize_fetched_page(signals, replacement, soft_errors, now=now) if replacement.is_complete else None


def _recognize_fetched_page(
    signals: SoftErrorSignals, replacement: TextReplacement, soft_errors: SoftErrorMemory, *, now: datetime
) -> SoftError | None:
    """Return the soft error of a page whose own text is gone altogether, or None.

    That all of a text is another is no evidence by itself, once a not-found probe has shown that nothing stands before
    the whole domain.
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
    # The answer to a probe that was sent lately says what the domain shows now.
    is_answered = soft_errors.answered_probe_at is not None and now - soft_errors.answered_probe_at < MIN_PROBE_WAIT
    return None if is_expected or is_answered else SoftError.REPLACED


def _recognize_first_visit(
    signals: SoftErrorSignals, soft_errors: SoftErrorMemory, *, now: datetime
) -> SoftError | None:
    """The soft error shown by a page without a Snapshot, or None.

    If the domain answers unknown paths with its front page, no soft 404 is reported, since any page may look like it.
    """
    if signals.is_seed or len(signals.own_text) < MIN_WORDS_WITHOUT_SNAPSHOT:
        return None
    if not soft_errors.shows_front_page and are_similar(
        signals.own_text, soft_errors.not_found_text, ignored=signals.ignored_words
    ):
        return SoftError.SOFT_404
    shared_text = _find_shared_text(signals, soft_errors, now=now)
    return SoftError.SHARED_TEXT if shared_text is not None and shared_text.is_confirmed else None


def is_shared(signals: SoftErrorSignals, soft_errors: SoftErrorMemory, *, now: datetime) -> bool:
    """Whether enough pages, this one among them, have turned into the page's text lately."""
    shared_text = _find_shared_text(signals, soft_errors, now=now)
    return shared_text is not None and len({*shared_text.previous_digests, signals.snapshot_digest}) >= MIN_PAGES


def _find_shared_text(signals: SoftErrorSignals, soft_errors: SoftErrorMemory, *, now: datetime) -> SharedText | None:
    shared_texts = soft_errors.shared_texts
    shared = (
        text for text in shared_texts if now - text.last_at <= (MAX_TEXT_AGE if text.is_confirmed else SHARED_WITHIN)
    )
    return next(
        (text for text in shared if are_similar(signals.own_text, text.sketch, ignored=signals.ignored_words)), None
    )


def remember_shared_text(soft_errors: SoftErrorMemory, signals: SoftErrorSignals, *, now: datetime) -> SoftErrorMemory:
    """The domain's memory after the own text of one more page was replaced altogether."""
    if not signals.own_text or not signals.snapshot_digest:
        return soft_errors
    shared_text = _find_shared_text(signals, soft_errors, now=now)
    others = tuple(text for text in soft_errors.shared_texts if text is not shared_text)
    digests = () if shared_text is None else shared_text.previous_digests
    if signals.snapshot_digest not in digests and len(digests) < MIN_PAGES:
        digests = (*digests, signals.snapshot_digest)
    shared = SharedText(signals.own_text if shared_text is None else shared_text.sketch, digests, now)
    return replace(soft_errors, shared_texts=(*others, shared)[-MAX_SHARED_TEXTS:])


# The not-found probe: what the domain answers for a path that cannot exist


def is_probe_due(soft_errors: SoftErrorMemory, *, now: datetime, lacks_evidence: bool = False) -> bool:
    """Return whether the domain may be sent a not-found probe.

    lacks_evidence: nothing but a probe can tell whether a page shows a soft error; then the wait is the shortest one.
    """
    wait = min(soft_errors.probe_wait, MIN_PROBE_WAIT) if lacks_evidence else soft_errors.probe_wait
    return soft_errors.probed_at is None or now - soft_errors.probed_at >= wait


def record_probe_sent(soft_errors: SoftErrorMemory, *, now: datetime) -> SoftErrorMemory:
    """The domain's memory when a not-found probe is sent: no other one is due while its answer is under way."""
    return replace(soft_errors, probed_at=now, probe_wait=max(soft_errors.probe_wait, MIN_PROBE_WAIT))


def record_probe_response(
    soft_errors: SoftErrorMemory, not_found_text: TextSketch, *, keep_good_count: bool = False
) -> SoftErrorMemory:
    """The domain's memory after the answer to a not-found probe; the wait doubles while the answer stays the same.

    not_found_text: text of the answer.
    keep_good_count: the page that caused this probe also caused the last one. Then the count of good pages since is
    kept; otherwise each probe would reset it and no page could ever be confirmed gone.
    """
    is_same = not_found_text == soft_errors.not_found_text or are_similar(not_found_text, soft_errors.not_found_text)
    is_same = is_same and soft_errors.answered_probe_at is not None
    wait = min(2 * soft_errors.probe_wait, MAX_PROBE_WAIT) if is_same else MIN_PROBE_WAIT
    good = soft_errors.good_visits if is_same and keep_good_count else 0
    return replace(
        soft_errors,
        not_found_text=not_found_text,
        answered_probe_at=soft_errors.probed_at,
        shows_front_page=are_similar(not_found_text, soft_errors.front_page_text),
        probe_wait=wait,
        good_visits=good,
    )


def record_good_visit(soft_errors: SoftErrorMemory, signals: SoftErrorSignals | None) -> SoftErrorMemory:
    """The domain's memory after a page was found as it is. signals: of a seed that was read, or None."""
    if signals is not None and signals.is_seed and signals.own_text:
        is_front = are_similar(soft_errors.not_found_text, signals.own_text, ignored=signals.ignored_words)
        soft_errors = replace(soft_errors, front_page_text=signals.own_text, shows_front_page=is_front)
    if soft_errors.answered_probe_at is None or soft_errors.good_visits >= MIN_PAGES:
        return soft_errors
    return replace(soft_errors, good_visits=soft_errors.good_visits + 1)
