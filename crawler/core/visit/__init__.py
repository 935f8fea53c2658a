"""One look, decided.

`decide` is a pure function from a target, the answer, the time and what the domain knows to a Visit: the change, the
rung that decided, what was learnt, the next due time. `lifecycle` decides the looks that brought no page. Uses
soft_errors and what is below it.
"""

from crawler.core.visit.compare import Comparison, compare, wants_second_fetch
from crawler.core.visit.decide import as_kept, decide, needs_baseline, needs_parsing, reconsider, wants_blocks
from crawler.core.visit.lifecycle import (
    BULK_REDIRECT,
    CONFIRM_CROWD_AFTER,
    CROWD,
    CROWD_TIME,
    LOOK_AGAIN_REFUSED,
    LOOKS_BEFORE_A_FAILING_PAGE_PAYS,
    MOST_OF_ONE_PAGE,
    REDIRECT_TO_EXISTING,
    MoveTarget,
    confirm_move,
    hold_after_redirects,
    redirects_to_found,
    refused_visit,
    unfinished_visit,
    unreadable_visit,
    unrendered_visit,
)
from crawler.core.visit.lists import (
    ListedLink,
    is_ahead,
    is_same_list,
    list_refusal_of,
    list_visit,
    listed_links,
    no_list_visit,
    signal_of,
    source_of,
    with_news,
)
from crawler.core.visit.soft_errors import (
    is_same_page,
    may_be_soft_404,
    memory_after,
    not_found_text,
    with_soft_error_signs,
)
from crawler.core.visit.update import TEACHES, learnt_visit
from crawler.core.visit.visit import (
    FIRST_RETRY,
    NETWORK_FAILURES,
    NEVER,
    OVERLOADED,
    PERMANENT,
    TEMPORARY,
    Baseline,
    CountedAs,
    HeadOutcome,
    Known,
    KnownList,
    Link,
    ListNews,
    State,
    Target,
    Visit,
    refusal_of,
)
