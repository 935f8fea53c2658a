"""How far the words of a server about its versions can be believed, by group of pages, and when that is put to a test.

A *challenge* is a full look in spite of validators. What it finds is held against what the server said: a body that
changed under the same words is a lie, the same body under other words makes them useless.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from crawler.core.change import Change, Rung
from crawler.core.http import NO_VALIDATORS, Validators
from crawler.core.visit import Headed, Target, Visit

KEPT = 0.8  # a finding counts so much of the one after it, so that five honest ones outweigh a lie,
MOST_LIES = 0.25  # of what was told, and one more that is taken for honest: a new group's first lie is enough
MOST_FLAPS = 0.25  # the same of looks at a body that is as it was
NO_LIE = 0.1  # of what a length told: then the last one was more than ten changes ago
MOST_IGNORED = 0.9  # of the last looks at a body that is as it was: conditional requests are never honoured
PROVEN = 3.0  # honest findings, faded, before Last-Modified tells when a page changed: five in a row, or more

DOUBTED_PART = 4  # each so many-th change of pages whose words are not believed is a test of them, at a request more


class Kind(StrEnum):
    """What a server says of a version."""

    ETAG = "etag"
    LAST_MODIFIED = "last_modified"
    LENGTH = "length"  # how long the body is
    DATE = "date"  # Last-Modified again, as the instant of the change
    CONDITION = "condition"  # that it answers 304 to a word that it would say again
    HEAD = "head"  # what it says of a body without sending it


SENT = (Kind.ETAG, Kind.LAST_MODIFIED)


@dataclass(frozen=True, slots=True)
class Record:
    """What the looks at a group found of one kind; fading sums, the newest counts 1.

    told: looks that found a change, and what the server would say or did say about it.  lied: of them, those where it
    said that nothing had changed.  same: looks at a body that was as before.  flapped: of them, under other words.
    """

    told: float = 0.0
    lied: float = 0.0
    same: float = 0.0
    flapped: float = 0.0

    @property
    def is_honest(self) -> bool:
        return self.lied <= MOST_LIES * (self.told + 1)

    @property
    def is_steady(self) -> bool:
        return self.flapped <= MOST_FLAPS * (self.same + 1)

    @property
    def is_exact(self) -> bool:
        """Whether no change escaped it lately. Nobody promised that a length differs where a body does."""
        return self.is_proven and self.lied < NO_LIE

    @property
    def is_vain(self) -> bool:
        """Whether it was of no use at all lately, more than once."""
        return self.flapped > max(1.0, MOST_IGNORED * self.same)

    @property
    def is_proven(self) -> bool:
        """Whether it has earned trust, rather than only not lost it."""
        return self.is_honest and self.told - self.lied >= PROVEN


NO_RECORD = Record()


@dataclass(frozen=True, slots=True)
class Trust:
    """How far one group's validators can be believed.

    revisits: of pages with validators, handed out since the last lie.  challenges: full looks in spite of validators.
    """

    revisits: int = 0
    challenges: int = 0
    records: Mapping[Kind, Record] = field(default_factory=dict)

    def of(self, kind: Kind) -> Record:
        return self.records.get(kind, NO_RECORD)


NO_TRUST = Trust()


def sendable(held: Validators, trust: Trust) -> Validators:
    """What of a page's validators is sent: none that lie, and none that flap beside one that does not.

    One that flaps costs bodies and hides nothing: alone it may still spare some.
    """
    if not held or not trust.records:
        return held  # which is asked of every page that a claim weighs
    honest = [kind for kind in SENT if trust.of(kind).is_honest]
    steady = [kind for kind in honest if trust.of(kind).is_steady]
    return only(held, steady) or only(held, honest)


def in_doubt(visit: Visit) -> Validators:
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
    return only(target.held, [kind for kind in SENT if word_of(target.held, kind) != word_of(visit.validators, kind)])


def learn(trust: Trust, visit: Visit) -> Trust:
    """What is believed of a group after a look at one of its pages."""
    records = {kind: _after(trust.of(kind), finding) for kind, finding in _findings(visit).items()}
    target = visit.target
    is_full = visit.validators is not None and (target.challenge or (bool(target.held) and not target.validators))
    return Trust(
        revisits=0 if has_lied(visit) else trust.revisits,
        challenges=trust.challenges + is_full,
        records={**trust.records, **records},
    )


def has_lied(visit: Visit) -> bool:
    """Whether a look found that a page had changed under words by which it is asked for."""
    target, findings = visit.target, _findings(visit)
    by_length = target.by_head is not None and not target.by_head
    asked_by = (*SENT, Kind.LENGTH) if by_length else SENT
    return any(findings.get(kind) is Finding.LIE for kind in asked_by)


class Finding(StrEnum):
    """What one look says of one kind."""

    TRUE = "true"  # the body changed, and so did the word
    LIE = "lie"
    STEADY = "steady"  # the body is the same, and so is the word
    FLAP = "flap"


def _findings(visit: Visit) -> dict[Kind, Finding]:
    """What a look at a page that was known says of each kind that it says anything of."""
    target, now_said = visit.target, visit.validators
    found: dict[Kind, Finding] = {}
    if visit.modified_honest is not None:
        found[Kind.DATE] = Finding.TRUE if visit.modified_honest else Finding.LIE
    if visit.headed is not None and visit.is_good:
        found[Kind.HEAD] = Finding.FLAP if _is_vain(visit) else Finding.STEADY
    if visit.answer == "not_modified" and visit.is_good:
        found[Kind.CONDITION] = Finding.STEADY
        return found | {kind: Finding.STEADY for kind in SENT if word_of(target.validators, kind)}
    if target.version is None or now_said is None:
        return found
    if visit.change is Change.CHANGED:
        is_equal = visit.body_bytes == target.received_bytes
        found[Kind.LENGTH] = Finding.LIE if is_equal else Finding.TRUE
        told = {kind: _of_change(visit, target, now_said, kind) for kind in SENT}
        return found | {kind: finding for kind, finding in told.items() if finding is not None}
    if visit.change is Change.SAME and visit.verdict.rung is Rung.BYTES:
        sent = [kind for kind in SENT if word_of(target.validators, kind)]
        if any(word_of(target.validators, kind) == word_of(now_said, kind) for kind in sent):
            found[Kind.CONDITION] = Finding.FLAP  # a 304 was due
        for kind in SENT:
            if word_of(target.held, kind):
                is_as_before = word_of(target.held, kind) == word_of(now_said, kind)
                found[kind] = Finding.STEADY if is_as_before else Finding.FLAP
    return found


def _is_vain(visit: Visit) -> bool:
    """Whether a HEAD cost a request more, and told nothing."""
    is_same = visit.verdict.rung in {Rung.BYTES, Rung.NOT_MODIFIED} and visit.change is Change.SAME
    return visit.headed is Headed.USELESS or (visit.headed is Headed.DIFFERED and is_same)


def _of_change(visit: Visit, target: Target, now_said: Validators, kind: Kind) -> Finding | None:
    """None where nobody knows what the server would have said to this word."""
    held = word_of(target.held, kind)
    if not held:
        return None
    if held == word_of(now_said, kind):
        return Finding.LIE
    if visit.refused_304 is None:
        is_asked_by = word_of(target.validators, kind) or word_of(target.by_head or NO_VALIDATORS, kind)
        return Finding.TRUE if is_asked_by else None
    return Finding.TRUE if visit.refused_304 else Finding.LIE


def _after(record: Record, finding: Finding) -> Record:
    match finding:
        case Finding.TRUE | Finding.LIE:
            lie = finding is Finding.LIE
            return replace(record, told=KEPT * record.told + 1, lied=KEPT * record.lied + lie)
        case Finding.STEADY | Finding.FLAP:
            flap = finding is Finding.FLAP
            return replace(record, same=KEPT * record.same + 1, flapped=KEPT * record.flapped + flap)


def word_of(said: Validators, kind: Kind) -> str | None:
    """An ETag as two are compared weakly (RFC 9110, section 8.8.3.2), or the date."""
    if kind is Kind.LAST_MODIFIED:
        return said.last_modified
    return said.etag and said.etag.removeprefix("W/")


def only(said: Validators, kinds: list[Kind]) -> Validators:
    return Validators(
        said.etag if Kind.ETAG in kinds else None,
        said.last_modified if Kind.LAST_MODIFIED in kinds else None,
    )
