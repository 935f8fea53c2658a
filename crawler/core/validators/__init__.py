"""Whether ETag, Last-Modified and HEAD may be believed.

Validators are put to the test by challenges: full looks in spite of them. `sendable` says which may be sent,
`is_told_same` what a HEAD decides. The topmost room of core: it may use all others.
"""

from crawler.core.validators.challenge import WHOLE, backed, counted, is_turn, suspects
from crawler.core.validators.head import headed_of, is_told_same, spared, told_by_head
from crawler.core.validators.trust import NO_TRUST, SENT, Kind, Record, Trust, in_doubt, learn, sendable

__all__ = [
    "NO_TRUST",
    "SENT",
    "WHOLE",
    "Kind",
    "Record",
    "Trust",
    "backed",
    "counted",
    "headed_of",
    "in_doubt",
    "is_told_same",
    "is_turn",
    "learn",
    "sendable",
    "spared",
    "suspects",
    "told_by_head",
]
