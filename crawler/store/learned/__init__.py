"""What was learnt of a domain and is read when a lease begins: noise mask, soft errors, trust, priors.

`learned_memories` reads mask, soft errors and renders at once. Uses claim and domains.
"""

from crawler.store.learned.memories import learned_memories, mask_of
from crawler.store.learned.sources import count_heard, learn_of_sources, source_named, sources_of
from crawler.store.learned.trust import TrustRow, Trusts, count_revisits, learn_of, trust_rows, trusts_of
