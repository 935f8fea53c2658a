"""One look, decided.

`decide` is a pure function from a target, the answer, the time and what the domain knows to a Visit: the change, the
rung that decided, what was learnt, the next due time. `lifecycle` holds the looks that brought no page. Uses
soft_errors and what is below it.
"""

from crawler.core.visit.compare import Comparison, compare, wants_again
from crawler.core.visit.decide import decide, needs_earlier, needs_reading, reconsider, wants_outline
from crawler.core.visit.lifecycle import (
    CONFIRM_CROWD_AFTER,
    CROWD,
    CROWD_TIME,
    LOOK_AGAIN_REFUSED,
    ONTO_A_PAGE,
    WITH_OTHERS,
    Landing,
    believed,
    refuse,
    unfinished,
    unreadable,
)
from crawler.core.visit.soft_errors import absent_of, is_again, is_suspect, walls_after, with_signs
from crawler.core.visit.update import drift_after, looked
from crawler.core.visit.visit import (
    BUSY,
    FIRST_RETRY,
    NEVER,
    PERMANENT,
    SILENCE,
    TEMPORARY,
    Earlier,
    Headed,
    Known,
    Link,
    State,
    Target,
    Visit,
    refusal_of,
)

__all__ = [
    "BUSY",
    "CONFIRM_CROWD_AFTER",
    "CROWD",
    "CROWD_TIME",
    "FIRST_RETRY",
    "LOOK_AGAIN_REFUSED",
    "NEVER",
    "ONTO_A_PAGE",
    "PERMANENT",
    "SILENCE",
    "TEMPORARY",
    "WITH_OTHERS",
    "Comparison",
    "Earlier",
    "Headed",
    "Known",
    "Landing",
    "Link",
    "State",
    "Target",
    "Visit",
    "absent_of",
    "believed",
    "compare",
    "decide",
    "drift_after",
    "is_again",
    "is_suspect",
    "looked",
    "needs_earlier",
    "needs_reading",
    "reconsider",
    "refusal_of",
    "refuse",
    "unfinished",
    "unreadable",
    "walls_after",
    "wants_again",
    "wants_outline",
    "with_signs",
]
