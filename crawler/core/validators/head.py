"""What a HEAD tells: whether a page is as it was, by its length and its date (RFC 9110, sections 8.6 and 9.3.2).

It costs a request, and spares a body where no conditional request does.
"""

from dataclasses import replace
from datetime import datetime

from crawler.core.change import Change, Rung, Verdict
from crawler.core.http import Answer, Fetched, NotModified, Validators
from crawler.core.validators.trust import SENT, Trust, Validator, only, value_of
from crawler.core.visit import HeadOutcome, Target, Visit, learnt_visit


def told_by_head(held: Validators, trust: Trust) -> Validators | None:
    """What a HEAD must say again, beside the length, of a page that has not changed.

    Empty where the length alone is believed. None where a HEAD is of no use: a conditional request spares the body, or
    neither words nor length are honest.
    """
    if not trust.stats:
        return None
    words = only(held, [kind for kind in SENT if trust.of(kind).is_honest and trust.of(kind).is_steady])
    if words:
        return words if trust.of(Validator.CONDITION).is_vain else None
    return words if trust.of(Validator.LENGTH).is_exact else None


def is_told_same(target: Target, answer: Answer) -> bool:
    """Whether a HEAD says of a page what is known of it."""
    if not isinstance(answer, Fetched) or answer.status != 200 or target.by_head is None:
        return False
    if answer.declared_bytes not in {None, target.received_bytes}:
        return False
    words = [kind for kind in SENT if value_of(target.by_head, kind)]
    if any(value_of(target.by_head, kind) != value_of(answer.validators, kind) for kind in words):
        return False
    return bool(words) or answer.declared_bytes is not None


def spared_visit(target: Target, answer: Fetched, *, now: datetime) -> Visit:
    """A look that needed no body."""
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
    """What a HEAD was worth that was followed by a look at the body."""
    if isinstance(answer, NotModified):
        return HeadOutcome.DIFFERED
    if not isinstance(head, Fetched) or not isinstance(answer, Fetched) or head.status != answer.status:
        return HeadOutcome.USELESS
    is_so = answer.status != 200 or head.declared_bytes in {None, answer.received_bytes}
    return HeadOutcome.DIFFERED if is_so else HeadOutcome.USELESS
