"""The pages of the living site: their content at any instant, and the truth about when it changed.

`Site` is a pure function of seed and time. Uses only core.
"""

from labs.demo.site.plan import make_site
from labs.demo.site.reply import Ask, Reply, http_date, reply
from labs.demo.site.sheet import LIARS, Behaviour, Serving, Sheet, SheetKind
from labs.demo.site.site import CALENDAR, CHAIN, DISALLOWED, Site
from labs.demo.site.truth import VerdictTally, freshness, mean_freshness, tally

__all__ = [
    "CALENDAR",
    "CHAIN",
    "DISALLOWED",
    "LIARS",
    "Ask",
    "Behaviour",
    "Reply",
    "Serving",
    "Sheet",
    "SheetKind",
    "Site",
    "VerdictTally",
    "freshness",
    "http_date",
    "make_site",
    "mean_freshness",
    "reply",
    "tally",
]
