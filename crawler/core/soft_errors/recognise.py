"""What looks like an answer but is no version of the page: soft 404, login and block pages, what is cut off or empty.

Told by evidence, never by a list of words: by what the domain answers for a path that cannot exist, by one text on many
pages that said different things before, by markup that asks for a password, and by what is gone from the page.
"""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum

from crawler.core.soft_errors.sketch import NOTHING, SAME_SHARE, Sketch, Turn, alike

MANY = 3  # pages that said different things before and say one thing now: that is the site's doing, not theirs
TOGETHER = timedelta(days=1)  # between two of them
REMEMBERED = timedelta(days=30)  # what was met on many pages is known again for so long after the last of them
MOST_SIGHTINGS = 32  # of one domain; the oldest are forgotten first
LEAST_TOLD = 5  # words of a new page, to know a wall by them: what says less is like another by chance
LEAST_WORDS = 20  # that a page must have had of its own to be missed
SHORT = 1 / 3  # of its length before
FIRST_WAIT = timedelta(hours=1)  # until a domain is asked again what it says where nothing can be, and
LONGEST_WAIT = timedelta(days=30)  # at most, where it always says the same


class Wall(StrEnum):
    """Why an answer is no version of its page."""

    SOFT_404 = "soft_404"  # what the domain answers for a path that cannot exist
    LOGIN = "login"  # a form for a password, in place of what the page said
    MANY_ALIKE = "many_alike"  # one text, or one redirect, on many pages: maintenance, consent, block, captcha, login
    CUT = "cut_off"
    EMPTY = "empty_body"  # not a byte
    BLANK = "no_text"
    SHRUNK = "shrunk"  # little is left, and that is new; it may be a wall that nothing else has told of yet
    REPLACED = "replaced"  # the same at its full length, on a page that does not change like that


# After so many looks in a row it is what the page says now; what is not named here never is. The pauses double from an
# hour on: 5 looks take 15 hours, 12 take five weeks, and no wall for an hour or a few days lasts so long.
LOOKS_UNTIL_REAL = {
    Wall.SHRUNK: 2,
    Wall.REPLACED: 2,
    Wall.CUT: 5,
    Wall.BLANK: 5,
    Wall.LOGIN: 12,
    Wall.MANY_ALIKE: 12,
}
LOOKS_UNTIL_GONE = 2  # of a soft 404, as of a 404


@dataclass(frozen=True, slots=True)
class Sighting:
    """A text, or the target of a redirect, that pages turned into. befores: digests of what each one said before."""

    sketch: Sketch
    befores: tuple[bytes, ...]
    last_at: datetime

    def holds_at(self, now: datetime) -> bool:
        """Whether another page that turns into it now belongs to these."""
        return now - self.last_at <= (REMEMBERED if self.is_many else TOGETHER)

    @property
    def is_many(self) -> bool:
        return len(self.befores) >= MANY


@dataclass(frozen=True, slots=True)
class Walls:
    """What a domain has shown in place of its pages; immutable, and bounded.

    absent: what it says where nothing can be; empty if it says so by its status.  is_told: it has answered that.
    front: what a seed says.  is_front: the one is the other.
    asked_at, wait: when it was asked, and for how long it is not asked again.
    good: looks since then that brought other pages as they are, counted up to MANY.
    """

    sightings: tuple[Sighting, ...] = ()
    absent: Sketch = NOTHING
    is_told: bool = False
    front: Sketch = NOTHING
    is_front: bool = False
    asked_at: datetime | None = None
    wait: timedelta = timedelta(0)
    good: int = 0

    @property
    def is_proven(self) -> bool:
        """Whether other pages were well meanwhile, so that what is said for absent pages is no wall around all."""
        return self.good >= MANY


NO_WALLS = Walls()


@dataclass(frozen=True, slots=True)
class Face:
    """What a page answers with, as far as it can tell a wall.

    said: its own text.  beside: words that prove nothing: those of the frame and of its own URL.
    turn: None for a page without a Snapshot, whose digest is `before`.
    is_cut, is_empty, is_blank, asks_password: its body ends too early, has not a byte, has no text where there was
    some, or has a field for a password; the first and the last only where its Snapshot had not.
    is_lively: it is expected to change so often that a new text is no surprise.  is_seed: nobody needs to link to it.
    """

    said: Sketch
    beside: Sketch = NOTHING
    turn: Turn | None = None
    before: bytes = b""
    is_cut: bool = False
    is_empty: bool = False
    is_blank: bool = False
    asks_password: bool = False
    is_lively: bool = False
    is_seed: bool = False


def recognise(face: Face, walls: Walls, *, now: datetime) -> Wall | None:
    """Why an answer is no version of its page, or None where it is one."""
    turn = face.turn
    if face.is_blank:
        return Wall.EMPTY if face.is_empty else Wall.BLANK
    if turn is None:
        return _at_first(face, walls, now=now)
    if face.is_cut and turn.kept < 1 and turn.added <= 1 - SAME_SHARE:
        return Wall.CUT
    return _after_turn(face, turn, walls, now=now) if turn.is_whole else None


def _after_turn(face: Face, turn: Turn, walls: Walls, *, now: datetime) -> Wall | None:
    """The same of a page that says something else altogether."""
    if turn.after == 0:
        return Wall.BLANK  # but for the frame
    if face.asks_password:
        return Wall.LOGIN
    if alike(face.said, walls.absent, beside=face.beside):
        return Wall.MANY_ALIKE if face.is_seed else Wall.SOFT_404
    if is_shared(face, walls, now=now):
        return Wall.MANY_ALIKE
    if turn.before < LEAST_WORDS:
        return None
    if turn.after < SHORT * turn.before:
        return Wall.SHRUNK
    return None if face.is_lively else Wall.REPLACED


def _at_first(face: Face, walls: Walls, *, now: datetime) -> Wall | None:
    """The same of a page of which nothing is known; where all that is absent gets the front page, none can be told."""
    if face.is_seed or len(face.said) < LEAST_TOLD:
        return None
    if not walls.is_front and alike(face.said, walls.absent, beside=face.beside):
        return Wall.SOFT_404
    found = _sighted(face, walls, now=now)
    return Wall.MANY_ALIKE if found is not None and found.is_many else None


def is_shared(face: Face, walls: Walls, *, now: datetime) -> bool:
    """Whether many pages have turned into this lately, with this one."""
    found = _sighted(face, walls, now=now)
    return found is not None and len({*found.befores, face.before}) >= MANY


def _sighted(face: Face, walls: Walls, *, now: datetime) -> Sighting | None:
    near = (s for s in walls.sightings if s.holds_at(now) and alike(face.said, s.sketch, beside=face.beside))
    return next(near, None)


def noted(walls: Walls, face: Face, *, now: datetime) -> Walls:
    """The domain's knowledge after one more page has turned into something else altogether."""
    if not face.said or not face.before:
        return walls
    found = _sighted(face, walls, now=now)
    others = tuple(s for s in walls.sightings if s is not found)
    befores = () if found is None else found.befores
    if face.before not in befores and len(befores) < MANY:
        befores = (*befores, face.before)
    seen = Sighting(face.said if found is None else found.sketch, befores, now)
    return replace(walls, sightings=(*others, seen)[-MOST_SIGHTINGS:])


# What the domain says where nothing can be


def is_due(walls: Walls, *, now: datetime) -> bool:
    """Whether it may be asked what it says for a path that cannot exist."""
    return walls.asked_at is None or now - walls.asked_at >= walls.wait


def asked(walls: Walls, *, now: datetime) -> Walls:
    """While the answer is under way, nobody else asks."""
    return replace(walls, asked_at=now, wait=max(walls.wait, FIRST_WAIT))


def told(walls: Walls, absent: Sketch, *, is_later: bool = False) -> Walls:
    """After the answer. As long as it stays the same, it is asked for half as often each time.

    is_later: the page for which it was asked had been behind a wall when it was asked last. What was well since then
    still counts, or a page that comes whenever it is time to ask would never be told gone.
    """
    is_same = walls.is_told and (absent == walls.absent or alike(absent, walls.absent))
    wait = min(2 * walls.wait, LONGEST_WAIT) if is_same else FIRST_WAIT
    good = walls.good if is_same and is_later else 0
    return replace(walls, absent=absent, is_told=True, is_front=alike(absent, walls.front), wait=wait, good=good)


def after_good(walls: Walls, face: Face | None) -> Walls:
    """After a page was found as it is. face: of a seed that was read."""
    if face is not None and face.is_seed and face.said:
        walls = replace(walls, front=face.said, is_front=alike(walls.absent, face.said, beside=face.beside))
    return replace(walls, good=walls.good + 1) if walls.is_told and walls.good < MANY else walls
