"""Who may crawl a domain now, and how many requests it may use.

`claim` takes a free domain under a lease with a token, slots of its addresses included; `debit` takes requests from
the day's budget; `release` gives back both. Uses domains.
"""

from crawler.store.claim.budgets import (
    WITH_SHARED,
    Grant,
    charge,
    charge_shared_budget,
    debit,
    ledger_from,
    ledger_values,
    left_of_shared_budget,
    settle_shared_budget,
    shared_values,
)
from crawler.store.claim.held import (
    NOTHING_LEFT_OVER,
    LeaseEnd,
    announce_delay,
    fence,
    hold,
    keep_slots,
    release,
    renew,
    save_robots,
    write_hold,
)
from crawler.store.claim.leases import AWAKE, DUE, claim, move, next_turn, slotted
