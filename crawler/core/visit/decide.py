"""Decide one finished look: from what we knew and what the web said to a Visit. Pure, so that it can be replayed.

A page is compared with its last Snapshot once for both questions: is a second fetch wanted, and what is the verdict?
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import assert_never

from crawler.core.change.change import Change, ComparedBlocks, Rung, Verdict, judge
from crawler.core.change.difference import Difference, difference, significant
from crawler.core.change.mask import ENOUGH_RETURNS, NoiseMask, learn_variants, returns_of, variant_of
from crawler.core.change.observation import (
    Observation,
    has_second_fetches_left,
    needs_second_fetch,
    update_mask,
    update_with_difference,
)
from crawler.core.http.backoff import http_date
from crawler.core.http.response import Answer, Fetched, NotModified, Unreached
from crawler.core.http.urls import PageKey, Url
from crawler.core.noise.repeat_fetch import hidden_by_mask, wants_test
from crawler.core.noise.words import numbers_of
from crawler.core.novelty import sample_of
from crawler.core.page.fingerprint import digest
from crawler.core.page.outline import Block, left_out
from crawler.core.page.snapshot import Parsed, Version, parse, snapshot_of
from crawler.core.soft_errors import SoftErrorSignals
from crawler.core.visit.lifecycle import failed_visit, missing_visit, passed_on_visit, redirected_visit, unreached_visit
from crawler.core.visit.links import canonical_of, feeds_of, links_of
from crawler.core.visit.soft_errors import UNEXPLAINED, redirect_signals, signals_of, soft_error_of, soft_error_visit
from crawler.core.visit.update import CLOCK_SLACK, change_age, is_honest, learnt_visit, modified_of
from crawler.core.visit.visit import AWAY, PERMANENT, TEMPORARY, Baseline, Evidence, Known, State, Target, Visit

ENOUGH_LOOKS = 100  # of a domain, after which only a sample of its pages teaches what its boilerplate is
SAMPLED_PART = 16  # one page in so many is in the sample


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison(ComparedBlocks):
    """A page compared with its Baseline under a mask that has learnt from this look.

    under: the domain's mask before this look.
    signals: of a soft error, or None.  hidden: volatile blocks that differ, where nothing is significant.
    """

    under: NoiseMask = field(repr=False)
    signals: SoftErrorSignals | None
    hidden: Sequence[Block] = ()


def compare(
    target: Target, parsed: Parsed, baseline: Baseline, *, now: datetime, known: Known, settled: bool = False
) -> Comparison:
    """Compare a page with its Baseline. settled: the mask is taken as it stands, and learns nothing."""
    mask = known.mask
    if settled:
        found = difference(baseline.blocks, parsed.blocks, mask.volatile)
    else:
        seen = Observation(
            target.key, parsed.blocks, now, baseline.blocks, baseline.at, baseline.second_fetches, url=target.url
        )
        mask, found = update_with_difference(mask, seen)
    own = significant(found, mask, then=baseline.at, now=now)
    if not settled:
        mask = _with_variants(mask, target.key, own, at=now)
    left = _without_variants(own, mask, target.key)
    return Comparison(
        under=known.mask,
        mask=mask,
        found=found,
        significant=left,
        signals=signals_of(target, parsed, baseline, known=known),
        hidden=() if left or settled else hidden_by_mask(baseline.blocks, parsed.blocks, mask.volatile),
        unseen=_rung_unseen(parsed, baseline),
        varies=left != own,
    )


def _with_variants(mask: NoiseMask, page: PageKey, own: Difference, *, at: datetime) -> NoiseMask:
    went, came = ({variant_of(page, mask.form_of(block)) for block in side} for side in (own.went, own.came))
    return replace(mask, variants=learn_variants(mask.variants, went=went, came=came, at=at))


def _without_variants(own: Difference, mask: NoiseMask, page: PageKey) -> Difference:
    """A difference without the page's known variants; blocks with a number are never variants."""

    def is_own(was: Block | None, now: Block | None) -> bool:
        sides = [block for block in (was, now) if block is not None]
        returns = [returns_of(mask.variants, variant_of(page, mask.form_of(block))) for block in sides]
        if not all(returns) or max(returns) < ENOUGH_RETURNS:
            return True
        numbers = [numbers_of(mask.volatile.masked(block)) for block in sides]
        return numbers[0] != (numbers[1] if len(sides) == 2 else ())

    return own.only(is_own)


def _rung_unseen(parsed: Parsed, baseline: Baseline) -> Rung:
    """Why no block differs though the bodies do: a user's rule hides it, its words are volatile, or only markup did."""
    if left_out(baseline.blocks) != left_out(parsed.blocks):
        return Rung.RULE
    then, now = ([(block.kind, block.text) for block in blocks] for blocks in (baseline.blocks, parsed.blocks))
    return Rung.VOLATILE if then != now else Rung.MARKUP


def wants_second_fetch(
    target: Target, comparison: Comparison, baseline: Baseline, *, now: datetime, known: Known
) -> bool:
    """Whether a second fetch, at once, would tell more about what differs; never of an explained soft error."""
    soft_error = soft_error_of(target, comparison.signals, now=now, known=known)
    if soft_error is not None and soft_error not in UNEXPLAINED:
        return False
    left, mask = comparison.significant, comparison.mask
    if left or baseline.second_fetches:
        return needs_second_fetch(left, mask, taken=len(baseline.second_fetches), returned=baseline.has_returned)
    is_test_due = wants_test(comparison.hidden, mask.volatile, page=target.key, looks=mask.looks)
    return has_second_fetches_left(mask) and is_test_due


def decide(
    target: Target,
    answer: Answer,
    *,
    now: datetime,
    known: Known,
    parsed: Parsed | None = None,
    baseline: Baseline | None = None,
    comparison: Comparison | None = None,
    settled: bool = False,
) -> Visit:
    """Decide what a look means. Always: equal arguments give equal Visits.

    now: the knowledge time at which the answer was complete.  baseline: the blocks to compare with, if
    needs_baseline.  parsed, comparison: of the body, where the caller has them already; they save work and do not
    change the result.  settled: the domain's mask is taken as it stands, and learns nothing from this look.
    """
    match answer:
        case NotModified():
            return _not_modified_visit(target, answer, now=now)
        case Unreached():
            return unreached_visit(target, answer, now=now)
        case Fetched(status=status) if 200 <= status < 300:
            if not needs_parsing(target, answer):
                return _same_bytes_visit(target, answer, now=now)
            parsed = parsed or _parse(target, answer, known)
            is_stale = comparison is None or comparison.under is not known.mask  # the mask has learnt meanwhile
            if baseline is not None and parsed.blocks and is_stale:
                comparison = compare(target, parsed, baseline, now=now, known=known, settled=settled)
            return _parsed_visit(target, answer, parsed, baseline, comparison, now=now, known=known, settled=settled)
        case Fetched(status=status, location=location) if status in PERMANENT | TEMPORARY and location is not None:
            return _redirect_visit(target, answer, location, now=now, known=known)
        case Fetched(status=404 | 410):
            return missing_visit(target, answer, now=now)
        case Fetched():
            return failed_visit(target, answer, now=now, reason=f"http_{answer.status}")
        case _:
            assert_never(answer)


def as_kept(visit: Visit, kept: Fetched, parsed: Parsed, *, known: Known) -> Visit:
    """The Visit with another reading of the same page as what is kept of it from now on.

    A page begins to be rendered, or is rendered no more: like is judged by like, and what differs between the two
    readings is no change of the page's. kept: the answer with the body of that reading.
    """
    target, before = visit.target, visit.target.version
    if not visit.is_good or before is None or visit.state is not State.KNOWN:
        return visit
    first = decide(replace(target, version=None), kept, now=visit.at, known=known, parsed=parsed, settled=True)
    if first.snapshot is None:
        return visit
    version = replace(first.snapshot.version, number=before.number + 1)
    return replace(
        visit,
        links=first.links,
        recipients=first.recipients,
        external_links=first.external_links,
        snapshot=replace(first.snapshot, version=version),
        body_bytes=kept.received_bytes,
        evidence=None,
    )


def _not_modified_visit(target: Target, answer: NotModified, *, now: datetime) -> Visit:
    if target.version is None:
        return failed_visit(target, answer, now=now, reason="unasked_304")
    visit = learnt_visit(target, Verdict(Change.SAME, Rung.NOT_MODIFIED), answer, now=now)
    return replace(visit, status=304, saved_bytes=target.received_bytes, recipients=target.outlinks)


def needs_parsing(target: Target, answer: Answer) -> bool:
    """Whether an answer has a body that must be parsed: a good one, other than the last Snapshot's."""
    if not isinstance(answer, Fetched) or not 200 <= answer.status < 300:
        return False
    version = target.version
    return version is None or target.state is not State.KNOWN or version.body_digest != digest(answer.body)


def wants_blocks(target: Target, known: Known) -> bool:
    """Return whether a body's blocks are needed.

    They are compared with those of the version before and with what the site shows in place of absent pages, and a
    sample of new pages teaches the boilerplate.
    """
    return target.version is not None or bool(known.soft_errors.absent) or _teaches_boilerplate(target, known)


def _teaches_boilerplate(target: Target, known: Known) -> bool:
    return known.mask.looks < ENOUGH_LOOKS or target.key[0] % SAMPLED_PART == 0


def needs_baseline(target: Target, parsed: Parsed) -> bool:
    """Whether the blocks of the last Snapshot are needed to tell what changed."""
    version = target.version
    return version is not None and bool(parsed.blocks) and version.text_digest != parsed.version.text_digest


def reconsider(visit: Visit, known: Known) -> Visit:
    """Judge a change once more by what has been learnt of the domain since.

    The change may have been a site edit, or the first page of a soft error that later pages showed as well.
    """
    evidence = visit.evidence
    if evidence is None or (visit.mask is known.mask and visit.signals is None):
        return visit
    reconsidered = decide(
        visit.target,
        evidence.answer,
        now=visit.at,
        known=known,
        parsed=evidence.parsed,
        baseline=evidence.baseline,
        settled=True,
    )
    if reconsidered.change not in {Change.COSMETIC, Change.UNKNOWN}:
        return visit
    return replace(
        reconsidered,
        requests_beside=visit.requests_beside,
        head_outcome=visit.head_outcome,
        refused_304=visit.refused_304,
        received_bytes=visit.received_bytes,
        rendering=visit.rendering,
        list_news=visit.list_news,
    )


def _redirect_visit(target: Target, answer: Fetched, location: Url, *, now: datetime, known: Known) -> Visit:
    signals = redirect_signals(target, location) if answer.status in TEMPORARY else None
    soft_error = soft_error_of(target, signals, now=now, known=known)
    if signals is not None and soft_error is not None:
        return soft_error_visit(target, answer, signals, soft_error, now=now, known=known)
    return replace(redirected_visit(target, answer, now=now, known=known), signals=signals)


def _same_bytes_visit(target: Target, answer: Fetched, *, now: datetime) -> Visit:
    """The Visit of a look that brought exactly the bytes of the last Snapshot."""
    touched = modified_of(answer, now=now)
    lies = touched is not None and target.last_good_at is not None and touched > target.last_good_at + CLOCK_SLACK
    visit = learnt_visit(target, Verdict(Change.SAME, Rung.BYTES, 0), answer, now=now)
    return replace(visit, recipients=target.outlinks, modified_honest=False if lies else None)


def _parsed_visit(
    target: Target,
    answer: Fetched,
    parsed: Parsed,
    baseline: Baseline | None,
    comparison: Comparison | None,
    *,
    now: datetime,
    known: Known,
    settled: bool,
) -> Visit:
    """The Visit of a look whose body was parsed and judged against the last Snapshot."""
    before = target.version
    content, after = parsed.content, replace(parsed.version, number=before.number + 1 if before else 1)
    if content.is_passed_on:
        return passed_on_visit(target, answer, content, now=now, known=known)
    links, external_links = links_of(content, target=target, known=known)
    alias = canonical_of(content, links, known=known)
    verdict = judge(before, after, comparison)
    signals = None
    if verdict.change in {Change.FIRST, Change.CHANGED}:
        signals = comparison.signals if comparison is not None else signals_of(target, parsed, baseline, known=known)
        soft_error = soft_error_of(target, signals, now=now, known=known)
        if signals is not None and soft_error is not None:
            return soft_error_visit(target, answer, signals, soft_error, now=now, known=known)
    modified = modified_of(answer, now=now)
    if target.state in AWAY and before is not None:
        verdict = replace(verdict, change=Change.BACK)
    is_dated = http_date(answer.date) is not None
    honest = is_honest(target, modified, verdict.change, now=now, is_dated=is_dated)
    age = change_age(target, modified, now=now) if honest else None
    snapshot = None
    if _is_new_version(verdict, before, after):
        bits, headers = verdict.distance_bits, answer.headers
        snapshot = snapshot_of(content, after, answer.body, answer.content_type, bits=bits, headers=headers)
    changed = verdict.change is Change.CHANGED and baseline is not None
    return replace(
        learnt_visit(target, verdict, answer, now=now, age=age),
        links=links,
        feeds=feeds_of(content, target=target, known=known),
        canonical=alias,
        recipients=(alias,) if alias else tuple(link.key for link in links),
        external_links=() if alias else external_links,
        modified_honest=honest,
        snapshot=snapshot,
        mask=None if settled else _mask_after(target, parsed, comparison, now=now, known=known),
        evidence=Evidence(answer, parsed, baseline) if changed and baseline else None,
        signals=signals,
        sample=parsed.sample or sample_of(content, answer.body, url=target.url) if before is None else None,
    )


def _parse(target: Target, answer: Fetched, known: Known) -> Parsed:
    return parse(
        answer.body,
        url=target.url,
        content_type=answer.content_type,
        robots_tag=answer.robots_tag,
        refresh=answer.refresh,
        outlined=wants_blocks(target, known),
    )


def _mask_after(
    target: Target, parsed: Parsed, comparison: Comparison | None, *, now: datetime, known: Known
) -> NoiseMask | None:
    """The domain's mask after a look; None if the look teaches nothing."""
    if comparison is not None:
        return comparison.mask
    if target.version is not None or not parsed.blocks or not _teaches_boilerplate(target, known):
        return None
    return update_mask(known.mask, Observation(target.key, parsed.blocks, now, url=target.url))


def _is_new_version(verdict: Verdict, before: Version | None, after: Version) -> bool:
    """Whether a Snapshot is due. A page that is back gets one, too, if anything but its markup differs.

    The page's validators become those of today's body, so a 304 would hide whatever differed and was not kept.
    """
    if verdict.change is Change.BACK and before is not None:
        has_text = before.fingerprint is not None and after.fingerprint is not None
        return after.text_digest != before.text_digest if has_text else after.body_digest != before.body_digest
    return verdict.change in {Change.FIRST, Change.CHANGED}
