"""Decide by a HEAD whether a page is unchanged, from its length and validators (RFC 9110, sections 8.6 and 9.3.2).

A HEAD costs a request, and spares a body where no conditional request does.
"""

from dataclasses import replace
from datetime import datetime

from crawler.core.change.change import Change, Rung, Verdict
from crawler.core.http import Answer, Fetched, NotModified, Validators
from crawler.core.validators.trust import SENT, Trust, Validator, only, value_of
from crawler.core.visit.update import learnt_visit
from crawler.core.visit.visit import HeadOutcome, Target, Visit


def head_validators(held: Validators, trust: Trust) -> Validators | None:
    """The validators that a HEAD must repeat, beside the length, for the page to count as unchanged.

    Empty where the length alone is believed. None where a HEAD is of no use: a conditional request spares the body, or
    neither validators nor length are honest.
    """
    if not trust.stats:
        return None
    validators = only(held, [kind for kind in SENT if trust.of(kind).is_honest and trust.of(kind).is_steady])
    if validators:
        return validators if trust.of(Validator.CONDITION).is_vain else None
    return validators if trust.of(Validator.LENGTH).is_exact else None


def head_shows_same(target: Target, answer: Answer) -> bool:
    """Whether the answer to a HEAD repeats the length and validators known of a page."""
    if not isinstance(answer, Fetched) or answer.status != 200 or target.by_head is None:
        return False
    if answer.declared_bytes not in {None, target.received_bytes}:
        return False
    validators = [kind for kind in SENT if value_of(target.by_head, kind)]
    if any(value_of(target.by_head, kind) != value_of(answer.validators, kind) for kind in validators):
        return False
    return bool(validators) or answer.declared_bytes is not None


def spared_visit(target: Target, answer: Fetched, *, now: datetime) -> Visit:
    """The Visit of a look that a HEAD decided, without a body."""
    return replace(
        learnt_visit(target, Verdict(Change.SAME, Rung.HEAD), now=now),
        status=answer.status,
        elapsed=answer.elapsed,
        conditional=False,
        saved_bytes=target.received_bytes,
        recipients=target.outlinks,
        head_outcome=HeadOutcome.SPARED,
    )


def head_outcome_of(head: Answer, answer: Answer) -> HeadOutcome:
    """The outcome of a HEAD that was followed by a request for the body."""
    if isinstance(answer, NotModified):
        return HeadOutcome.DIFFERED
    if not isinstance(head, Fetched) or not isinstance(answer, Fetched) or head.status != answer.status:
        return HeadOutcome.USELESS
    is_true = answer.status != 200 or head.declared_bytes in {None, answer.received_bytes}
    return HeadOutcome.DIFFERED if is_true else HeadOutcome.USELESS
