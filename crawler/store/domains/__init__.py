"""Domains and their settings: registered, found, changed, paused, refreshed, removed.

`register` is the main function. What others leave for a domain's crawler goes through its inbox. Uses the database
and core alone.
"""

from crawler.store.domains.domains import (
    COLUMNS,
    Listed,
    asked,
    change,
    domain_from,
    every,
    expire_leases,
    find,
    refresh,
    register,
    remove,
    seed,
    set_paused,
    standing,
)
from crawler.store.domains.rules import pages_by_pattern

__all__ = [
    "COLUMNS",
    "Listed",
    "asked",
    "change",
    "domain_from",
    "every",
    "expire_leases",
    "find",
    "pages_by_pattern",
    "refresh",
    "register",
    "remove",
    "seed",
    "set_paused",
    "standing",
]
