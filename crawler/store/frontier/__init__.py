"""The frontier: select the next pages of a lease.

`select_targets` reads the candidates at the head of the discovery order and of the due order by index, scores them at
the current shadow price, and selects the best; `preview_targets` does the same without writing; `update_due_times`
rescores pages after a change of the price or the rules. This package may use learned, claim and domains.
"""

from crawler.store.frontier.scoring import ScoringContext, read_scoring_context
from crawler.store.frontier.selection import preview_targets, rescore_pages, select_targets, update_due_times
from crawler.store.frontier.targets import unpack_keys
