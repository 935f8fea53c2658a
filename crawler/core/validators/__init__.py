"""Whether ETag, Last-Modified and HEAD may be believed.

Validators are put to the test by challenges: full looks in spite of them. `sendable` says which may be sent,
`is_told_same` what a HEAD decides. The topmost room of core: it may use all others.
"""

from crawler.core.validators.challenge import WHOLE, counted, is_challenge_due, suspected, with_suspicion
from crawler.core.validators.head import head_outcome_of, is_told_same, spared_visit, told_by_head
from crawler.core.validators.trust import NO_TRUST, SENT, Trust, Validator, ValidatorStats, learn, sendable, to_verify

__all__ = [
    "NO_TRUST",
    "SENT",
    "WHOLE",
    "Trust",
    "Validator",
    "ValidatorStats",
    "counted",
    "head_outcome_of",
    "is_challenge_due",
    "is_told_same",
    "learn",
    "sendable",
    "spared_visit",
    "suspected",
    "to_verify",
    "told_by_head",
    "with_suspicion",
]
