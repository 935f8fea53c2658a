"""How a domain gets in, and how what a user typed is found again.

`look_up` asks the root of a new domain, its robots.txt first, and follows redirects within the registrable domain;
`register` stores the domain; `lookup` turns a name or URL into a known domain. Asks by the PacedWeb of crawl; uses
core, web, store, settings and clock.
"""

from crawler.app.registration.lookup import (
    authority_in,
    domain_named,
    find_domains,
    not_registered,
    require_not_before_last_visit,
    url_prefix,
)
from crawler.app.registration.register import (
    FoundDomain,
    charge,
    home_seeds,
    look_up,
    register,
    scope_of,
    unasked,
    url_of,
)
from crawler.app.registration.root_probe import RootProbe
