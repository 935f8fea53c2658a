"""Looks whose answer is no version of the page: how they are told, what they leave as it was, and what they teach."""

from dataclasses import replace
from datetime import datetime, timedelta

from crawler.core.freshness import change_expected
from crawler.core.http import Fetched, Url, key_of
from crawler.core.page import (
    Ending,
    Part,
    Reading,
    Understood,
    asks_password_in,
    digest,
    distance_bits,
    ending_of,
    kind_of,
    parsed,
)
from crawler.core.soft_errors import (
    LOOKS_UNTIL_GONE,
    LOOKS_UNTIL_REAL,
    NOTHING,
    Face,
    Sketch,
    Turn,
    Wall,
    Walls,
    after_good,
    frame_of,
    is_shared,
    noted,
    own,
    recognise,
    sketch,
    sketch_of_target,
    sketch_of_url,
    turn_of,
)
from crawler.core.visit.lifecycle import CONFIRM_MISSING_AFTER, failed, missing, retry_after_failures
from crawler.core.visit.links import led_to
from crawler.core.visit.visit import Earlier, Headed, Known, State, Target, Visit
from crawler.core.volatile import words_of

DAY = timedelta(days=1)
LIVELY = 0.5  # chance of a change within a day, from which on a new text is no surprise
CUT_KEPT = 0.8  # of the text of a page, at most, where only its closing tags tell that its end is missing
SLIGHT_BITS = 4  # of 64 by which fingerprints differ: then most of the text is still there
NO_BODY = digest(b"")
UNEXPLAINED = frozenset({Wall.SHRUNK, Wall.REPLACED})  # one wall, whatever the length of what it says
MOST_WALLED = 1000  # looks that are counted
REDIRECTED = Turn(before=1, after=1, kept=0.0, added=1.0)  # all of a page is gone where it leads elsewhere


def with_signs(earlier: Earlier, reading: Reading, body: bytes, *, content_type: str) -> Earlier:
    """A Snapshot with those signs of a wall that its body shows as well; it is read only where the page shows one now.

    body, content_type: of the Snapshot.
    """
    is_plain = reading.ending is Ending.CLOSED and not reading.asks_password
    if is_plain or kind_of(body, content_type) != "html":
        return earlier
    markup = parsed(body, content_type)
    return replace(earlier, ending=ending_of(markup.source), asks_password=asks_password_in(markup.tree))


def face_of(target: Target, understood: Understood, earlier: Earlier | None, *, known: Known) -> Face | None:
    """What a page that was read shows, as far as it can be told a wall by it; None where nothing speaks for one."""
    before, after, reading = target.version, understood.version, understood.reading
    if before is None:
        return _new_face(target, understood, known=known)
    had_text, has_text = before.fingerprint is not None, after.fingerprint is not None
    if after.body_digest == NO_BODY or (had_text and not has_text and reading.kind != "binary"):
        return Face(NOTHING, is_empty=after.body_digest == NO_BODY, is_blank=True)
    if earlier is None or earlier.has_returned or before.fingerprint is None or after.fingerprint is None:
        return None
    if reading.ending is Ending.CLOSED and distance_bits(before.fingerprint, after.fingerprint) <= SLIGHT_BITS:
        return None
    mask = known.mask
    text = own(understood.outline, mask)
    turn = turn_of(own(earlier.outline, mask), text)
    is_torn = reading.ending is Ending.TORN and earlier.ending is not Ending.TORN
    is_open = reading.ending is Ending.OPEN and earlier.ending is Ending.CLOSED and turn.kept < CUT_KEPT
    return Face(
        said=sketch(text),
        beside=sketch(frame_of(understood.outline, mask)) | sketch_of_url(target.url),
        turn=turn,
        before=before.main_digest,
        is_cut=is_torn or is_open,
        asks_password=reading.asks_password and not earlier.asks_password,
        is_lively=change_expected(target.belief, gap=DAY) >= LIVELY,
        is_seed=target.depth == 0,
    )


def _new_face(target: Target, understood: Understood, *, known: Known) -> Face | None:
    """Of a page without a Snapshot; only where there is something that it could be like."""
    walls, is_seed = known.walls, target.depth == 0
    if not is_seed and not walls.absent and not any(seen.is_many for seen in walls.sightings):
        return None
    beside = sketch(frame_of(understood.outline, known.mask)) | sketch_of_url(target.url)
    return Face(sketch(own(understood.outline, known.mask)), beside, is_seed=is_seed)


def redirect_face(target: Target, location: Url) -> Face | None:
    """Of a page that had a text and leads elsewhere today."""
    if target.version is None:
        return None
    is_seed = target.depth == 0
    return Face(
        sketch_of_target(led_to(target, location)), turn=REDIRECTED, before=target.version.main_digest, is_seed=is_seed
    )


def wall_of(target: Target, face: Face | None, *, now: datetime, known: Known) -> Wall | None:
    """Why an answer is no version of its page; None where it is one, or has been the answer for so long that it is."""
    wall = recognise(face, known.walls, now=now) if face is not None else None
    if wall is None:
        return None
    looks = LOOKS_UNTIL_REAL.get(wall)
    return None if looks is not None and _is_confirmed(target, wall, looks, now) else wall


def _walled(target: Target, wall: Wall) -> int:
    """How many looks in a row have met this wall until now; failures of other kinds are none, and end it."""
    if target.reason == wall.value:
        return target.walled
    return target.walled if wall in UNEXPLAINED and target.reason in UNEXPLAINED else 0


def _is_confirmed(target: Target, wall: Wall, looks: int, now: datetime) -> bool:
    """Whether this is one of so many looks in a row at the same wall."""
    if _walled(target, wall) + 1 < looks:
        return False
    return target.last_look_at is not None and now - target.last_look_at >= CONFIRM_MISSING_AFTER


def withheld(target: Target, answer: Fetched, face: Face, wall: Wall, *, now: datetime, known: Known) -> Visit:
    """A look that told nothing of the page, or, where others are well and it stays absent, that it is gone.

    The waits grow with the looks at this wall alone: after an outage of weeks it is believed no later than otherwise.
    """
    walled = min(_walled(target, wall) + 1, MOST_WALLED)
    if wall is Wall.SOFT_404 and _is_gone(target, face, now=now, known=known):
        visit = replace(missing(target, replace(answer, status=410), now=now), status=answer.status)
    else:
        visit = failed(target, answer, now=now, reason="")
        visit = replace(visit, due_at=now + min(retry_after_failures(walled), target.terms.most))
    return replace(visit, reason=wall.value, walled=walled, face=face)


def _is_gone(target: Target, face: Face, *, now: datetime, known: Known) -> bool:
    """Whether a soft 404 is believed: as a 404 is, and only while other pages are well.

    Where many turn into it at once, it is believed as late as any wall.
    """
    if target.state is State.GONE or not known.walls.is_proven:
        return target.state is State.GONE
    looks = LOOKS_UNTIL_REAL[Wall.MANY_ALIKE] if is_shared(face, known.walls, now=now) else LOOKS_UNTIL_GONE
    return target.version is None or _is_confirmed(target, Wall.SOFT_404, looks, now)


def is_suspect(visit: Visit) -> bool:
    """Whether a look may have met what the domain says where nothing can be."""
    face = visit.face
    return face is not None and not visit.is_good and bool(face.said) and face.turn is not None and face.turn.is_whole


def walls_after(walls: Walls, visit: Visit) -> Walls:
    """What a domain is known to show in place of its pages, after one more look."""
    face = visit.face
    if face is not None and face.turn is not None and face.turn.is_whole:
        return noted(walls, face, now=visit.at)
    is_read = visit.answer == "fetched" and visit.headed is not Headed.SPARED and not visit.reason
    return after_good(walls, face) if visit.is_good and is_read else walls


def absent_of(answer: Fetched, understood: Understood | None, *, known: Known) -> Sketch | None:
    """What a domain says where nothing can be; NOTHING if its status says it all, None if this answer tells nothing."""
    if answer.status >= 500 or answer.status == 429:
        return None
    if answer.location is not None:
        return sketch_of_target(key_of(answer.location))
    return NOTHING if understood is None else sketch(own(understood.outline, known.mask))


def is_again(target: Target, first: Understood, second: Understood, *, now: datetime, known: Known) -> bool:
    """Whether both looks brought the same page. known: of the domain, before the second."""
    one, other = first.reading, second.reading
    is_torn = other.ending is not Ending.CLOSED and one.ending is not other.ending
    asks = other.asks_password and not one.asks_password
    if is_torn or asks or other.is_passed_on or not second.outline or one.kind != other.kind:
        return False
    face = face_of(replace(target, version=first.version), second, Earlier(first.outline, now), known=known)
    wall = recognise(face, known.walls, now=now) if face is not None else None
    if wall is not None and not (wall is Wall.CUT and one.ending is other.ending):
        return False
    turn = turn_of(own(first.outline, known.mask), own(second.outline, known.mask))
    return not turn.is_whole or _titles(first) == _titles(second)


def _titles(page: Understood) -> list[str]:
    """The words by which a page calls itself, without numbers: a counter may stand there."""
    titles = (place for place in page.outline if place.part is Part.TITLE)
    return [word for place in titles for word in words_of(place) if not any(map(str.isdigit, word))]
