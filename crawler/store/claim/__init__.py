"""Who may crawl a domain now, and how many requests it may use.

`claim` takes a free domain under a lease with a token, slots of its addresses included; `debit` takes requests from
the day's budget; `release` gives back both. Uses domains.
"""

from crawler.store.claim.budgets import (
    NO_UNUSED_BYTES,
    UnusedBytes,
    charge,
    charge_shared_budget,
    debit,
    left_of_shared_budget,
    settle_shared_budget,
)
from crawler.store.claim.leases import (
    announce_delay,
    claim,
    fence,
    hold,
    keep_slots,
    next_turn,
    release,
    renew,
    save_robots,
    write_hold,
)

__all__ = [
    "NO_UNUSED_BYTES",
    "UnusedBytes",
    "announce_delay",
    "charge",
    "charge_shared_budget",
    "claim",
    "debit",
    "fence",
    "hold",
    "keep_slots",
    "left_of_shared_budget",
    "next_turn",
    "release",
    "renew",
    "save_robots",
    "settle_shared_budget",
    "write_hold",
]
