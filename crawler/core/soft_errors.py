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
from crawler.core.noise.words import words_of
from crawler.core.page.outline import Block, BlockKind, BlockList

MOST_WORDS = 256  # hashes kept of one text, the smallest ones (Broder, 1997)
FEW_WORDS = 4  # by which two copies of one text may differ: a name, a code, the address that was asked for
SAME_SHARE = 0.9  # of the words of both texts together, where that allows more than FEW_WORDS to differ
LEAST_FRAME = 2  # blocks of boilerplate, to tell a page of the site by them,
KEPT_FRAME = 0.8  # and the share of them that is still there
NUMBERS_SHARE = 0.5  # of a text's words, above which it is made of numbers and codes, and they count,
MIN_NUMBERS = 20  # if it has so many: a short notice may consist of an incident's number and its time
MOST_KEPT = 0.25  # of a page's own text, where all of it counts as gone

_LAST_HASH = (1 << 32) - 1

TextSketch = frozenset[int]  # hashes of the words of a text; empty for a text without words
NOTHING: TextSketch = frozenset()


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
        return self.before > 0 and self.kept < MOST_KEPT


def alike(first: TextSketch, second: TextSketch, *, ignored: TextSketch = NOTHING) -> bool:
    """Whether two texts are one, but for a few words. A text without words is like none.

    ignored: words that count on neither side.
    """
    if not first or not second:
        return False
    known_up_to = min(_end(first), _end(second))
    either = {word for word in (first | second) - ignored if word <= known_up_to}
    common = len(either & first & second)
    different = len(either) - common
    return common > 0 and different <= min(common, max(FEW_WORDS, (1 - SAME_SHARE) * len(either)))


def _end(sketch: TextSketch) -> int:
    """The largest hash up to which a sketch holds all the words of its text."""
    return max(sketch) if len(sketch) >= MOST_WORDS else _LAST_HASH


def sketch(blocks: Iterable[Block], *, is_seed: bool = False) -> TextSketch:
    """Return the words of some blocks as a sketch.

    Words with a digit are left out, as they are times and incident numbers. Where a text is made of them (a price list,
    a timetable, results) they are kept: without them all such pages would be one text. Not so of a seed: its page is
    compared with what stands in place of others, and may list their numbers.
    """
    words = [word.casefold() for block in blocks for word in words_of(block)]
    with_digits = {word for word in words if not word.isalpha() and any(map(str.isdigit, word))}
    others = {word for word in words if word not in with_digits}
    is_made_of_numbers = len(with_digits) >= max(MIN_NUMBERS, NUMBERS_SHARE * len(with_digits | others))
    keeps_numbers = is_made_of_numbers and not is_seed
    return _smallest({_hash(word) for word in (with_digits | others if keeps_numbers else others)})


def sketch_of_url(url: Url) -> TextSketch:
    """The words of a URL, which its page may repeat ("/x was not found")."""
    return _smallest({_hash(word) for word in re.findall(r"\w+|[^\w\s]", url.casefold())})


def sketch_of_target(key: PageKey) -> TextSketch:
    """The target of a redirect as a sketch, compared in place of a text."""
    return frozenset({crc32(key)})


def own_text(page: BlockList, mask: NoiseMask) -> tuple[Block, ...]:
    """The text blocks of a page that are its own, not the site's boilerplate."""
    return tuple(block for block in _texts(page, mask) if not mask.is_boilerplate(block))


def boilerplate_text(page: BlockList, mask: NoiseMask) -> tuple[Block, ...]:
    """The text blocks of a page that belong to the site's boilerplate; the complement of `own_text`."""
    return tuple(block for block in _texts(page, mask) if mask.is_boilerplate(block))


def keeps_frame(before: BlockList, after: BlockList, mask: NoiseMask) -> bool:
    """Whether the site's boilerplate is on a page as it was; False where too little of it is known.

    Who answers in place of a page seldom has its menus and its footer.
    """
    was, now = ({mask.form_of(block) for block in boilerplate_text(page, mask)} for page in (before, after))
    return len(was) >= LEAST_FRAME and len(was & now) >= KEPT_FRAME * len(was)


def replacement_of(before: Sequence[Block], after: Sequence[Block]) -> TextReplacement:
    """How much of a page's own blocks was replaced.

    Pairs of words are compared, since single words are common to all texts of a language.
    """
    old_pairs, new_pairs = _pairs(before), _pairs(after)
    common = (old_pairs & new_pairs).total()
    return TextReplacement(
        before=sum(len(words_of(block)) for block in before),
        after=sum(len(words_of(block)) for block in after),
        kept=common / old_pairs.total() if old_pairs else 1.0,
        added=1 - common / new_pairs.total() if new_pairs else 0.0,
    )


def _texts(page: BlockList, mask: NoiseMask) -> Iterable[Block]:
    return (block for block in mask.volatile.named(page) if block.kind is BlockKind.TEXT)


def _pairs(blocks: Iterable[Block]) -> Counter[tuple[str, str]]:
    return Counter(pair for block in blocks for pair in pairwise(("", *words_of(block))))


def _hash(word: str) -> int:
    return crc32(word.encode("utf-8", "surrogatepass"))


def _smallest(hashes: set[int]) -> TextSketch:
    return frozenset(sorted(hashes)[:MOST_WORDS])


ENOUGH_PAGES = 3  # pages that said different things before and say one thing now: then it is the site's doing
SHARED_WITHIN = timedelta(days=1)  # between two pages that turn into one text, until ENOUGH_PAGES have
REMEMBERED = timedelta(days=30)  # for which a text of ENOUGH_PAGES is known, counted from the last page that showed it
MOST_SHARED_TEXTS = 32  # of one domain; the oldest are forgotten first
LEAST_WORDS_NEW = 5  # of a page without a Snapshot; a shorter text equals another by chance
LEAST_WORDS_BEFORE = 20  # own words in the Snapshot, below which their loss proves nothing
SHRUNK_SHARE = 1 / 3  # of the words of before; less is SHRUNK rather than REPLACED
FIRST_PROBE_WAIT = timedelta(hours=1)  # from one not-found probe to the next; doubles while the answer stays the same
LONGEST_PROBE_WAIT = timedelta(days=30)


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
LOOKS_UNTIL_REAL = {
    SoftError.SHRUNK: 2,
    SoftError.REPLACED: 2,
    SoftError.TRUNCATED: 5,
    SoftError.BLANK: 5,
}
LOOKS_UNTIL_GONE = 2  # of a soft 404, as of a 404


@dataclass(frozen=True, slots=True)
class SharedText:
    """A text, or the target of a redirect, that pages turned into. befores: digests of what each page said before."""

    sketch: TextSketch
    befores: tuple[bytes, ...]
    last_at: datetime

    @property
    def is_many(self) -> bool:
        """Whether enough pages turned into the text to call it the site's doing."""
        return len(self.befores) >= ENOUGH_PAGES


@dataclass(frozen=True, slots=True)
class SoftErrorMemory:
    """A domain's memory of soft errors: texts shown in place of its pages; immutable, and bounded.

    absent: text of the last answer to a not-found probe; empty where its status said 404.
    answered_at: when the probe was sent that brought this answer; None where there was none yet.
    front: text of a seed.  is_front: unknown paths are answered with the front page.
    probed_at, wait: when the last probe was sent, and how long no other one is.
    good: looks since the probe that brought other pages as they are, counted up to ENOUGH_PAGES.
    replaced: groups of pages, one of which had its text replaced for good.
    """

    shared_texts: tuple[SharedText, ...] = ()
    absent: TextSketch = NOTHING
    answered_at: datetime | None = None
    front: TextSketch = NOTHING
    is_front: bool = False
    probed_at: datetime | None = None
    wait: timedelta = timedelta(0)
    good: int = 0
    replaced: frozenset[int] = frozenset()

    @property
    def is_proven(self) -> bool:
        """Whether other pages were well since the probe: then its answer is no block page that hides the whole site."""
        return self.good >= ENOUGH_PAGES


NO_SOFT_ERRORS = SoftErrorMemory()


@dataclass(frozen=True, slots=True)
class SoftErrorSignals:
    """The signs in an answer by which a soft error is recognised.

    own: the page's own text; nothing where the Snapshot had the same words, which then prove nothing.
    ignored: words that prove nothing, of the boilerplate and of the page's URL.
    replacement: of the Snapshot's own text; None for a page without a Snapshot.  before: the Snapshot's main digest.
    is_cut: the body ends too early, and the Snapshot's did not.  is_empty: the body has not a byte.
    is_blank: there is no text where there was some.  has_password_field: there is one, and the Snapshot had none.
    is_lively: the page changes so often that a new text is no surprise.  keeps_frame: the site's boilerplate is around
    its text as it was, or nothing but numbers differs.  group: of the page.  is_seed: the page is a seed of the domain.
    """

    own: TextSketch
    ignored: TextSketch = NOTHING
    replacement: TextReplacement | None = None
    before: bytes = b""
    is_cut: bool = False
    is_empty: bool = False
    is_blank: bool = False
    has_password_field: bool = False
    is_lively: bool = False
    keeps_frame: bool = False
    group: int = 0
    is_seed: bool = False


def text_signals(
    after: BlockList, mask: NoiseMask, *, url: Url, is_seed: bool, before: BlockList | None = None
) -> SoftErrorSignals:
    """The signals in the text of a page. before: the blocks of its Snapshot; None where it has none."""
    text = own_text(after, mask)
    own = sketch(text, is_seed=is_seed)
    ignored = sketch(boilerplate_text(after, mask)) | sketch_of_url(url)
    if before is None:
        return SoftErrorSignals(own, ignored, is_seed=is_seed)
    own_before = own_text(before, mask)
    replacement = replacement_of(own_before, text)
    is_framed = replacement.is_complete and (
        keeps_frame(before, after, mask)
        # Else the two are one, but for a few words, when all words with a digit are left out.
        or alike(sketch(own_before, is_seed=True), sketch(text, is_seed=True))
    )
    if alike(sketch(own_before, is_seed=is_seed), own, ignored=ignored):
        own = NOTHING
    return SoftErrorSignals(own, ignored, replacement, keeps_frame=is_framed, is_seed=is_seed)


def recognise(signals: SoftErrorSignals, soft_errors: SoftErrorMemory, *, now: datetime) -> SoftError | None:
    """The soft error that an answer shows, or None where the answer is a version of its page."""
    replacement = signals.replacement
    if signals.is_blank:
        return SoftError.EMPTY if signals.is_empty else SoftError.BLANK
    if replacement is None:
        return _of_new_page(signals, soft_errors, now=now)
    if signals.is_cut and replacement.kept < 1 and replacement.added <= 1 - SAME_SHARE:
        return SoftError.TRUNCATED
    return _of_known_page(signals, replacement, soft_errors, now=now) if replacement.is_complete else None


def _of_known_page(
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
    if alike(signals.own, soft_errors.absent, ignored=signals.ignored):
        return SoftError.SHARED_TEXT if signals.is_seed else SoftError.SOFT_404
    if is_shared(signals, soft_errors, now=now):
        return SoftError.SHARED_TEXT
    if replacement.before < LEAST_WORDS_BEFORE:
        return None
    if replacement.after < SHRUNK_SHARE * replacement.before:
        return SoftError.SHRUNK
    is_expected = signals.is_lively or signals.keeps_frame or signals.group in soft_errors.replaced
    # The answer to a probe that was sent lately says what the domain shows now.
    is_answered = soft_errors.answered_at is not None and now - soft_errors.answered_at < FIRST_PROBE_WAIT
    return None if is_expected or is_answered else SoftError.REPLACED


def _of_new_page(signals: SoftErrorSignals, soft_errors: SoftErrorMemory, *, now: datetime) -> SoftError | None:
    """The soft error shown by a page without a Snapshot, or None.

    If the domain answers unknown paths with its front page, no soft 404 is reported, since any page may look like it.
    """
    if signals.is_seed or len(signals.own) < LEAST_WORDS_NEW:
        return None
    if not soft_errors.is_front and alike(signals.own, soft_errors.absent, ignored=signals.ignored):
        return SoftError.SOFT_404
    found = _find_shared(signals, soft_errors, now=now)
    return SoftError.SHARED_TEXT if found is not None and found.is_many else None


def is_shared(signals: SoftErrorSignals, soft_errors: SoftErrorMemory, *, now: datetime) -> bool:
    """Whether enough pages, this one among them, have turned into the page's text lately."""
    found = _find_shared(signals, soft_errors, now=now)
    return found is not None and len({*found.befores, signals.before}) >= ENOUGH_PAGES


def _find_shared(signals: SoftErrorSignals, soft_errors: SoftErrorMemory, *, now: datetime) -> SharedText | None:
    kept = soft_errors.shared_texts
    shared = (text for text in kept if now - text.last_at <= (REMEMBERED if text.is_many else SHARED_WITHIN))
    return next((text for text in shared if alike(signals.own, text.sketch, ignored=signals.ignored)), None)


def remember_shared(soft_errors: SoftErrorMemory, signals: SoftErrorSignals, *, now: datetime) -> SoftErrorMemory:
    """The domain's memory after the own text of one more page was replaced altogether."""
    if not signals.own or not signals.before:
        return soft_errors
    found = _find_shared(signals, soft_errors, now=now)
    others = tuple(text for text in soft_errors.shared_texts if text is not found)
    befores = () if found is None else found.befores
    if signals.before not in befores and len(befores) < ENOUGH_PAGES:
        befores = (*befores, signals.before)
    shared = SharedText(signals.own if found is None else found.sketch, befores, now)
    return replace(soft_errors, shared_texts=(*others, shared)[-MOST_SHARED_TEXTS:])


# The not-found probe: what the domain answers for a path that cannot exist


def is_probe_due(soft_errors: SoftErrorMemory, *, now: datetime, lacks_evidence: bool = False) -> bool:
    """Return whether the domain may be sent a not-found probe.

    lacks_evidence: nothing but a probe can tell whether a page shows a soft error; then the wait is the shortest one.
    """
    wait = min(soft_errors.wait, FIRST_PROBE_WAIT) if lacks_evidence else soft_errors.wait
    return soft_errors.probed_at is None or now - soft_errors.probed_at >= wait


def probe_sent(soft_errors: SoftErrorMemory, *, now: datetime) -> SoftErrorMemory:
    """The domain's memory when a not-found probe is sent: no other one is due while its answer is under way."""
    return replace(soft_errors, probed_at=now, wait=max(soft_errors.wait, FIRST_PROBE_WAIT))


def probe_answered(
    soft_errors: SoftErrorMemory, absent: TextSketch, *, keep_good_count: bool = False
) -> SoftErrorMemory:
    """The domain's memory after the answer to a not-found probe; the wait doubles while the answer stays the same.

    absent: text of the answer.
    keep_good_count: the page that caused this probe also caused the last one. Then the count of good pages since is
    kept; otherwise each probe would reset it and no page could ever be confirmed gone.
    """
    is_same = absent == soft_errors.absent or alike(absent, soft_errors.absent)
    is_same = is_same and soft_errors.answered_at is not None
    wait = min(2 * soft_errors.wait, LONGEST_PROBE_WAIT) if is_same else FIRST_PROBE_WAIT
    good = soft_errors.good if is_same and keep_good_count else 0
    return replace(
        soft_errors,
        absent=absent,
        answered_at=soft_errors.probed_at,
        is_front=alike(absent, soft_errors.front),
        wait=wait,
        good=good,
    )


def after_good(soft_errors: SoftErrorMemory, signals: SoftErrorSignals | None) -> SoftErrorMemory:
    """The domain's memory after a page was found as it is. signals: of a seed that was read, or None."""
    if signals is not None and signals.is_seed and signals.own:
        is_front = alike(soft_errors.absent, signals.own, ignored=signals.ignored)
        soft_errors = replace(soft_errors, front=signals.own, is_front=is_front)
    if soft_errors.answered_at is None or soft_errors.good >= ENOUGH_PAGES:
        return soft_errors
    return replace(soft_errors, good=soft_errors.good + 1)
