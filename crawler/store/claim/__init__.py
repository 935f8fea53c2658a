"""Who may crawl a domain now, and how many requests it may use.

`claim` takes a free domain under a lease with a token, slots of its addresses included; `debit` takes requests from
the day's budget; `release` gives back both. Uses domains.
"""

from crawler.store.claim.active_lease import (
    EMPTY_LEASE_END,
    LeaseEnd,
    release,
    renew,
    save_robots,
    suspend_domain,
    write_delay,
)
from crawler.store.claim.budgets import Grant, charge, charge_shared_budget, count_shared_requests_left, debit
from crawler.store.claim.leases import AWAKE, DUE, change_addresses, claim, compute_claim_wait, list_slot_addresses
