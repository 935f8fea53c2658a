"""Which pages a lease gets next.

`selection` reads the candidates at the head of both orders by index, scores them at today's price, and hands out what
is worth it; `preview` says the same without doing it; `update_due_times` scores again what waits by an old price. Uses
learned, claim and domains.
"""

from crawler.store.frontier.scoring import ScoringContext, read_scoring_context
from crawler.store.frontier.selection import preview_targets, rescore_pages, select_targets, update_due_times
from crawler.store.frontier.targets import unpack_keys
