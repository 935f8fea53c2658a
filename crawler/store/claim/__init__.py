"""Who may crawl a domain now, and how many requests it may use.

`claim` takes a free domain under a lease with a token, slots of its addresses included; `debit` takes requests from
the day's budget; `release` gives back both. Uses domains.
"""

from crawler.store.claim.budgets import NO_SPARE, Spare, charge, charge_together, debit, left_together, settle_together
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
    "NO_SPARE",
    "Spare",
    "announce_delay",
    "charge",
    "charge_together",
    "claim",
    "debit",
    "fence",
    "hold",
    "keep_slots",
    "left_together",
    "next_turn",
    "release",
    "renew",
    "save_robots",
    "settle_together",
    "write_hold",
]
