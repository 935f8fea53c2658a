"""Who may crawl a domain now, and how many requests it may use.

`claim` takes a free domain under a lease with a token, slots of its addresses included; `debit` takes requests from
the day's budget; `release` gives back both. Uses domains.
"""

from crawler.store.claim.budgets import Grant, charge, charge_shared_budget, debit, left_of_shared_budget
from crawler.store.claim.held import NOTHING_LEFT_OVER, LeaseEnd, announce_delay, hold, release, renew, save_robots
from crawler.store.claim.leases import AWAKE, DUE, claim, move, next_turn, slotted
