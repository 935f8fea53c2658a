"""Which pages a lease gets next.

`hand_out` reads the candidates at the head of both orders by index, scores them at today's price, and hands out what
is worth it; `preview` says the same without doing it; `reprice` scores again what waits by an old price. Uses
learned, claim and domains.
"""

from crawler.store.hand_out.hand_out import hand_out, preview, reprice, reweigh
from crawler.store.hand_out.scoring import ScoringContext, scoring_context
from crawler.store.hand_out.targets import keys_in
