"""Whether ETag, Last-Modified and HEAD may be believed.

Validators are put to the test by challenges: full looks in spite of them. `validators_to_send` says which may be sent,
`head_shows_same` what a HEAD decides. The topmost room of core: it may use all others.
"""

from crawler.core.validators.challenge import (
    WHOLE_DOMAIN,
    domain_trust_after,
    is_challenge_due,
    suspected_validators,
    with_suspicion,
)
from crawler.core.validators.head import head_outcome_of, head_shows_same, head_validators, spared_visit
from crawler.core.validators.trust import (
    NO_TRUST,
    SENT,
    Trust,
    Validator,
    ValidatorStats,
    trust_after,
    validators_to_send,
    validators_to_verify,
)
