"""Priors: the change rate expected of a page by its group, before the page itself was looked at (empirical Bayes).

Groups are URL templates of a domain; a template with few pages leans on its domain, a domain on the domains of its kind
by public suffix, since sites of governments change at other rates than shops do, and a kind on all domains.

The store keeps a page's *evidence* (a - a0, b - b0): the part that its own looks added to the prior of its group. Both
numbers are 0 for a page without looks, and never negative. Today's belief is evidence + today's prior of the group,
so that a refitted prior reaches every page without an update of any page.
Sources: Cho and Ntoulas, VLDB 2002 (what a sample of a site says of the site); Minka, "Estimating a Gamma
distribution", 2002, for the fit; Buehlmann and Straub, "Glaubwuerdigkeit fuer Schadensaetze", 1970, for what a domain
says of its kind (credibility); Cho and Garcia-Molina, "The evolution of the web and implications for an incremental
crawler", VLDB 2000: pages under .com change fastest, those under .gov and .edu slowest.
"""

import re
from collections.abc import Collection
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import parse_qsl, urlsplit

import numpy as np
from numpy.typing import NDArray

from crawler.core.freshness.estimates import PRIOR, RateEstimate
from crawler.core.freshness.gamma import Floats, Numbers, compute_digamma, solve_shape
from crawler.core.http.urls import Authority, Url, get_public_suffix

SHRINKAGE_PAGES = (
    20.0  # pages' worth of weight of the larger group in the smaller: of a domain in its templates, and so on up
)
MIN_SHAPE = 0.1  # a0 below would let one look decide everything
MAX_SHAPE = 20.0  # and above, looks would hardly count
TEMPLATE_CACHE_SIZE = 8192  # URLs whose templates are kept: each is asked for several times while its page is recorded
MAX_TEMPLATES = 256  # of one domain; pages of later ones share the group OTHER_TEMPLATES
OTHER_TEMPLATES = "*"
MAX_LITERAL_FOLDERS = 2  # the first parts of a path name the section of a site; deeper ones are counted only
MAX_FOLDERS = 5
MAX_PARAMETERS = 3  # of query parameters
NO_KIND = ""  # of an IP address, and of a name that is on no list
ALL_KINDS = "*"  # in place of a kind: all domains together
# Second-level labels by which registries of countries tell what a site is, and the kind that each of them means.
KIND_BY_LABEL = {
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
REGION_SUFFIXES = frozenset({"co.us", "co.it"})  # Colorado and Como

WORD = re.compile(r"[A-Za-z][A-Za-z_.~-]{0,23}")  # a name somebody gave; digits, hashes and long slugs are none
EXTENSION = re.compile(r"\.([A-Za-z][A-Za-z0-9]{0,4})$")

Groups = NDArray[np.intp]


@lru_cache(TEMPLATE_CACHE_SIZE)
def derive_template(url: Url) -> str:
    """The URL's template: its section, depth, extension and names of parameters, without what tells pages apart.

    /blog/2024/05/a-post.html and /blog/2023/11/other.html are both "/blog/#/*/*.html"; the root is "/".
    """
    parts = urlsplit(url)
    *folders, last = parts.path.split("/")[1:] or [""]
    path_parts = [
        _mask_folder(folder, literal=n < MAX_LITERAL_FOLDERS) for n, folder in enumerate(folders[:MAX_FOLDERS])
    ]
    extension = EXTENSION.search(last)
    path_parts.append(f"*.{extension[1].lower()}" if extension else "*" if last else "")
    names = sorted({name for name, _ in parse_qsl(parts.query, keep_blank_values=True) if WORD.fullmatch(name)})
    query = "?" + "&".join(names[:MAX_PARAMETERS]) if parts.query else ""
    return "/" + "/".join(path_parts) + query


def _mask_folder(folder: str, *, literal: bool) -> str:
    if literal and WORD.fullmatch(folder):
        return folder
    return "#" if literal and folder.isdigit() else "*"


def choose_group(url: Url, groups: Collection[str], *, max_groups: int = MAX_TEMPLATES) -> str:
    """The group of a page in a domain whose groups are `known`.

    its template, or OTHER_TEMPLATES when there are `max_interval`.
    """
    template = derive_template(url)
    return template if template in groups or len(groups) < max_groups else OTHER_TEMPLATES


def add_prior(rate_a: Numbers, rate_b: Numbers, a0: Numbers, b0: Numbers) -> tuple[Floats, Floats]:
    """Today's beliefs (a, b): stored evidence on today's prior. Both are above 0 whatever was stored."""
    return np.asarray(a0 + np.maximum(rate_a, 0.0)), np.asarray(b0 + np.maximum(rate_b, 0.0))


def subtract_prior(a: Numbers, b: Numbers, a0: Numbers, b0: Numbers) -> tuple[Floats, Floats]:
    """The evidence to store: beliefs less the prior they began with. Never negative, since looks only add."""
    return np.maximum(a - a0, 0.0), np.maximum(b - b0, 0.0)


@dataclass(frozen=True, slots=True)
class Moments:
    """The moments of groups from which priors are refitted; arrays of equal shape, one entry a group.

    pages: how many are known, with evidence of their own or not.
    rate, log_rate: the mean over them of E[rate] = a/b and of E[ln rate] = digamma(a) - ln b; any finite number
    where there are none.
    """

    pages: Floats
    rate: Floats
    log_rate: Floats


def compute_moments(a: Floats, b: Floats, group: Groups, *, group_count: int) -> Moments:
    """The moments of `groups` groups, from the beliefs of known pages; group[i] is 0 to groups - 1."""
    pages = np.bincount(group, minlength=group_count).astype(np.float64)
    divisor = np.maximum(pages, 1.0)
    rate = np.bincount(group, weights=a / b, minlength=group_count) / divisor
    log_rate = np.bincount(group, weights=compute_digamma(a) - np.log(b), minlength=group_count) / divisor
    return Moments(pages, rate, log_rate)


def pool_moments(groups: Moments) -> Moments:
    """The moments of all groups as one: of templates as their domain, of domains as all domains."""
    total = groups.pages.sum()
    divisor = float(total) or 1.0
    rate = (groups.pages * groups.rate).sum() / divisor
    log_rate = (groups.pages * groups.log_rate).sum() / divisor
    return Moments(np.asarray(total), np.asarray(rate), np.asarray(log_rate))


def pool_kind(domains: Moments, revisited_pages: Floats) -> Moments:
    """The domains of one kind as one, each with a say of at most LEAN pages.

    revisited_pages: pages of each domain that were looked at again. A domain leans on its kind with LEAN pages since a
    page differs so much more from its domain than the domain from its kind; by that ratio n pages say as much of the
    kind as n LEAN / (n + LEAN) would if each were of a domain of its own. So one large domain is not the voice of its
    kind, and one of which nothing was seen yet says nothing.
    """
    return pool_moments(
        Moments(SHRINKAGE_PAGES * revisited_pages / (revisited_pages + SHRINKAGE_PAGES), domains.rate, domains.log_rate)
    )


def shrink_moments(groups: Moments, toward: Moments, *, shrinkage_pages: float = SHRINKAGE_PAGES) -> Moments:
    """The moments of each group with `lean` pages of the larger group mixed in; those alone for an empty group."""
    total = groups.pages + shrinkage_pages
    rate = (groups.pages * groups.rate + shrinkage_pages * toward.rate) / total
    log_rate = (groups.pages * groups.log_rate + shrinkage_pages * toward.log_rate) / total
    return Moments(groups.pages, np.asarray(rate), np.asarray(log_rate))


def fit_priors(groups: Moments) -> tuple[Floats, Floats]:
    """(a0, b0) of each group: the Gamma with these moments, a0 within [MIN_SHAPE, MAX_SHAPE] and the mean kept.

    One step of expectation maximisation: repeated daily on the beliefs that the last priors gave, it climbs to the
    maximum of the marginal likelihood.
    """
    spread = np.maximum(np.log(groups.rate) - groups.log_rate, 1e-9)
    a0 = np.clip(solve_shape(spread), MIN_SHAPE, MAX_SHAPE)
    return a0, np.asarray(a0 / groups.rate)


def compute_prior_moments(prior: RateEstimate) -> Moments:
    """The moments of a Gamma itself, as a larger group to lean on."""
    log_rate = compute_digamma(prior.a) - np.log(prior.b)
    return Moments(np.asarray(0.0), np.asarray(prior.rate_per_day), np.asarray(log_rate))


def fit_kind_prior(kind: Moments | None, *, everywhere: Moments) -> RateEstimate:
    """The prior of a new domain. kind: see refit; None for a domain without one.  everywhere: see refit."""
    a, b = fit_priors(_shrink_kind(kind, everywhere))
    return RateEstimate(float(a), float(b))


def refit_priors(
    templates: Moments, *, everywhere: Moments, kind: Moments | None = None
) -> tuple[Floats, Floats, RateEstimate]:
    """The priors of a domain's templates, (a0, b0) as arrays, and of the domain, for pages of no known template.

    templates: of this domain.  everywhere: pooled over all domains, this one included; it leans on PRIOR in its turn.
    kind: the domains of this one's kind as one (in_kind), which leans on all; None: the domain leans on all itself.
    """
    domain = shrink_moments(pool_moments(templates), _shrink_kind(kind, everywhere))
    a0, b0 = fit_priors(shrink_moments(templates, domain))
    domain_a, domain_b = fit_priors(domain)
    return a0, b0, RateEstimate(float(domain_a), float(domain_b))


def _shrink_kind(kind: Moments | None, everywhere: Moments) -> Moments:
    world = shrink_moments(everywhere, compute_prior_moments(PRIOR))
    return world if kind is None else shrink_moments(kind, world)


@dataclass(frozen=True, slots=True)
class KindPrior:
    """What is expected of a page of a new domain of one kind, or of any (ALL_KINDS).

    pages, domains: from which it was learnt, those that were looked at again; pages are estimated from samples.
    """

    kind: str
    prior: RateEstimate
    pages: float
    domains: int


def classify_site(authority: Authority) -> str:
    """The kind of site: the class in the public suffix, wherever the country ("gov" of .gov and of .gov.uk, "edu" of
    .ac.uk, "com" of .co.jp), or else the suffix itself ("org", "de", "github.io"); NO_KIND without one.
    """
    suffix = get_public_suffix(authority)
    if suffix is None:
        return NO_KIND
    labels = suffix.split(".")
    return KIND_BY_LABEL.get(labels[-2], suffix) if len(labels) > 1 and suffix not in REGION_SUFFIXES else suffix
