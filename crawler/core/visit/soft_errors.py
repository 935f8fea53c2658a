"""Visits with a soft error: how it is recognized, what the visit keeps unchanged, and what it teaches."""

from datetime import datetime, timedelta
from functools import partial

from msgspec.structs import replace

from crawler.core.change.change import Change
from crawler.core.freshness.estimates import compute_change_chance
from crawler.core.http.response import Fetched, SoftError
from crawler.core.http.urls import Url, compute_page_key
from crawler.core.noise.words import split_words
from crawler.core.page.block import BlockKind
from crawler.core.page.content import HtmlEnd, PageContent, detect_html_end
from crawler.core.page.fingerprint import compute_digest, count_distance_bits
from crawler.core.page.html import parse_html
from crawler.core.page.media_type import detect_kind
from crawler.core.page.scan import PASSWORD_FIELD
from crawler.core.page.snapshot import Parsed
from crawler.core.soft_errors import (
    EMPTY_SKETCH,
    MAX_WITHHELD,
    VISITS_UNTIL_ACCEPTED,
    VISITS_UNTIL_GONE,
    SoftErrorMemory,
    SoftErrorSignals,
    TextReplacement,
    TextSketch,
    collect_text_signals,
    is_shared,
    measure_replacement,
    recognize_soft_error,
    record_good_visit,
    remember_shared_text,
    select_own_text,
    sketch_blocks,
    sketch_target,
)
from crawler.core.visit.lifecycle import (
    CONFIRM_MISSING_AFTER,
    build_failed_visit,
    build_missing_visit,
    compute_retry_wait,
)
from crawler.core.visit.links import compute_redirect_key
from crawler.core.visit.state import State
from crawler.core.visit.visit import Baseline, DomainKnowledge, HeadOutcome, Target, Visit

DAY = timedelta(days=1)
MIN_DAILY_CHANGE_CHANCE = 0.5  # probability of a change within a day from which a new text is expected
MAX_CUT_SHARE = 0.8  # if less of the main text is left, missing closing tags mean a truncated body
MAX_SLIGHT_BITS = 4  # of 64; up to this fingerprint distance, most of the text is still there
NO_BODY = compute_digest(b"")
UNEXPLAINED = frozenset({SoftError.SHRUNK, SoftError.REPLACED})  # counted as the same soft error
# Kinds for another text instead of the page's. The kind may change as other pages of the domain show the text too.
OTHER_TEXTS = UNEXPLAINED | {SoftError.SOFT_404, SoftError.SHARED_TEXT}
MAX_IN_A_ROW = 1000  # maximum count of visits in a row with a soft error
REDIRECTED = TextReplacement(before=1, after=1, kept=0.0, added=1.0)  # a redirect keeps nothing of a page's text


def add_soft_error_signs(baseline: Baseline, content: PageContent, body: bytes, *, content_type: str) -> Baseline:
    """Add to the Baseline the signs of a soft error that the Snapshot itself has: a truncated end, a password field.

    content: the current page; the Snapshot is only parsed if the current page shows such a sign.
    body, content_type: those of the Snapshot.
    """
    is_plain = content.html_end is HtmlEnd.CLOSED and not content.has_password_field
    if is_plain or detect_kind(body, content_type) != "html":
        return baseline
    markup = parse_html(body, content_type)
    has_field = bool(markup.scan.signs & PASSWORD_FIELD)
    return replace(baseline, html_end=detect_html_end(markup.source), has_password_field=has_field)


def find_soft_error_signals(
    target: Target, parsed: Parsed, baseline: Baseline | None, *, knowledge: DomainKnowledge
) -> SoftErrorSignals | None:
    """Return the signals by which a soft error of a parsed page is recognized, or None if none can be recognized."""
    before, after, content = target.version, parsed.version, parsed.content
    collect = partial(collect_text_signals, parsed.blocks, knowledge.mask, url=target.url, is_seed=target.depth == 0)
    if before is None:
        # On a new page, only a soft error that the domain has shown before can be recognized.
        shared_texts = any(seen.is_confirmed for seen in knowledge.soft_errors.shared_texts)
        is_recognizable = not target.depth or knowledge.soft_errors.not_found_text or shared_texts
        return collect() if is_recognizable else None
    had_text, has_text = before.fingerprint is not None, after.fingerprint is not None
    if after.body_digest == NO_BODY or (had_text and not has_text and content.kind != "binary"):
        return SoftErrorSignals(EMPTY_SKETCH, is_empty=after.body_digest == NO_BODY, is_blank=True)
    if baseline is None or baseline.has_returned or before.fingerprint is None or after.fingerprint is None:
        return None
    bits = count_distance_bits(before.fingerprint, after.fingerprint)
    if content.html_end is HtmlEnd.CLOSED and bits <= MAX_SLIGHT_BITS:
        return None
    signals = collect(before=baseline.blocks)
    kept_share = signals.replacement.kept if signals.replacement else 1.0
    is_torn = content.html_end is HtmlEnd.TRUNCATED and baseline.html_end is not HtmlEnd.TRUNCATED
    is_open = content.html_end is HtmlEnd.OPEN and baseline.html_end is HtmlEnd.CLOSED and kept_share < MAX_CUT_SHARE
    return replace(
        signals,
        snapshot_digest=before.main_digest,
        is_cut=is_torn or is_open,
        has_password_field=content.has_password_field and not baseline.has_password_field,
        changes_often=compute_change_chance(target.rate_estimate, 1.0) >= MIN_DAILY_CHANGE_CHANCE,
        group=target.group,
    )


def find_redirect_signals(target: Target, location: Url) -> SoftErrorSignals | None:
    """Return the signals of a page with a Snapshot that now redirects; None without a Snapshot."""
    if target.version is None:
        return None
    sketch, before = sketch_target(compute_redirect_key(target, location)), target.version.main_digest
    return SoftErrorSignals(sketch, replacement=REDIRECTED, snapshot_digest=before, is_seed=target.depth == 0)


def find_soft_error(
    target: Target, signals: SoftErrorSignals | None, *, now: datetime, knowledge: DomainKnowledge
) -> SoftError | None:
    """Return the soft error of a response, or None.

    After VISITS_UNTIL_ACCEPTED visits, or MAX_WITHHELD after the first one, the response is accepted as the page. A
    soft 404 that is confirmed by then remains one: the page is gone.
    """
    soft_error = recognize_soft_error(signals, knowledge.soft_errors, now=now) if signals is not None else None
    if signals is None or soft_error is None or soft_error is SoftError.EMPTY:  # an empty body has nothing to accept
        return soft_error
    if soft_error is SoftError.SOFT_404 and _is_confirmed_gone(target, signals, now=now, knowledge=knowledge):
        return soft_error
    visits = VISITS_UNTIL_ACCEPTED.get(soft_error)
    if visits is not None and _is_confirmed(target, soft_error, visits, now):
        return None
    return None if _is_withheld_too_long(target, soft_error, now) else soft_error


def _find_withheld_since(target: Target, soft_error: SoftError, now: datetime) -> datetime:
    """Return when this soft error was first found without a successful visit since; `now` if this is the first time.

    Failures in between that are not soft errors do not matter: the content stays withheld.
    """
    kinds = {soft_error} if soft_error not in OTHER_TEXTS else OTHER_TEXTS
    is_other_kind = target.reason in set(SoftError) - kinds - {SoftError.EMPTY}
    return now if target.withheld_since is None or is_other_kind else target.withheld_since


def _is_withheld_too_long(target: Target, soft_error: SoftError, now: datetime) -> bool:
    return now - _find_withheld_since(target, soft_error, now) >= MAX_WITHHELD


def _count_in_a_row(target: Target, soft_error: SoftError) -> int:
    """Return how many previous visits in a row had this soft error. A failure of another kind ends the row."""
    is_same = target.reason == soft_error.value or (soft_error in UNEXPLAINED and target.reason in UNEXPLAINED)
    return target.soft_errors if is_same else 0


def _is_confirmed(target: Target, soft_error: SoftError, visits: int, now: datetime) -> bool:
    """Return whether this visit and enough previous ones in a row had this soft error.

    The previous visit must be at least CONFIRM_MISSING_AFTER ago.  visits: the required number, including this one.
    """
    if _count_in_a_row(target, soft_error) + 1 < visits:
        return False
    return target.last_visit_at is not None and now - target.last_visit_at >= CONFIRM_MISSING_AFTER


def build_soft_error_visit(
    target: Target,
    response: Fetched,
    signals: SoftErrorSignals,
    soft_error: SoftError,
    *,
    now: datetime,
    knowledge: DomainKnowledge,
) -> Visit:
    """Build the Visit of a soft error. A confirmed soft 404 makes the page gone; others change nothing in it.

    The wait until the next visit grows only with the visits that had this soft error, not with previous failures of
    other kinds, such as a long outage. It ends at the latest MAX_WITHHELD after the first of these visits.
    """
    in_a_row = min(_count_in_a_row(target, soft_error) + 1, MAX_IN_A_ROW)
    if soft_error is SoftError.SOFT_404 and _is_confirmed_gone(target, signals, now=now, knowledge=knowledge):
        visit = replace(build_missing_visit(target, replace(response, status=410), now=now), status=response.status)
    else:
        visit = build_failed_visit(target, response, now=now, reason="")
        visit = replace(visit, due_at=now + min(compute_retry_wait(in_a_row), target.terms.max_interval))
        if soft_error is not SoftError.EMPTY:
            since = _find_withheld_since(target, soft_error, now)
            visit = replace(visit, withheld_since=since, due_at=min(visit.due_at, since + MAX_WITHHELD))
    return replace(visit, reason=soft_error.value, soft_errors=in_a_row, signals=signals)


def _is_confirmed_gone(target: Target, signals: SoftErrorSignals, *, now: datetime, knowledge: DomainKnowledge) -> bool:
    """Return whether a soft 404 is confirmed by further visits, as for a 404, while other pages of the domain are fine.

    It is confirmed at once for a page without a version, and after MAX_WITHHELD if several pages show the text.
    """
    if target.state is State.GONE or not knowledge.soft_errors.is_proven:
        return target.state is State.GONE
    if target.version is None:
        return True
    if is_shared(signals, knowledge.soft_errors, now=now):
        return _is_withheld_too_long(target, SoftError.SOFT_404, now)
    return _is_confirmed(target, SoftError.SOFT_404, VISITS_UNTIL_GONE, now)


def may_be_soft_404(visit: Visit) -> bool:
    """Return whether a visit may have found a soft 404, which a not-found probe can show."""
    signals = visit.signals
    if signals is None or signals.replacement is None or visit.is_good:
        return False
    return bool(signals.own_text) and signals.replacement.is_complete


def update_soft_error_memory(soft_errors: SoftErrorMemory, visit: Visit) -> SoftErrorMemory:
    """Return the domain's memory of soft errors after one more visit."""
    signals = visit.signals
    if visit.change is Change.CHANGED and visit.target.reason in UNEXPLAINED:
        soft_errors = replace(soft_errors, replaced_groups=soft_errors.replaced_groups | {visit.target.group})
    if signals is not None and signals.replacement is not None and signals.replacement.is_complete:
        return remember_shared_text(soft_errors, signals, now=visit.at)
    is_read = visit.outcome == "fetched" and visit.head_outcome is not HeadOutcome.BODY_SKIPPED and not visit.reason
    return record_good_visit(soft_errors, signals) if visit.is_good and is_read else soft_errors


def read_not_found_text(response: Fetched, parsed: Parsed | None, *, knowledge: DomainKnowledge) -> TextSketch | None:
    """Return a sketch of a not-found probe's response (empty if parsed is None), or None if that reveals nothing."""
    if response.status >= 500 or response.status == 429:
        return None
    if response.location is not None:
        return sketch_target(compute_page_key(response.location))
    return EMPTY_SKETCH if parsed is None else sketch_blocks(select_own_text(parsed.blocks, knowledge.mask))


def is_same_page(target: Target, first: Parsed, second: Parsed, *, now: datetime, knowledge: DomainKnowledge) -> bool:
    """Return whether a second fetch returned the same page as the first. knowledge: before the second fetch."""
    one, other = first.content, second.content
    is_torn = other.html_end is not HtmlEnd.CLOSED and one.html_end is not other.html_end
    asks_password = other.has_password_field and not one.has_password_field
    if is_torn or asks_password or other.is_instant_refresh or not second.blocks or one.kind != other.kind:
        return False
    known, baseline = replace(target, version=first.version), Baseline(first.blocks, now)
    signals = find_soft_error_signals(known, second, baseline, knowledge=knowledge)
    soft_error = recognize_soft_error(signals, knowledge.soft_errors, now=now) if signals is not None else None
    if soft_error is not None and not (soft_error is SoftError.TRUNCATED and one.html_end is other.html_end):
        return False
    replacement = measure_replacement(*(select_own_text(page.blocks, knowledge.mask) for page in (first, second)))
    return not replacement.is_complete or _list_title_words(first) == _list_title_words(second)


def _list_title_words(page: Parsed) -> list[str]:
    """Return the words of a page's title without numbers, which may be counters."""
    titles = (block for block in page.blocks if block.kind is BlockKind.TITLE)
    return [word for block in titles for word in split_words(block) if not any(map(str.isdigit, word))]
