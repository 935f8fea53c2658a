"""Decide one finished visit from the stored knowledge and the response. Pure, so visits can be replayed."""

from collections.abc import Sequence
from datetime import datetime
from typing import TypedDict, assert_never

from msgspec.structs import replace

from crawler.core.change.boilerplate import parse_page
from crawler.core.change.change import Change, Evidence
from crawler.core.change.difference import Difference, compute_difference, select_significant
from crawler.core.change.mask import ENOUGH_RETURNS, NoiseMask, compute_variant_key, count_returns, learn_variants
from crawler.core.change.mask_learning import (
    Observation,
    has_second_fetches_left,
    learn_first_visit,
    needs_second_fetch,
    update_mask,
    update_mask_and_diff,
)
from crawler.core.change.verdict import ComparedBlocks, Verdict, judge_versions
from crawler.core.http.backoff import parse_http_date
from crawler.core.http.response import Fetched, NotModified, Response, Unreached
from crawler.core.http.urls import PageKey, Url
from crawler.core.noise.noise import NO_VOLATILE_CONTENT
from crawler.core.noise.second_fetch import find_hidden_blocks, needs_test
from crawler.core.page.block import Block
from crawler.core.page.fingerprint import compute_digest
from crawler.core.page.outline import get_left_out_hash
from crawler.core.page.snapshot import HeaderFields, Parsed, Version, build_snapshot
from crawler.core.soft_errors import SoftErrorSignals
from crawler.core.visit.lifecycle import (
    build_failed_visit,
    build_missing_visit,
    build_redirected_visit,
    build_refresh_visit,
    build_unreached_visit,
)
from crawler.core.visit.links import find_canonical, resolve_feeds, resolve_links
from crawler.core.visit.soft_errors import (
    UNEXPLAINED,
    build_soft_error_visit,
    find_redirect_signals,
    find_soft_error,
    find_soft_error_signals,
)
from crawler.core.visit.state import AWAY, PERMANENT_REDIRECTS, TEMPORARY_REDIRECTS, State
from crawler.core.visit.update import CLOCK_SLACK, build_learned_visit, compute_change_age, get_modified_at, is_honest
from crawler.core.visit.visit import Baseline, DomainKnowledge, Target, VerdictInputs, Visit

ENOUGH_VISITS = 100  # visits to a domain after which only a sample of its new pages is used to learn its boilerplate
SAMPLE_INTERVAL = 16  # one in this many pages is in the sample


class Comparison(ComparedBlocks, frozen=True, kw_only=True):
    """A page compared with its Baseline under a mask that has learned from this visit.

    base_mask: the domain's mask before this visit.  signals: those of a soft error, or None.
    hidden_blocks: new blocks with volatile content; set only if no difference is significant.
    """

    base_mask: NoiseMask
    signals: SoftErrorSignals | None
    hidden_blocks: Sequence[Block] = ()


def compare_page(
    target: Target,
    parsed: Parsed,
    baseline: Baseline,
    *,
    now: datetime,
    knowledge: DomainKnowledge,
    is_mask_frozen: bool = False,
) -> Comparison:
    """Compare a page with its Baseline. is_mask_frozen: whether the mask is used but learns nothing."""
    mask = knowledge.mask
    if is_mask_frozen:
        diff = compute_difference(baseline.blocks, parsed.blocks, mask.volatile)
    else:
        known = baseline.blocks, baseline.at, baseline.second_fetches
        mask, diff = update_mask_and_diff(mask, Observation(target.key, parsed.blocks, now, *known, url=target.url))
    significant_diff = select_significant(diff, mask, then=baseline.at, now=now)
    if not is_mask_frozen:
        mask = _learn_variants(mask, target.key, significant_diff, at=now)
    remaining_diff = _drop_variants(significant_diff, mask, target.key)
    hidden_blocks: Sequence[Block] = ()
    if not remaining_diff and not is_mask_frozen:
        hidden_blocks = find_hidden_blocks(baseline.blocks, parsed.blocks, mask.volatile)
    return Comparison(
        base_mask=knowledge.mask,
        mask=mask,
        difference=diff,
        significant=remaining_diff,
        signals=find_soft_error_signals(target, parsed, baseline, knowledge=knowledge),
        hidden_blocks=hidden_blocks,
        fallback_evidence=_find_fallback_evidence(parsed, baseline),
        is_variant=remaining_diff != significant_diff,
    )


def _learn_variants(mask: NoiseMask, page: PageKey, diff: Difference, *, at: datetime) -> NoiseMask:
    sides = diff.old_blocks, diff.new_blocks
    removed, added = ({compute_variant_key(page, mask.compute_form(block)) for block in side} for side in sides)
    return replace(mask, variants=learn_variants(mask.variants, removed=removed, added=added, at=at))


def _drop_variants(diff: Difference, mask: NoiseMask, page: PageKey) -> Difference:
    """Remove known variants of the page from a difference, unless a number appears, disappears or differs."""

    def is_no_variant(was: Block | None, now: Block | None) -> bool:
        sides = [block for block in (was, now) if block is not None]
        returns = [count_returns(mask.variants, compute_variant_key(page, mask.compute_form(block))) for block in sides]
        if not all(returns) or max(returns) < ENOUGH_RETURNS:
            return True
        return mask.select_numbers(was) != mask.select_numbers(now)

    return diff.filter_pairs(is_no_variant)


def _find_fallback_evidence(parsed: Parsed, baseline: Baseline) -> Evidence:
    """Return why the bodies differ but no block does: because of a user's rule, volatile words, or markup only."""
    if get_left_out_hash(baseline.blocks) != get_left_out_hash(parsed.blocks):
        return Evidence.RULE
    old, new = ([(block.kind, block.text) for block in blocks] for blocks in (baseline.blocks, parsed.blocks))
    return Evidence.VOLATILE if old != new else Evidence.MARKUP


def should_fetch_again(
    target: Target, comparison: Comparison, baseline: Baseline, *, now: datetime, knowledge: DomainKnowledge
) -> bool:
    """Return whether an immediate second fetch would reveal more about the difference.

    For a soft error whose cause is known, it would not.
    """
    soft_error = find_soft_error(target, comparison.signals, now=now, knowledge=knowledge)
    if soft_error is not None and soft_error not in UNEXPLAINED:
        return False
    significant, mask, count = comparison.significant, comparison.mask, len(baseline.second_fetches)
    if significant or count:
        return needs_second_fetch(significant, mask, second_fetches=count, has_returned=baseline.has_returned)
    is_test_due = needs_test(comparison.hidden_blocks, mask.volatile, page=target.key, visits=mask.visits)
    return has_second_fetches_left(mask) and is_test_due


class _Options(TypedDict):
    now: datetime
    knowledge: DomainKnowledge
    is_mask_frozen: bool


def decide_visit(
    target: Target,
    response: Response,
    *,
    now: datetime,
    knowledge: DomainKnowledge,
    parsed: Parsed | None = None,
    baseline: Baseline | None = None,
    comparison: Comparison | None = None,
    is_mask_frozen: bool = False,
) -> Visit:
    """Decide a visit. Invariant: equal arguments give equal Visits.

    now: when the response was complete.
    baseline: the blocks to compare with; required if `needs_baseline`, unless they are no longer available.
    parsed, comparison: the parsed body and its comparison, if the caller has them already; they do not change the
    result.
    is_mask_frozen: whether the domain's mask is used but learns nothing from this visit.
    """
    match response:
        case NotModified():
            return _build_not_modified_visit(target, response, now=now)
        case Unreached():
            return build_unreached_visit(target, response, now=now)
        case Fetched(status=status) if 200 <= status < 300:
            if not needs_parsing(target, response):
                return _build_same_bytes_visit(target, response, now=now)
            parsed = parsed or _parse_response(target, response, knowledge)
            is_stale = comparison is None or comparison.base_mask is not knowledge.mask  # the mask has changed since
            options = _Options(now=now, knowledge=knowledge, is_mask_frozen=is_mask_frozen)
            if baseline is not None and parsed.blocks and is_stale:
                comparison = compare_page(target, parsed, baseline, **options)
            return _build_parsed_visit(target, response, parsed, baseline, comparison, **options)
        case Fetched(status=code, location=to) if to is not None and code in PERMANENT_REDIRECTS | TEMPORARY_REDIRECTS:
            return _build_redirect_visit(target, response, to, now=now, knowledge=knowledge)
        case Fetched(status=404 | 410):
            return build_missing_visit(target, response, now=now)
        case Fetched():
            return build_failed_visit(target, response, now=now, reason=f"http_{response.status}")
        case _:
            assert_never(response)


def switch_reading(visit: Visit, stored: Fetched, parsed: Parsed, *, knowledge: DomainKnowledge) -> Visit:
    """Return the Visit of a page that is from now on stored as rendered, or no longer, with a new Snapshot.

    Later visits are then compared with a Snapshot of the same kind. The difference between the two kinds is not a
    change of the page.
    stored, parsed: the response with the body of the new kind, and that body.
    """
    target, before = visit.target, visit.target.version
    if not visit.is_good or before is None or visit.state is not State.FETCHED:
        return visit
    new = replace(target, version=None)
    first = decide_visit(new, stored, now=visit.at, knowledge=knowledge, parsed=parsed, is_mask_frozen=True)
    if first.snapshot is None:
        return visit
    version = replace(first.snapshot.version, number=before.number + 1)
    return replace(
        visit,
        links=first.links,
        recipients=first.recipients,
        external_links=first.external_links,
        snapshot=replace(first.snapshot, version=version),
        body_bytes=stored.received_bytes,
        verdict_inputs=None,
    )


def _build_not_modified_visit(target: Target, response: NotModified, *, now: datetime) -> Visit:
    if target.version is None:
        return build_failed_visit(target, response, now=now, reason="unasked_304")
    visit = build_learned_visit(target, Verdict(Change.UNCHANGED, Evidence.NOT_MODIFIED), response, now=now)
    return replace(visit, status=304, saved_bytes=target.received_bytes, recipients=target.outlinks)


def needs_parsing(target: Target, response: Response) -> bool:
    """Return whether a response must be parsed: a 2xx, except the same body as the last Snapshot of a FETCHED page."""
    if not isinstance(response, Fetched) or not 200 <= response.status < 300:
        return False
    version = target.version
    return version is None or target.state is not State.FETCHED or version.body_digest != compute_digest(response.body)


def needs_blocks(target: Target, knowledge: DomainKnowledge) -> bool:
    """Return whether the blocks of a body are needed.

    They are compared with the previous version and with the domain's not-found text. In the sample of new pages that
    teaches the boilerplate, they are also compared with other texts that the domain has shown in place of a page.
    """
    if target.version is not None or knowledge.soft_errors.not_found_text:
        return True
    has_replaced = not target.depth or any(seen.is_confirmed for seen in knowledge.soft_errors.shared_texts)
    is_masked = knowledge.mask.volatile != NO_VOLATILE_CONTENT
    return (has_replaced or is_masked) and _teaches_boilerplate(target, knowledge)


def needs_forms(target: Target, knowledge: DomainKnowledge) -> bool:
    """Return whether only the forms of the blocks are needed: a sample of new pages teaches the boilerplate."""
    return not needs_blocks(target, knowledge) and _teaches_boilerplate(target, knowledge)


def _teaches_boilerplate(target: Target, knowledge: DomainKnowledge) -> bool:
    return knowledge.mask.visits < ENOUGH_VISITS or target.key[0] % SAMPLE_INTERVAL == 0


def needs_baseline(target: Target, parsed: Parsed) -> bool:
    """Return whether the blocks of the last Snapshot are needed to find the change."""
    version = target.version
    return version is not None and bool(parsed.blocks) and version.text_digest != parsed.version.text_digest


def reconsider_visit(visit: Visit, knowledge: DomainKnowledge) -> Visit:
    """Decide a visit with a change again, with the current knowledge about the domain.

    The change may turn out to be an edit of boilerplate, or a soft error that later pages showed too.
    """
    inputs = visit.verdict_inputs
    if inputs is None or (visit.mask is knowledge.mask and visit.signals is None):
        return visit
    frozen = _Options(now=visit.at, knowledge=knowledge, is_mask_frozen=True)
    reconsidered = decide_visit(visit.target, inputs.response, parsed=inputs.parsed, baseline=inputs.baseline, **frozen)
    if reconsidered.change not in {Change.COSMETIC, Change.UNKNOWN}:
        return visit
    return replace(
        reconsidered,
        extra_requests=visit.extra_requests,
        head_outcome=visit.head_outcome,
        refused_304=visit.refused_304,
        received_bytes=visit.received_bytes,
        rendering=visit.rendering,
        list_result=visit.list_result,
    )


def _build_redirect_visit(
    target: Target, response: Fetched, location: Url, *, now: datetime, knowledge: DomainKnowledge
) -> Visit:
    signals = find_redirect_signals(target, location) if response.status in TEMPORARY_REDIRECTS else None
    soft_error = find_soft_error(target, signals, now=now, knowledge=knowledge)
    if signals is not None and soft_error is not None:
        return build_soft_error_visit(target, response, signals, soft_error, now=now, knowledge=knowledge)
    return replace(build_redirected_visit(target, response, now=now, knowledge=knowledge), signals=signals)


def _build_same_bytes_visit(target: Target, response: Fetched, *, now: datetime) -> Visit:
    """Build the Visit for a body with exactly the bytes of the last Snapshot."""
    modified_at, last_good_at = get_modified_at(response, now=now), target.last_good_at
    is_dishonest = modified_at is not None and last_good_at is not None and modified_at > last_good_at + CLOCK_SLACK
    visit = build_learned_visit(target, Verdict(Change.UNCHANGED, Evidence.BYTES, 0), response, now=now)
    return replace(visit, recipients=target.outlinks, modified_honest=False if is_dishonest else None)


def _build_parsed_visit(
    target: Target,
    response: Fetched,
    parsed: Parsed,
    baseline: Baseline | None,
    comparison: Comparison | None,
    *,
    now: datetime,
    knowledge: DomainKnowledge,
    is_mask_frozen: bool,
) -> Visit:
    """Build the Visit for a parsed body, compared with the last Snapshot."""
    before = target.version
    content, after = parsed.content, replace(parsed.version, number=before.number + 1 if before else 1)
    if content.is_instant_refresh:
        return build_refresh_visit(target, response, content, now=now, knowledge=knowledge)
    links, external_links = resolve_links(content, target=target, knowledge=knowledge)
    canonical = find_canonical(content, links, knowledge=knowledge)
    verdict = judge_versions(before, after, comparison)
    signals = None
    if verdict.change in {Change.ADDED, Change.CHANGED}:
        signals = comparison.signals if comparison is not None else None
        if comparison is None:
            signals = find_soft_error_signals(target, parsed, baseline, knowledge=knowledge)
        soft_error = find_soft_error(target, signals, now=now, knowledge=knowledge)
        if signals is not None and soft_error is not None:
            return build_soft_error_visit(target, response, signals, soft_error, now=now, knowledge=knowledge)
    modified_at = get_modified_at(response, now=now)
    if target.state in AWAY and before is not None:
        verdict = replace(verdict, change=Change.RESTORED)
    is_dated = parse_http_date(response.date) is not None
    honest = is_honest(target, modified_at, verdict.change, now=now, is_dated=is_dated)
    age = compute_change_age(target, modified_at, now=now) if honest else None
    snapshot = None
    if _is_new_version(verdict, before, after):
        bits, headers = verdict.distance_bits, response.headers
        snapshot = build_snapshot(content, after, response.body, response.content_type, bits=bits, headers=headers)
    changed = verdict.change is Change.CHANGED and baseline is not None
    return replace(
        build_learned_visit(target, verdict, response, now=now, age=age),
        links=links,
        feeds=resolve_feeds(content, target=target, knowledge=knowledge),
        canonical=canonical,
        recipients=(canonical,) if canonical else tuple(link.key for link in links),
        external_links=() if canonical else external_links,
        modified_honest=honest,
        snapshot=snapshot,
        mask=None if is_mask_frozen else _update_mask(target, parsed, comparison, now=now, knowledge=knowledge),
        verdict_inputs=VerdictInputs(response, parsed, baseline) if changed and baseline else None,
        signals=signals,
        sample=parsed.sample if before is None else None,
        values=parsed.values,
    )


def _parse_response(target: Target, response: Fetched, knowledge: DomainKnowledge) -> Parsed:
    return parse_page(
        response.body,
        url=target.url,
        content_type=response.content_type,
        header_fields=HeaderFields(response.robots_tag, response.refresh),
        with_blocks=needs_blocks(target, knowledge),
        with_forms=needs_forms(target, knowledge),
    )


def _update_mask(
    target: Target, parsed: Parsed, comparison: Comparison | None, *, now: datetime, knowledge: DomainKnowledge
) -> NoiseMask | None:
    """Return the domain's mask after a visit, or None if the visit teaches nothing."""
    if comparison is not None:
        return comparison.mask
    if parsed.forms is not None:
        return learn_first_visit(knowledge.mask, target.url, parsed.forms)
    if target.version is not None or not parsed.blocks or not _teaches_boilerplate(target, knowledge):
        return None
    return update_mask(knowledge.mask, Observation(target.key, parsed.blocks, now, url=target.url))


def _is_new_version(verdict: Verdict, before: Version | None, after: Version) -> bool:
    """Return whether the visit stores a Snapshot. A restored page gets one, too, if anything but its markup differs.

    Otherwise a later 304 would confirm a version that was never stored, because the new validators are kept.
    """
    if verdict.change is Change.RESTORED and before is not None:
        has_text = before.fingerprint is not None and after.fingerprint is not None
        return after.text_digest != before.text_digest if has_text else after.body_digest != before.body_digest
    return verdict.change in {Change.ADDED, Change.CHANGED}
