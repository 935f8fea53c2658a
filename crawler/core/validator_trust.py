"""Trust in validators by group of pages: whether ETag, Last-Modified and similar statements are reliable.

A validator check is a full visit that sends no validators. Its body is compared with the server's statement. A change
with equal validators is a lie. An equal body with other validators is a flap: then they are of no use.
`choose_validators` returns the validators to send, `is_validator_check_due` decides which revisit is a check, and
`is_unchanged_by_head` evaluates the response to a HEAD request.

Checks are scheduled by the number of revisits in the whole domain; otherwise a site of many small groups would need
many checks for each group. In addition, a group is checked by its own number of revisits, unless it has nearly all
revisits of the domain. A young group does not trust validators that lied in all groups that tested them.
"""

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum

from msgspec import Struct, field
from msgspec.structs import replace

from crawler.core.change.change import Change, Evidence
from crawler.core.change.verdict import Verdict
from crawler.core.http.response import NO_VALIDATORS, Fetched, NotModified, Response, Validators
from crawler.core.visit.update import build_learned_visit
from crawler.core.visit.visit import HeadOutcome, Target, Visit

DECAY = 0.8  # weight of a finding relative to the next one
MAX_LIES = 0.25  # a validator is honest up to this many missed changes per change, with one change added
MAX_FLAPS = 0.25  # a validator is steady up to this many flaps per visit with an equal body, with one visit added
MAX_FADED_LIES = 0.1  # if the decayed sum of lies is lower, the last one was more than ten changes ago
MAX_IGNORED = 0.9  # a validator is useless from more flaps than this per visit with an equal body
# Minimum decayed sum of honest findings, for example to date a change by Last-Modified: at least five in a row.
MIN_HONEST_FINDINGS = 3.0

DISTRUSTED_TEST_EVERY = 4  # one in this many changes of pages with distrusted validators is followed by a test


class Validator(StrEnum):
    """The kind of a server's statement about a version, which can show a change without a body."""

    ETAG = "etag"
    LAST_MODIFIED = "last_modified"
    LENGTH = "length"  # length of the body
    DATE = "date"  # Last-Modified as the instant of the change
    CONDITION = "condition"  # the server responds with 304 to a valid validator
    HEAD = "head"  # the response to a HEAD request


SENT_VALIDATORS = (Validator.ETAG, Validator.LAST_MODIFIED)


class ValidatorStats(Struct, frozen=True):
    """The behavior of one validator in visits of a group, as decaying sums in which the newest visit counts 1.

    changes_seen: visits that found a change and tested the validator.  missed: those in which it lied.
    unchanged: visits with an equal body or a 304; for HEAD, all with one.  flapped: those where it was of no use.
    """

    changes_seen: float = 0.0
    missed: float = 0.0
    unchanged: float = 0.0
    flapped: float = 0.0

    @property
    def is_honest(self) -> bool:
        return self.missed <= MAX_LIES * (self.changes_seen + 1)

    @property
    def is_steady(self) -> bool:
        return self.flapped <= MAX_FLAPS * (self.unchanged + 1)

    @property
    def is_exact(self) -> bool:
        """Return whether the validator missed no change recently. Lengths need this: other bodies may be as long."""
        return self.is_proven and self.missed < MAX_FADED_LIES

    @property
    def is_useless(self) -> bool:
        """Return whether the validator was of no use in nearly all recent visits, and more than once."""
        return self.flapped > max(1.0, MAX_IGNORED * self.unchanged)

    @property
    def is_proven(self) -> bool:
        """Return whether the validator has earned trust, rather than merely not lost it."""
        return self.is_honest and self.changes_seen - self.missed >= MIN_HONEST_FINDINGS


NO_STATS = ValidatorStats()


class ValidatorTrust(Struct, frozen=True):
    """The trust in one group's validators.

    revisits: how many revisits were selected since the last lie in which validators or a HEAD could save the body.
    validator_checks: how many visits to pages with validators sent none.
    """

    revisits: int = 0
    validator_checks: int = 0
    stats: Mapping[Validator, ValidatorStats] = field(default_factory=dict)

    def get_stats(self, kind: Validator) -> ValidatorStats:
        return self.stats.get(kind, NO_STATS)


NO_TRUST = ValidatorTrust()


def choose_validators(stored: Validators, trust: ValidatorTrust) -> Validators:
    """Return the validators of a page to send: none that lie, and none that flap if another one is steady.

    If all honest validators flap, they are sent: this hides no change, and may save some downloads.
    """
    if not stored or not trust.stats:
        return stored  # the common case; claiming calls this for each page that it scores
    honest = [kind for kind in SENT_VALIDATORS if trust.get_stats(kind).is_honest]
    steady = [kind for kind in honest if trust.get_stats(kind).is_steady]
    return keep_validators(stored, steady) or keep_validators(stored, honest)


def choose_validators_to_verify(visit: Visit) -> Validators:
    """Return the old validators to send in one more request after a change, to test whether the server sends a body.

    If it responds with 304 although the page changed, conditional requests would have missed the change. The validators
    that differ are sent after a validator check, and after one in DISTRUSTED_TEST_EVERY changes if no validators of the
    page are trusted; otherwise trust could hardly be regained.
    """
    target, stored = visit.target, visit.target.stored_validators
    if visit.change is not Change.CHANGED or visit.validators is None or target.version is None:
        return NO_VALIDATORS
    if target.expected_head:  # the server is known to ignore conditional requests
        return NO_VALIDATORS
    is_test_due = (target.key[0] + target.version.number) % DISTRUSTED_TEST_EVERY == 0
    if not target.is_validator_check and (target.validators or not is_test_due):
        return NO_VALIDATORS
    return keep_validators(stored, [kind for kind in SENT_VALIDATORS if _differs(stored, visit.validators, kind)])


def update_trust(trust: ValidatorTrust, visit: Visit) -> ValidatorTrust:
    """Return the trust in a group's validators after a visit to one of its pages."""
    stats = {kind: _update_stats(trust.get_stats(kind), finding) for kind, finding in _collect_findings(visit).items()}
    target = visit.target
    is_unsent = target.is_validator_check or (bool(target.stored_validators) and not target.validators)
    checks = trust.validator_checks + (visit.validators is not None and is_unsent)
    return ValidatorTrust(0 if has_lied(visit) else trust.revisits, checks, {**trust.stats, **stats})


def has_lied(visit: Visit) -> bool:
    """Return whether a visit found a change that the validators or the length used for the page denied."""
    target, findings = visit.target, _collect_findings(visit)
    by_length = target.expected_head is not None and not target.expected_head
    used_validators = (*SENT_VALIDATORS, Validator.LENGTH) if by_length else SENT_VALIDATORS
    return any(findings.get(kind) is LIE for kind in used_validators)


# The possible findings of one visit about one validator.
TRUE = ValidatorStats(changes_seen=1)  # the body changed, and so did the validator
LIE = ValidatorStats(changes_seen=1, missed=1)  # the body changed, the validator did not
STEADY = ValidatorStats(unchanged=1)  # the body is equal, and so is the validator
FLAP = ValidatorStats(unchanged=1, flapped=1)  # the body is equal, the validator differs


def _collect_findings(visit: Visit) -> dict[Validator, ValidatorStats]:
    """Return the finding of a visit about each validator that it tested."""
    target, received = visit.target, visit.validators
    findings: dict[Validator, ValidatorStats] = {}
    if visit.modified_honest is not None:
        findings[Validator.DATE] = TRUE if visit.modified_honest else LIE
    if visit.head_outcome is not None and visit.is_good:
        findings[Validator.HEAD] = FLAP if _was_head_useless(visit) else STEADY
    if visit.outcome == "not_modified" and visit.is_good:
        findings[Validator.CONDITION] = STEADY
        return findings | {kind: STEADY for kind in SENT_VALIDATORS if get_validator_value(target.validators, kind)}
    if target.version is None or received is None:
        return findings
    if visit.change is Change.CHANGED:
        findings[Validator.LENGTH] = LIE if visit.body_bytes == target.received_bytes else TRUE
        of_change = {kind: _judge_change(visit, target, received, kind) for kind in SENT_VALIDATORS}
        return findings | {kind: finding for kind, finding in of_change.items() if finding is not None}
    if visit.change is Change.UNCHANGED and visit.verdict.evidence is Evidence.BYTES:
        sent = [kind for kind in SENT_VALIDATORS if get_validator_value(target.validators, kind)]
        if not all(_differs(target.validators, received, kind) for kind in sent):
            findings[Validator.CONDITION] = FLAP  # a 304 was expected
        stored = target.stored_validators
        for kind in (kind for kind in SENT_VALIDATORS if get_validator_value(stored, kind)):
            findings[kind] = FLAP if _differs(stored, received, kind) else STEADY
    return findings


def _was_head_useless(visit: Visit) -> bool:
    """Return whether a HEAD cost one more request without a result."""
    is_same = visit.verdict.evidence in {Evidence.BYTES, Evidence.NOT_MODIFIED} and visit.change is Change.UNCHANGED
    return visit.head_outcome is HeadOutcome.USELESS or (visit.head_outcome is HeadOutcome.DIFFERED and is_same)


def _judge_change(visit: Visit, target: Target, received: Validators, kind: Validator) -> ValidatorStats | None:
    """Return the finding about a validator after a change, or None if the visit did not test it."""
    stored_value = get_validator_value(target.stored_validators, kind)
    if not stored_value:
        return None
    if stored_value == get_validator_value(received, kind):
        return LIE
    if visit.refused_304 is None:
        used = target.validators, target.expected_head or NO_VALIDATORS
        return TRUE if any(get_validator_value(each, kind) for each in used) else None
    return TRUE if visit.refused_304 else LIE


def _update_stats(stat: ValidatorStats, finding: ValidatorStats) -> ValidatorStats:
    if finding.changes_seen:
        return replace(stat, changes_seen=DECAY * stat.changes_seen + 1, missed=DECAY * stat.missed + finding.missed)
    return replace(stat, unchanged=DECAY * stat.unchanged + 1, flapped=DECAY * stat.flapped + finding.flapped)


def get_validator_value(validators: Validators, kind: Validator) -> str | None:
    """Return the value of a validator: an ETag for weak comparison (RFC 9110, section 8.8.3.2), or Last-Modified."""
    if kind is Validator.LAST_MODIFIED:
        return validators.last_modified
    return validators.etag and validators.etag.removeprefix("W/")


def _differs(one: Validators, other: Validators, kind: Validator) -> bool:
    return get_validator_value(one, kind) != get_validator_value(other, kind)


def keep_validators(validators: Validators, kinds: list[Validator]) -> Validators:
    """Return the validators without those of other kinds."""
    etag = validators.etag if Validator.ETAG in kinds else None
    return Validators(etag, validators.last_modified if Validator.LAST_MODIFIED in kinds else None)


WHOLE_DOMAIN = -1  # used as a group's number for all pages of a domain; only their revisits are counted

# A stretch is a number of successive revisits, one of which is a validator check.
FIRST_STRETCH = 4  # length of the first stretches, in revisits
FIRST_STRETCHES = 5  # number of stretches of that length
STRETCH_FACTOR = 4  # growth of later stretches
LONGEST_STRETCH = 100  # maximum length
LAST_STRETCH_START = 100  # number of revisits from which on each stretch has the maximum length
# Its multiples modulo 1 are evenly distributed, and not periodic like the visits to a group's pages.
GOLDEN_RATIO = 0.6180339887498949
# If a group has this share of its domain's revisits, it is only checked by the domain's number of revisits.
DOMINANT_SHARE = 0.9
YOUNG_REVISITS = FIRST_STRETCH * FIRST_STRETCHES  # a group with fewer revisits is young: lies in other groups count


def is_validator_check(revisit: int) -> bool:
    """Return whether the revisit with this number, from 0, is a validator check: 5 of the first 20, later 1 of 100.

    Each stretch of revisits has one check; the first 200 revisits have 8. At most 200 revisits pass without one.
    """
    number, start, length = 0, 0, FIRST_STRETCH
    while revisit >= start + length:
        if length == LONGEST_STRETCH:
            number += (revisit - start) // length
            start += (revisit - start) // length * length
            break
        number, start = number + 1, start + length
        length = FIRST_STRETCH if number < FIRST_STRETCHES else min(length * STRETCH_FACTOR, LONGEST_STRETCH)
    return revisit == start + int(length * ((number + 1) * GOLDEN_RATIO % 1))


def is_validator_check_due(trust: ValidatorTrust, group_revisit: int, domain_revisit: int) -> bool:
    """Return whether a revisit is a validator check.

    group_revisit, domain_revisit: the revisit's number in the group and in the domain, from 0.
    For a group with nearly all revisits, the domain's number suffices. A group whose validators lied is checked as
    often as a new domain, any other group rarely.
    """
    if is_validator_check(domain_revisit):
        return True
    has_lied_before = any(trust.get_stats(kind).missed > MAX_FADED_LIES for kind in SENT_VALIDATORS)
    revisit = group_revisit if has_lied_before else group_revisit + LAST_STRETCH_START
    return group_revisit < DOMINANT_SHARE * domain_revisit and is_validator_check(revisit)


def update_domain_trust(domain_trust: ValidatorTrust, visit: Visit, group_trust: ValidatorTrust) -> ValidatorTrust:
    """Return the domain's trust after a visit: revisits become 0 if validators that the group trusted have lied."""
    is_news = has_lied(visit) and bool(choose_validators(visit.target.stored_validators, group_trust))
    return replace(domain_trust, revisits=0) if is_news else domain_trust


def find_suspected_validators(trusts: Mapping[int, ValidatorTrust]) -> frozenset[Validator]:
    """Return the validators that are not honest in any group in which a change tested them. trusts: by group."""
    stats = {kind: [each.get_stats(kind) for each in trusts.values()] for kind in SENT_VALIDATORS}
    honest = {kind: [one.is_honest for one in each if one.changes_seen] for kind, each in stats.items()}
    return frozenset(kind for kind, verdicts in honest.items() if verdicts and not any(verdicts))


def apply_suspicion(trust: ValidatorTrust, suspected: frozenset[Validator]) -> ValidatorTrust:
    """Return the trust in a group's validators. Suspected ones count as lying while the group is young.

    suspected: see find_suspected_validators. Those that a change has tested in the group are ignored.
    """
    unknown = [kind for kind in suspected if not trust.get_stats(kind).changes_seen]
    if not unknown or trust.revisits >= YOUNG_REVISITS:
        return trust
    lies = {kind: replace(trust.get_stats(kind), changes_seen=1.0, missed=1.0) for kind in unknown}
    return replace(trust, stats={**trust.stats, **lies})


def choose_head_validators(stored: Validators, trust: ValidatorTrust) -> Validators | None:
    """Return the validators that a HEAD response must repeat, besides the length, for the page to count as unchanged.

    The result is empty if only the length is trusted. It is None if a HEAD is useless, because a conditional request
    can save the body, or because neither validators nor the length are trusted.
    """
    if not trust.stats:
        return None
    stats = {kind: trust.get_stats(kind) for kind in SENT_VALIDATORS}
    validators = keep_validators(stored, [kind for kind, each in stats.items() if each.is_honest and each.is_steady])
    if validators:
        return validators if trust.get_stats(Validator.CONDITION).is_useless else None
    return validators if trust.get_stats(Validator.LENGTH).is_exact else None


def is_unchanged_by_head(target: Target, response: Response) -> bool:
    """Return whether a HEAD response repeats length and validators of a page (or has validators but no length)."""
    expected = target.expected_head
    if not isinstance(response, Fetched) or response.status != 200 or expected is None:
        return False
    kinds = [kind for kind in SENT_VALIDATORS if get_validator_value(expected, kind)]
    if any(_differs(expected, response.validators, kind) for kind in kinds):
        return False
    return response.declared_bytes == target.received_bytes or (bool(kinds) and response.declared_bytes is None)


def build_spared_visit(target: Target, response: Fetched, *, now: datetime) -> Visit:
    """Build the Visit that a HEAD decided without a body."""
    return replace(
        build_learned_visit(target, Verdict(Change.UNCHANGED, Evidence.HEAD), now=now),
        status=response.status,
        elapsed=response.elapsed,
        conditional=False,
        saved_bytes=target.received_bytes,
        recipients=target.outlinks,
        head_outcome=HeadOutcome.BODY_SKIPPED,
    )


def judge_head(head: Response, response: Response) -> HeadOutcome:
    """Return the outcome of a HEAD that was followed by a request for the body."""
    if isinstance(response, NotModified):
        return HeadOutcome.DIFFERED
    if not isinstance(head, Fetched) or not isinstance(response, Fetched) or head.status != response.status:
        return HeadOutcome.USELESS
    is_true = response.status != 200 or head.declared_bytes in {None, response.received_bytes}
    return HeadOutcome.DIFFERED if is_true else HeadOutcome.USELESS
