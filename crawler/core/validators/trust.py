"""How far the words of a server about its versions can be believed, by group of pages, and when that is put to a test.

A *challenge* is a full look in spite of validators. What it finds is held against what the server said: a body that
changed under the same words is a lie, the same body under other words makes them useless.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from crawler.core.change import Change, Rung
from crawler.core.http import NO_VALIDATORS, Validators
from crawler.core.visit import HeadOutcome, Target, Visit

KEPT = 0.8  # a finding counts so much of the one after it, so that five honest ones outweigh a lie,
MOST_LIES = 0.25  # of what was told, and one more that is taken for honest: a new group's first lie is enough
MOST_FLAPS = 0.25  # the same of looks at a body that is as it was
NO_LIE = 0.1  # of what a length told: then the last one was more than ten changes ago
MOST_IGNORED = 0.9  # of the last looks at a body that is as it was: conditional requests are never honoured
PROVEN = 3.0  # honest findings, faded, before Last-Modified tells when a page changed: five in a row, or more

DOUBTED_PART = 4  # each so many-th change of pages whose words are not believed is a test of them, at a request more


class Validator(StrEnum):
    """What a server says of a version."""

    ETAG = "etag"
    LAST_MODIFIED = "last_modified"
    LENGTH = "length"  # how long the body is
    DATE = "date"  # Last-Modified again, as the instant of the change
    CONDITION = "condition"  # that it answers 304 to a word that it would say again
    HEAD = "head"  # what it says of a body without sending it


SENT = (Validator.ETAG, Validator.LAST_MODIFIED)


@dataclass(frozen=True, slots=True)
class ValidatorStats:
    """What the looks at a group found of one kind; fading sums, the newest counts 1.

    told: looks that found a change, and what the server would say or did say about it.  lied: of them, those where it
    said that nothing had changed.  same: looks at a body that was as before.  flapped: of them, under other words.
    """

    changes_seen: float = 0.0
    missed: float = 0.0
    unchanged: float = 0.0
    flapped: float = 0.0

    @property
    def is_honest(self) -> bool:
        return self.missed <= MOST_LIES * (self.changes_seen + 1)

    @property
    def is_steady(self) -> bool:
        return self.flapped <= MOST_FLAPS * (self.unchanged + 1)

    @property
    def is_exact(self) -> bool:
        """Whether no change escaped it lately. Nobody promised that a length differs where a body does."""
        return self.is_proven and self.missed < NO_LIE

    @property
    def is_vain(self) -> bool:
        """Whether it was of no use at all lately, more than once."""
        return self.flapped > max(1.0, MOST_IGNORED * self.unchanged)

    @property
    def is_proven(self) -> bool:
        """Whether it has earned trust, rather than only not lost it."""
        return self.is_honest and self.changes_seen - self.missed >= PROVEN


NO_STATS = ValidatorStats()


@dataclass(frozen=True, slots=True)
class Trust:
    """How far one group's validators can be believed.

    revisits: of pages with validators, handed out since the last lie.  challenges: full looks in spite of validators.
    """

    revisits: int = 0
    challenges: int = 0
    stats: Mapping[Validator, ValidatorStats] = field(default_factory=dict)

    def of(self, kind: Validator) -> ValidatorStats:
        return self.stats.get(kind, NO_STATS)


NO_TRUST = Trust()


def sendable(held: Validators, trust: Trust) -> Validators:
    """What of a page's validators is sent: none that lie, and none that flap beside one that does not.

    One that flaps costs bodies and hides nothing: alone it may still spare some.
    """
    if not held or not trust.stats:
        return held  # which is asked of every page that a claim weighs
    honest = [kind for kind in SENT if trust.of(kind).is_honest]
    steady = [kind for kind in honest if trust.of(kind).is_steady]
    return only(held, steady) or only(held, honest)


def to_verify(visit: Visit) -> Validators:
    """What must be asked once more of a page that changed: the words that would have been sent, were they believed.

    They differ from today's; whether the server minds them, only a request with them can tell. So after each challenge,
    and after one change of DOUBTED_PART where nothing is believed any more, or trust would be hard to win back.
    """
    target = visit.target
    if visit.change is not Change.CHANGED or visit.validators is None or target.version is None:
        return NO_VALIDATORS
    if target.by_head:  # it does not mind them, as is known
        return NO_VALIDATORS
    is_turn = (target.key[0] + target.version.number) % DOUBTED_PART == 0
    if not target.challenge and (target.validators or not is_turn):
        return NO_VALIDATORS
    return only(target.held, [kind for kind in SENT if value_of(target.held, kind) != value_of(visit.validators, kind)])


def learn(trust: Trust, visit: Visit) -> Trust:
    """What is believed of a group after a look at one of its pages."""
    records = {kind: _after(trust.of(kind), finding) for kind, finding in _findings(visit).items()}
    target = visit.target
    is_full = visit.validators is not None and (target.challenge or (bool(target.held) and not target.validators))
    return Trust(
        revisits=0 if has_lied(visit) else trust.revisits,
        challenges=trust.challenges + is_full,
        stats={**trust.stats, **records},
    )


def has_lied(visit: Visit) -> bool:
    """Whether a look found that a page had changed under words by which it is asked for."""
    target, findings = visit.target, _findings(visit)
    by_length = target.by_head is not None and not target.by_head
    asked_by = (*SENT, Validator.LENGTH) if by_length else SENT
    return any(findings.get(kind) is TestOutcome.LIE for kind in asked_by)


class TestOutcome(StrEnum):
    """What one look says of one kind."""

    TRUE = "true"  # the body changed, and so did the word
    LIE = "lie"
    STEADY = "steady"  # the body is the same, and so is the word
    FLAP = "flap"


def _findings(visit: Visit) -> dict[Validator, TestOutcome]:
    """What a look at a page that was known says of each kind that it says anything of."""
    target, now_said = visit.target, visit.validators
    found: dict[Validator, TestOutcome] = {}
    if visit.modified_honest is not None:
        found[Validator.DATE] = TestOutcome.TRUE if visit.modified_honest else TestOutcome.LIE
    if visit.head_outcome is not None and visit.is_good:
        found[Validator.HEAD] = TestOutcome.FLAP if _is_vain(visit) else TestOutcome.STEADY
    if visit.answer == "not_modified" and visit.is_good:
        found[Validator.CONDITION] = TestOutcome.STEADY
        return found | {kind: TestOutcome.STEADY for kind in SENT if value_of(target.validators, kind)}
    if target.version is None or now_said is None:
        return found
    if visit.change is Change.CHANGED:
        is_equal = visit.body_bytes == target.received_bytes
        found[Validator.LENGTH] = TestOutcome.LIE if is_equal else TestOutcome.TRUE
        told = {kind: _of_change(visit, target, now_said, kind) for kind in SENT}
        return found | {kind: finding for kind, finding in told.items() if finding is not None}
    if visit.change is Change.SAME and visit.verdict.rung is Rung.BYTES:
        sent = [kind for kind in SENT if value_of(target.validators, kind)]
        if any(value_of(target.validators, kind) == value_of(now_said, kind) for kind in sent):
            found[Validator.CONDITION] = TestOutcome.FLAP  # a 304 was due
        for kind in SENT:
            if value_of(target.held, kind):
                is_as_before = value_of(target.held, kind) == value_of(now_said, kind)
                found[kind] = TestOutcome.STEADY if is_as_before else TestOutcome.FLAP
    return found


def _is_vain(visit: Visit) -> bool:
    """Whether a HEAD cost a request more, and told nothing."""
    is_same = visit.verdict.rung in {Rung.BYTES, Rung.NOT_MODIFIED} and visit.change is Change.SAME
    return visit.head_outcome is HeadOutcome.USELESS or (visit.head_outcome is HeadOutcome.DIFFERED and is_same)


def _of_change(visit: Visit, target: Target, now_said: Validators, kind: Validator) -> TestOutcome | None:
    """None where nobody knows what the server would have said to this word."""
    held = value_of(target.held, kind)
    if not held:
        return None
    if held == value_of(now_said, kind):
        return TestOutcome.LIE
    if visit.refused_304 is None:
        is_asked_by = value_of(target.validators, kind) or value_of(target.by_head or NO_VALIDATORS, kind)
        return TestOutcome.TRUE if is_asked_by else None
    return TestOutcome.TRUE if visit.refused_304 else TestOutcome.LIE


def _after(record: ValidatorStats, finding: TestOutcome) -> ValidatorStats:
    match finding:
        case TestOutcome.TRUE | TestOutcome.LIE:
            lie = finding is TestOutcome.LIE
            return replace(record, changes_seen=KEPT * record.changes_seen + 1, missed=KEPT * record.missed + lie)
        case TestOutcome.STEADY | TestOutcome.FLAP:
            flap = finding is TestOutcome.FLAP
            return replace(record, unchanged=KEPT * record.unchanged + 1, flapped=KEPT * record.flapped + flap)


def value_of(said: Validators, kind: Validator) -> str | None:
    """An ETag as two are compared weakly (RFC 9110, section 8.8.3.2), or the date."""
    if kind is Validator.LAST_MODIFIED:
        return said.last_modified
    return said.etag and said.etag.removeprefix("W/")


def only(said: Validators, kinds: list[Validator]) -> Validators:
    return Validators(
        said.etag if Validator.ETAG in kinds else None,
        said.last_modified if Validator.LAST_MODIFIED in kinds else None,
    )
