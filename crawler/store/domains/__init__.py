"""Domains and their settings: registered, found, changed, paused, refreshed, removed.

`register` is the main function. What others leave for a domain's crawler goes through its inbox. Uses the database
and core alone.
"""

from crawler.store.domains.domains import (
    CLOCK_SKEW,
    COLUMNS,
    Listed,
    change,
    domain_from,
    every,
    expire_leases,
    find,
    keep_robots,
    named_after,
    names,
    post_reprice,
    probed,
    refresh,
    register,
    registered_already,
    remove,
    seed,
    set_paused,
    status_of,
    wake,
    with_waiting_pages,
)
from crawler.store.domains.kind_priors import kind_prior, write_kind_priors
from crawler.store.domains.rules import pages_by_pattern
from crawler.store.domains.signals import post_signals, signal
