"""How a domain gets in, and how what a user typed is found again.

`register` asks the root of a new domain once, follows redirects within the registrable domain, and stores the domain;
`lookup` turns a name or URL into a known domain. Uses core, web, store, settings and clock.
"""

from crawler.register.lookup import authority_in, beneath, domain_named, refuse_the_past
from crawler.register.register import Found, charge, home_seeds, look_up, register, scope_of, unasked, url_of
from crawler.register.root_probe import Roots

__all__ = [
    "Found",
    "Roots",
    "authority_in",
    "beneath",
    "charge",
    "domain_named",
    "home_seeds",
    "look_up",
    "refuse_the_past",
    "register",
    "scope_of",
    "unasked",
    "url_of",
]
