"""One look, decided.

`decide` is a pure function from a target, the answer, the time and what the domain knows to a Visit: the change, the
rung that decided, what was learnt, the next due time. `lifecycle` decides the looks that brought no page. Uses
soft_errors and what is below it.
"""

from crawler.core.visit.compare import Comparison, compare, wants_second_fetch
from crawler.core.visit.decide import decide, needs_baseline, needs_parsing, reconsider, wants_blocks
from crawler.core.visit.lifecycle import (
    BULK_REDIRECT,
    CONFIRM_CROWD_AFTER,
    CROWD,
    CROWD_TIME,
    LOOK_AGAIN_REFUSED,
    MOST_OF_ONE_PAGE,
    REDIRECT_TO_EXISTING,
    MoveTarget,
    confirm_move,
    refused_visit,
    unfinished_visit,
    unreadable_visit,
)
from crawler.core.visit.soft_errors import (
    is_same_page,
    may_be_soft_404,
    memory_after,
    not_found_text,
    with_soft_error_signs,
)
from crawler.core.visit.update import TEACHES, drift_after, learnt_visit
from crawler.core.visit.visit import (
    FIRST_RETRY,
    NETWORK_FAILURES,
    NEVER,
    OVERLOADED,
    PERMANENT,
    TEMPORARY,
    Baseline,
    HeadOutcome,
    Known,
    Link,
    State,
    Target,
    Visit,
    refusal_of,
)

__all__ = [
    "BULK_REDIRECT",
    "CONFIRM_CROWD_AFTER",
    "CROWD",
    "CROWD_TIME",
    "FIRST_RETRY",
    "LOOK_AGAIN_REFUSED",
    "MOST_OF_ONE_PAGE",
    "NETWORK_FAILURES",
    "NEVER",
    "OVERLOADED",
    "PERMANENT",
    "REDIRECT_TO_EXISTING",
    "TEACHES",
    "TEMPORARY",
    "Baseline",
    "Comparison",
    "HeadOutcome",
    "Known",
    "Link",
    "MoveTarget",
    "State",
    "Target",
    "Visit",
    "compare",
    "confirm_move",
    "decide",
    "drift_after",
    "is_same_page",
    "learnt_visit",
    "may_be_soft_404",
    "memory_after",
    "needs_baseline",
    "needs_parsing",
    "not_found_text",
    "reconsider",
    "refusal_of",
    "refused_visit",
    "unfinished_visit",
    "unreadable_visit",
    "wants_blocks",
    "wants_second_fetch",
    "with_soft_error_signs",
]
