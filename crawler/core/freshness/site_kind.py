"""Kinds of site, by public suffix: sites of governments change at other rates than shops do.

Source: Cho and Garcia-Molina, "The evolution of the web and implications for an incremental crawler", VLDB 2000: pages
under .com change fastest, those under .gov and .edu slowest.
"""

from dataclasses import dataclass

from crawler.core.freshness.belief import Belief
from crawler.core.http import Authority, public_suffix

NO_KIND = ""  # of an IP address, and of a name that is on no list
ALL_KINDS = "*"  # in place of a kind: all domains together
# Second-level labels by which registries of countries tell what a site is, and the kind that each of them means.
CLASSES = {
    "ac": "edu",
    "co": "com",
    "com": "com",
    "edu": "edu",
    "gob": "gov",
    "gouv": "gov",
    "gov": "gov",
    "govt": "gov",
    "mil": "mil",
    "net": "net",
    "org": "org",
}
REGIONS = frozenset({"co.us", "co.it"})  # Colorado and Como


@dataclass(frozen=True, slots=True)
class KindPrior:
    """What is expected of a page of a new domain of one kind, or of any (ALL_KINDS).

    pages, domains: from which it was learnt, those that were looked at again; pages are estimated from samples.
    """

    kind: str
    prior: Belief
    pages: float
    domains: int


def site_kind(authority: Authority) -> str:
    """The kind of site: the class in the public suffix, wherever the country ("gov" of .gov and of .gov.uk, "edu" of
    .ac.uk, "com" of .co.jp), or else the suffix itself ("org", "de", "github.io"); NO_KIND without one.
    """
    suffix = public_suffix(authority)
    if suffix is None:
        return NO_KIND
    labels = suffix.split(".")
    return CLASSES.get(labels[-2], suffix) if len(labels) > 1 and suffix not in REGIONS else suffix
