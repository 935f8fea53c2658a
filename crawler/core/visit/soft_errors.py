"""Looks whose answer is no version of the page: how they are told, what they leave as it was, and what they teach."""

from dataclasses import replace
from datetime import datetime, timedelta

from crawler.core.freshness import change_expected
from crawler.core.http import Fetched, Url, key_of
from crawler.core.page import (
    BlockKind,
    HtmlEnd,
    PageContent,
    Parsed,
    digest,
    distance_bits,
    has_password_field_in,
    html_end_of,
    kind_of,
    parse_html,
)
from crawler.core.soft_errors import (
    LOOKS_UNTIL_GONE,
    LOOKS_UNTIL_REAL,
    NOTHING,
    SoftError,
    SoftErrorMemory,
    SoftErrorSignals,
    TextReplacement,
    TextSketch,
    after_good,
    boilerplate_text,
    is_shared,
    own_text,
    recognise,
    remember_shared,
    replacement_of,
    sketch,
    sketch_of_target,
    sketch_of_url,
)
from crawler.core.visit.lifecycle import CONFIRM_MISSING_AFTER, failed_visit, missing_visit, retry_after_failures
from crawler.core.visit.links import led_to
from crawler.core.visit.visit import Baseline, HeadOutcome, Known, State, Target, Visit
from crawler.core.volatile import words_of

DAY = timedelta(days=1)
LIVELY = 0.5  # chance of a change within a day, from which on a new text is no surprise
CUT_KEPT = 0.8  # of the text of a page, at most, where only its closing tags tell that its end is missing
SLIGHT_BITS = 4  # of 64 by which fingerprints differ: then most of the text is still there
NO_BODY = digest(b"")
UNEXPLAINED = frozenset({SoftError.SHRUNK, SoftError.REPLACED})  # one wall, whatever the length of what it says
MOST_IN_A_ROW = 1000  # looks that are counted
REDIRECTED = TextReplacement(before=1, after=1, kept=0.0, added=1.0)  # all of a page is gone where it leads elsewhere


def with_soft_error_signs(baseline: Baseline, reading: PageContent, body: bytes, *, content_type: str) -> Baseline:
    """A Snapshot with those signs of a wall that its body shows as well; it is read only where the page shows one now.

    body, content_type: of the Snapshot.
    """
    is_plain = reading.html_end is HtmlEnd.CLOSED and not reading.has_password_field
    if is_plain or kind_of(body, content_type) != "html":
        return baseline
    markup = parse_html(body, content_type)
    return replace(baseline, html_end=html_end_of(markup.source), has_password_field=has_password_field_in(markup.tree))


def signals_of(target: Target, parsed: Parsed, baseline: Baseline | None, *, known: Known) -> SoftErrorSignals | None:
    """What a page that was read shows, as far as it can be told a wall by it; None where nothing speaks for one."""
    before, after, reading = target.version, parsed.version, parsed.content
    if before is None:
        return _signals_of_new_page(target, parsed, known=known)
    had_text, has_text = before.fingerprint is not None, after.fingerprint is not None
    if after.body_digest == NO_BODY or (had_text and not has_text and reading.kind != "binary"):
        return SoftErrorSignals(NOTHING, is_empty=after.body_digest == NO_BODY, is_blank=True)
    if baseline is None or baseline.has_returned or before.fingerprint is None or after.fingerprint is None:
        return None
    if reading.html_end is HtmlEnd.CLOSED and distance_bits(before.fingerprint, after.fingerprint) <= SLIGHT_BITS:
        return None
    mask = known.mask
    text = own_text(parsed.blocks, mask)
    turn = replacement_of(own_text(baseline.blocks, mask), text)
    is_torn = reading.html_end is HtmlEnd.TORN and baseline.html_end is not HtmlEnd.TORN
    is_open = reading.html_end is HtmlEnd.OPEN and baseline.html_end is HtmlEnd.CLOSED and turn.kept < CUT_KEPT
    return SoftErrorSignals(
        said=sketch(text),
        beside=sketch(boilerplate_text(parsed.blocks, mask)) | sketch_of_url(target.url),
        replacement=turn,
        before=before.main_digest,
        is_cut=is_torn or is_open,
        has_password_field=reading.has_password_field and not baseline.has_password_field,
        is_lively=change_expected(target.belief, gap=DAY) >= LIVELY,
        is_seed=target.depth == 0,
    )


def _signals_of_new_page(target: Target, parsed: Parsed, *, known: Known) -> SoftErrorSignals | None:
    """Of a page without a Snapshot; only where there is something that it could be like."""
    soft_errors, is_seed = known.soft_errors, target.depth == 0
    if not is_seed and not soft_errors.absent and not any(seen.is_many for seen in soft_errors.shared_texts):
        return None
    beside = sketch(boilerplate_text(parsed.blocks, known.mask)) | sketch_of_url(target.url)
    return SoftErrorSignals(sketch(own_text(parsed.blocks, known.mask)), beside, is_seed=is_seed)


def redirect_signals(target: Target, location: Url) -> SoftErrorSignals | None:
    """Of a page that had a text and leads elsewhere today."""
    if target.version is None:
        return None
    is_seed = target.depth == 0
    return SoftErrorSignals(
        sketch_of_target(led_to(target, location)),
        replacement=REDIRECTED,
        before=target.version.main_digest,
        is_seed=is_seed,
    )


def soft_error_of(target: Target, signals: SoftErrorSignals | None, *, now: datetime, known: Known) -> SoftError | None:
    """Why an answer is no version of its page; None where it is one, or has been the answer for so long that it is."""
    soft_error = recognise(signals, known.soft_errors, now=now) if signals is not None else None
    if soft_error is None:
        return None
    looks = LOOKS_UNTIL_REAL.get(soft_error)
    return None if looks is not None and _is_confirmed(target, soft_error, looks, now) else soft_error


def _in_a_row(target: Target, soft_error: SoftError) -> int:
    """How many looks in a row have met this wall until now; failures of other kinds are none, and end it."""
    if target.reason == soft_error.value:
        return target.soft_errors
    return target.soft_errors if soft_error in UNEXPLAINED and target.reason in UNEXPLAINED else 0


def _is_confirmed(target: Target, soft_error: SoftError, looks: int, now: datetime) -> bool:
    """Whether this is one of so many looks in a row at the same wall."""
    if _in_a_row(target, soft_error) + 1 < looks:
        return False
    return target.last_look_at is not None and now - target.last_look_at >= CONFIRM_MISSING_AFTER


def soft_error_visit(
    target: Target, answer: Fetched, signals: SoftErrorSignals, soft_error: SoftError, *, now: datetime, known: Known
) -> Visit:
    """A look that told nothing of the page, or, where others are well and it stays absent, that it is gone.

    The waits grow with the looks at this wall alone: after an outage of weeks it is believed no later than otherwise.
    """
    in_a_row = min(_in_a_row(target, soft_error) + 1, MOST_IN_A_ROW)
    if soft_error is SoftError.SOFT_404 and _is_gone(target, signals, now=now, known=known):
        visit = replace(missing_visit(target, replace(answer, status=410), now=now), status=answer.status)
    else:
        visit = failed_visit(target, answer, now=now, reason="")
        visit = replace(visit, due_at=now + min(retry_after_failures(in_a_row), target.terms.most))
    return replace(visit, reason=soft_error.value, soft_errors=in_a_row, signals=signals)


def _is_gone(target: Target, signals: SoftErrorSignals, *, now: datetime, known: Known) -> bool:
    """Whether a soft 404 is believed: as a 404 is, and only while other pages are well.

    Where many turn into it at once, it is believed as late as any wall.
    """
    if target.state is State.GONE or not known.soft_errors.is_proven:
        return target.state is State.GONE
    looks = (
        LOOKS_UNTIL_REAL[SoftError.SHARED_TEXT] if is_shared(signals, known.soft_errors, now=now) else LOOKS_UNTIL_GONE
    )
    return target.version is None or _is_confirmed(target, SoftError.SOFT_404, looks, now)


def may_be_soft_404(visit: Visit) -> bool:
    """Whether a look may have met what the domain says where nothing can be."""
    signals = visit.signals
    return (
        signals is not None
        and not visit.is_good
        and bool(signals.said)
        and signals.replacement is not None
        and signals.replacement.is_complete
    )


def memory_after(soft_errors: SoftErrorMemory, visit: Visit) -> SoftErrorMemory:
    """What a domain is known to show in place of its pages, after one more look."""
    signals = visit.signals
    if signals is not None and signals.replacement is not None and signals.replacement.is_complete:
        return remember_shared(soft_errors, signals, now=visit.at)
    is_read = visit.answer == "fetched" and visit.head_outcome is not HeadOutcome.SPARED and not visit.reason
    return after_good(soft_errors, signals) if visit.is_good and is_read else soft_errors


def not_found_text(answer: Fetched, parsed: Parsed | None, *, known: Known) -> TextSketch | None:
    """What a domain says where nothing can be; NOTHING if its status says it all, None if this answer tells nothing."""
    if answer.status >= 500 or answer.status == 429:
        return None
    if answer.location is not None:
        return sketch_of_target(key_of(answer.location))
    return NOTHING if parsed is None else sketch(own_text(parsed.blocks, known.mask))


def is_same_page(target: Target, first: Parsed, second: Parsed, *, now: datetime, known: Known) -> bool:
    """Whether both looks brought the same page. known: of the domain, before the second."""
    one, other = first.content, second.content
    is_torn = other.html_end is not HtmlEnd.CLOSED and one.html_end is not other.html_end
    asks = other.has_password_field and not one.has_password_field
    if is_torn or asks or other.is_passed_on or not second.blocks or one.kind != other.kind:
        return False
    signals = signals_of(replace(target, version=first.version), second, Baseline(first.blocks, now), known=known)
    soft_error = recognise(signals, known.soft_errors, now=now) if signals is not None else None
    if soft_error is not None and not (soft_error is SoftError.TRUNCATED and one.html_end is other.html_end):
        return False
    turn = replacement_of(own_text(first.blocks, known.mask), own_text(second.blocks, known.mask))
    return not turn.is_complete or _titles(first) == _titles(second)


def _titles(page: Parsed) -> list[str]:
    """The words by which a page calls itself, without numbers: a counter may stand there."""
    titles = (place for place in page.blocks if place.kind is BlockKind.TITLE)
    return [word for place in titles for word in words_of(place) if not any(map(str.isdigit, word))]
