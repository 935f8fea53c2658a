"""What was learnt of a domain and is read when a lease begins: noise mask, soft errors, trust, priors.

`learnt_of` reads mask, soft errors and renders at once; each can be learnt again, so that a form that is too old is
left unread. Uses claim and domains.
"""

from crawler.store.learned.mask import mask_of, put_mask
from crawler.store.learned.novelty import novelty_memory_of, put_novelty_memory
from crawler.store.learned.prior import GROUPS, groups_of
from crawler.store.learned.renders import put_renders
from crawler.store.learned.soft_errors import learnt_of, put_soft_errors
from crawler.store.learned.sources import count_heard, learn_of_sources, source_named, sources_of
from crawler.store.learned.trust import TrustRow, Trusts, count_revisits, learn_of, trust_rows, trusts_of
