"""What is kept of the past, applied: `prune` goes through the domains, chunk by chunk.

`keep_quota` does for one domain what cannot wait for the night; `foretold` says what it would free.
Every chunk is a transaction of its own, so that a crawl goes on beside it, and whatever ends it, the next one goes on.
Uses the store and core.
"""

from crawler.prune.prune import Pruned, foretold, keep_quota, prune, prune_domain
