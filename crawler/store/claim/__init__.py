"""Leases on domains and daily budgets of requests.

`claim` leases a free domain, with a token, together with the slots of its network addresses; `debit` takes requests
from the budget of the day; `release` ends the lease and refunds unused requests. This package may use domains.
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
