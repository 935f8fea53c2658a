"""Importance of pages by Adaptive OPIC (Abiteboul, Preda, Cobena, WWW 2003), in integer coins.

`settle` shares the cash of a visited page out over its links; no coin is made or lost. `order` says which page a
domain's discovery takes first, `domains` how important domains are beside each other. Uses page and http.
"""

from crawler.core.opic.domains import popularity
from crawler.core.opic.opic import (
    COINS,
    ENDOWMENT,
    FIRST_SEEDS,
    RESERVE_SHARE,
    WINDOW_PASSES,
    Economy,
    PageAccount,
    Pool,
    history_after,
    importance,
    seed_endowment,
    settle,
)
from crawler.core.opic.order import (
    STEPS,
    LevelQueues,
    Order,
    Ordering,
    PageStack,
    aged,
    head_start,
    level_of,
    ranks_of,
    url_score,
)
