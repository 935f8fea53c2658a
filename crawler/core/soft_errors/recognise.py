"""What looks like an answer but is no version of the page: soft 404, login and block pages, what is cut off or empty.

Told by evidence, never by a list of words: by what the domain answers for a path that cannot exist, by one text on many
pages that said different things before, by markup that asks for a password, and by what is gone from the page.
"""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum

from crawler.core.soft_errors.sketch import NOTHING, SAME_SHARE, TextReplacement, TextSketch, alike

MANY = 3  # pages that said different things before and say one thing now: that is the site's doing, not theirs
TOGETHER = timedelta(days=1)  # between two of them
REMEMBERED = timedelta(days=30)  # what was met on many pages is known again for so long after the last of them
MOST_SHARED_TEXTS = 32  # of one domain; the oldest are forgotten first
LEAST_TOLD = 5  # words of a new page, to know a wall by them: what says less is like another by chance
LEAST_WORDS = 20  # that a page must have had of its own to be missed
SHORT = 1 / 3  # of its length before
FIRST_WAIT = timedelta(hours=1)  # until a domain is asked again what it says where nothing can be, and
LONGEST_WAIT = timedelta(days=30)  # at most, where it always says the same


class SoftError(StrEnum):
    """Why an answer is no version of its page."""

    SOFT_404 = "soft_404"  # what the domain answers for a path that cannot exist
    LOGIN = "login"  # a form for a password, in place of what the page said
    SHARED_TEXT = "shared_text"  # one text, or one redirect, on many pages: maintenance, consent, block, captcha, login
    TRUNCATED = "truncated"
    EMPTY = "empty_body"  # not a byte
    BLANK = "no_text"
    SHRUNK = "shrunk"  # little is left, and that is new; it may be a wall that nothing else has told of yet
    REPLACED = "replaced"  # the same at its full length, on a page that does not change like that


# After so many looks in a row it is what the page says now; what is not named here never is. The pauses double from an
# hour on: 5 looks take 15 hours, 12 take five weeks, and no wall for an hour or a few days lasts so long.
LOOKS_UNTIL_REAL = {
    SoftError.SHRUNK: 2,
    SoftError.REPLACED: 2,
    SoftError.TRUNCATED: 5,
    SoftError.BLANK: 5,
    SoftError.LOGIN: 12,
    SoftError.SHARED_TEXT: 12,
}
LOOKS_UNTIL_GONE = 2  # of a soft 404, as of a 404


@dataclass(frozen=True, slots=True)
class SharedText:
    """A text, or the target of a redirect, that pages turned into. befores: digests of what each one said before."""

    sketch: TextSketch
    befores: tuple[bytes, ...]
    last_at: datetime

    def holds_at(self, now: datetime) -> bool:
        """Whether another page that turns into it now belongs to these."""
        return now - self.last_at <= (REMEMBERED if self.is_many else TOGETHER)

    @property
    def is_many(self) -> bool:
        return len(self.befores) >= MANY


@dataclass(frozen=True, slots=True)
class SoftErrorMemory:
    """What a domain has shown in place of its pages; immutable, and bounded.

    absent: what it says where nothing can be; empty if it says so by its status.  is_told: it has answered that.
    front: what a seed says.  is_front: the one is the other.
    asked_at, wait: when it was asked, and for how long it is not asked again.
    good: looks since then that brought other pages as they are, counted up to MANY.
    """

    shared_texts: tuple[SharedText, ...] = ()
    absent: TextSketch = NOTHING
    is_told: bool = False
    front: TextSketch = NOTHING
    is_front: bool = False
    probed_at: datetime | None = None
    wait: timedelta = timedelta(0)
    good: int = 0

    @property
    def is_proven(self) -> bool:
        """Whether other pages were well meanwhile, so that what is said for absent pages is no wall around all."""
        return self.good >= MANY


NO_SOFT_ERRORS = SoftErrorMemory()


@dataclass(frozen=True, slots=True)
class SoftErrorSignals:
    """What a page answers with, as far as it can tell a wall.

    said: its own text.  beside: words that prove nothing: those of the frame and of its own URL.
    turn: None for a page without a Snapshot, whose digest is `before`.
    is_cut, is_empty, is_blank, asks_password: its body ends too early, has not a byte, has no text where there was
    some, or has a field for a password; the first and the last only where its Snapshot had not.
    is_lively: it is expected to change so often that a new text is no surprise.  is_seed: nobody needs to link to it.
    """

    said: TextSketch
    beside: TextSketch = NOTHING
    replacement: TextReplacement | None = None
    before: bytes = b""
    is_cut: bool = False
    is_empty: bool = False
    is_blank: bool = False
    has_password_field: bool = False
    is_lively: bool = False
    is_seed: bool = False


def recognise(signals: SoftErrorSignals, soft_errors: SoftErrorMemory, *, now: datetime) -> SoftError | None:
    """Why an answer is no version of its page, or None where it is one."""
    turn = signals.replacement
    if signals.is_blank:
        return SoftError.EMPTY if signals.is_empty else SoftError.BLANK
    if turn is None:
        return _of_new_page(signals, soft_errors, now=now)
    if signals.is_cut and turn.kept < 1 and turn.added <= 1 - SAME_SHARE:
        return SoftError.TRUNCATED
    return _of_known_page(signals, turn, soft_errors, now=now) if turn.is_complete else None


def _of_known_page(
    signals: SoftErrorSignals, turn: TextReplacement, soft_errors: SoftErrorMemory, *, now: datetime
) -> SoftError | None:
    """The same of a page that says something else altogether."""
    if turn.after == 0:
        return SoftError.BLANK  # but for the frame
    if signals.has_password_field:
        return SoftError.LOGIN
    if alike(signals.said, soft_errors.absent, beside=signals.beside):
        return SoftError.SHARED_TEXT if signals.is_seed else SoftError.SOFT_404
    if is_shared(signals, soft_errors, now=now):
        return SoftError.SHARED_TEXT
    if turn.before < LEAST_WORDS:
        return None
    if turn.after < SHORT * turn.before:
        return SoftError.SHRUNK
    return None if signals.is_lively else SoftError.REPLACED


def _of_new_page(signals: SoftErrorSignals, soft_errors: SoftErrorMemory, *, now: datetime) -> SoftError | None:
    """The same of a page of which nothing is known; where all that is absent gets the front page, none can be told."""
    if signals.is_seed or len(signals.said) < LEAST_TOLD:
        return None
    if not soft_errors.is_front and alike(signals.said, soft_errors.absent, beside=signals.beside):
        return SoftError.SOFT_404
    found = _find_shared(signals, soft_errors, now=now)
    return SoftError.SHARED_TEXT if found is not None and found.is_many else None


def is_shared(signals: SoftErrorSignals, soft_errors: SoftErrorMemory, *, now: datetime) -> bool:
    """Whether many pages have turned into this lately, with this one."""
    found = _find_shared(signals, soft_errors, now=now)
    return found is not None and len({*found.befores, signals.before}) >= MANY


def _find_shared(signals: SoftErrorSignals, soft_errors: SoftErrorMemory, *, now: datetime) -> SharedText | None:
    near = (
        s for s in soft_errors.shared_texts if s.holds_at(now) and alike(signals.said, s.sketch, beside=signals.beside)
    )
    return next(near, None)


def remember_shared(soft_errors: SoftErrorMemory, signals: SoftErrorSignals, *, now: datetime) -> SoftErrorMemory:
    """The domain's knowledge after one more page has turned into something else altogether."""
    if not signals.said or not signals.before:
        return soft_errors
    found = _find_shared(signals, soft_errors, now=now)
    others = tuple(s for s in soft_errors.shared_texts if s is not found)
    befores = () if found is None else found.befores
    if signals.before not in befores and len(befores) < MANY:
        befores = (*befores, signals.before)
    seen = SharedText(signals.said if found is None else found.sketch, befores, now)
    return replace(soft_errors, shared_texts=(*others, seen)[-MOST_SHARED_TEXTS:])


# What the domain says where nothing can be


def is_probe_due(soft_errors: SoftErrorMemory, *, now: datetime) -> bool:
    """Whether it may be asked what it says for a path that cannot exist."""
    return soft_errors.probed_at is None or now - soft_errors.probed_at >= soft_errors.wait


def probe_sent(soft_errors: SoftErrorMemory, *, now: datetime) -> SoftErrorMemory:
    """While the answer is under way, nobody else asks."""
    return replace(soft_errors, probed_at=now, wait=max(soft_errors.wait, FIRST_WAIT))


def probe_answered(
    soft_errors: SoftErrorMemory, absent: TextSketch, *, keep_good_count: bool = False
) -> SoftErrorMemory:
    """After the answer. As long as it stays the same, it is asked for half as often each time.

    is_later: the page for which it was asked had been behind a wall when it was asked last. What was well since then
    still counts, or a page that comes whenever it is time to ask would never be told gone.
    """
    is_same = soft_errors.is_told and (absent == soft_errors.absent or alike(absent, soft_errors.absent))
    wait = min(2 * soft_errors.wait, LONGEST_WAIT) if is_same else FIRST_WAIT
    good = soft_errors.good if is_same and keep_good_count else 0
    return replace(
        soft_errors, absent=absent, is_told=True, is_front=alike(absent, soft_errors.front), wait=wait, good=good
    )


def after_good(soft_errors: SoftErrorMemory, signals: SoftErrorSignals | None) -> SoftErrorMemory:
    """After a page was found as it is. face: of a seed that was read."""
    if signals is not None and signals.is_seed and signals.said:
        soft_errors = replace(
            soft_errors, front=signals.said, is_front=alike(soft_errors.absent, signals.said, beside=signals.beside)
        )
    return (
        replace(soft_errors, good=soft_errors.good + 1)
        if soft_errors.is_told and soft_errors.good < MANY
        else soft_errors
    )
