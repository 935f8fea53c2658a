"""Priors: the change rate expected of a page from its group, before the page itself is revisited (empirical Bayes).

Groups are URL templates of a domain. Templates with few pages shrink toward their domain, domains toward the domains of
their kind (by public suffix, because government sites change at other rates than shops), and kinds toward all domains.

The store keeps the *evidence* of a page: what its own visits added to the prior (a0, b0) of its group. Both numbers are
0 for a page without revisits, and never negative. The current estimate (a, b) is the evidence plus the current prior
of the group, so a refitted prior applies to every page without an update of any page.
Sources: Cho and Ntoulas, VLDB 2002 (inference from a sample of a site); Minka, "Estimating a Gamma distribution", 2002
(the fit); Buehlmann and Straub, "Glaubwuerdigkeit fuer Schadensaetze", 1970 (credibility: the weight of a domain in its
kind); Cho and Garcia-Molina, "The evolution of the web and implications for an incremental crawler", VLDB 2000 (pages
under .com change fastest, those under .gov and .edu slowest).
"""

import re
from collections.abc import Collection
from functools import lru_cache
from urllib.parse import parse_qsl, urlsplit

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from crawler.core.freshness.estimates import PRIOR, RateEstimate
from crawler.core.freshness.gamma import Floats, Numbers, compute_digamma, solve_shape
from crawler.core.http.urls import Authority, Url, get_public_suffix

SHRINKAGE_PAGES = 20.0  # weight of a larger group in a smaller one, in pages; for example, of a domain in a template
MIN_SHAPE = 0.1  # of a prior; below, one visit decides everything
MAX_SHAPE = 20.0  # of a prior; above, visits hardly count
TEMPLATE_CACHE_SIZE = 8192  # URLs; each template is needed several times while its page is recorded
MAX_TEMPLATES = 256  # per domain; pages of further templates share the group OTHER_TEMPLATES
OTHER_TEMPLATES = "*"
MAX_LITERAL_FOLDERS = 2  # the first folders of a path are the section of a site; deeper ones become "*"
MAX_FOLDERS = 5  # further folders are omitted
MAX_PARAMETERS = 3  # in the query
NO_KIND = ""  # for an IP address or a name without a public suffix
ALL_KINDS = "*"  # all domains together
# Second-level labels of country domains that say what a site is, and their kinds.
KIND_BY_LABEL = {label: label for label in ("com", "edu", "gov", "mil", "net", "org")}
KIND_BY_LABEL |= {"ac": "edu", "co": "com", "gob": "gov", "gouv": "gov", "govt": "gov"}
REGION_SUFFIXES = frozenset({"co.us", "co.it"})  # Colorado and Como, not commercial sites

WORD = re.compile(r"[A-Za-z][A-Za-z_.~-]{0,23}")  # excludes digits and long slugs
EXTENSION = re.compile(r"\.([A-Za-z][A-Za-z0-9]{0,4})$")

Groups = NDArray[np.intp]


@lru_cache(TEMPLATE_CACHE_SIZE)
def derive_template(url: Url) -> str:
    """Return the template of a URL: its section, depth, file extension and parameter names.

    /blog/2024/05/a-post.html and /blog/2023/11/other.html are both "/blog/#/*/*.html"; the root is "/".
    """
    parts = urlsplit(url)
    *folders, last = parts.path.split("/")[1:] or [""]
    section = [
        name if WORD.fullmatch(name) else "#" if name.isdigit() else "*" for name in folders[:MAX_LITERAL_FOLDERS]
    ]
    path_parts = [*section, *("*" for _ in folders[MAX_LITERAL_FOLDERS:MAX_FOLDERS])]
    extension = EXTENSION.search(last)
    path_parts.append(f"*.{extension[1].lower()}" if extension else "*" if last else "")
    names = sorted({name for name, _ in parse_qsl(parts.query, keep_blank_values=True) if WORD.fullmatch(name)})
    query = "?" + "&".join(names[:MAX_PARAMETERS]) if parts.query else ""
    return "/" + "/".join(path_parts) + query


def choose_group(url: Url, groups: Collection[str], *, max_groups: int = MAX_TEMPLATES) -> str:
    """Return the group of a page: its template, or OTHER_TEMPLATES if it is new and there are `max_groups` groups."""
    template = derive_template(url)
    return template if template in groups or len(groups) < max_groups else OTHER_TEMPLATES


def add_prior(rate_a: Numbers, rate_b: Numbers, a0: Numbers, b0: Numbers) -> tuple[Floats, Floats]:
    """Return the current estimates (a, b): stored evidence plus the current prior. Both are always above 0."""
    return np.asarray(a0 + np.maximum(rate_a, 0.0)), np.asarray(b0 + np.maximum(rate_b, 0.0))


def subtract_prior(a: Numbers, b: Numbers, a0: Numbers, b0: Numbers) -> tuple[Floats, Floats]:
    """Return the evidence to store: estimates minus their prior. It is never negative."""
    return np.maximum(a - a0, 0.0), np.maximum(b - b0, 0.0)


class Moments(Struct, frozen=True):
    """The moments of groups from which priors are refitted: arrays of equal shape, one entry per group.

    pages: the number of fetched pages, with or without evidence.
    rate, log_rate: the means over these pages of E[rate] = a/b and of E[ln rate] = digamma(a) - ln b; any finite number
    in a group without pages.
    """

    pages: Floats
    rate: Floats
    log_rate: Floats


def compute_moments(a: Floats, b: Floats, group: Groups, *, group_count: int) -> Moments:
    """Compute the moments of groups from the estimates of fetched pages. group[i] is from 0 to group_count - 1."""
    pages = np.bincount(group, minlength=group_count).astype(np.float64)
    divisor = np.maximum(pages, 1.0)
    rate = np.bincount(group, weights=a / b, minlength=group_count) / divisor
    log_rate = np.bincount(group, weights=compute_digamma(a) - np.log(b), minlength=group_count) / divisor
    return Moments(pages, rate, log_rate)


def pool_moments(groups: Moments) -> Moments:
    """Pool the moments of all groups: templates to their domain, or domains to all domains."""
    total = groups.pages.sum()
    divisor = float(total) or 1.0
    rate = (groups.pages * groups.rate).sum() / divisor
    log_rate = (groups.pages * groups.log_rate).sum() / divisor
    return Moments(np.asarray(total), np.asarray(rate), np.asarray(log_rate))


def pool_kind(domains: Moments, revisited_pages: Floats) -> Moments:
    """Pool the domains of one kind, each with a weight of at most SHRINKAGE_PAGES pages.

    revisited_pages: the number of revisited pages of each domain. A domain shrinks toward its kind with weight
    SHRINKAGE_PAGES (S), the ratio of the variance within a domain to the variance between domains. With that ratio, n
    pages of one domain carry as much information on the kind as n S / (n + S) pages of different domains. So a large
    domain does not dominate its kind, and a domain without revisits has no weight.
    """
    weight = SHRINKAGE_PAGES * revisited_pages / (revisited_pages + SHRINKAGE_PAGES)
    return pool_moments(replace(domains, pages=weight))


def shrink_moments(groups: Moments, toward: Moments, *, shrinkage_pages: float = SHRINKAGE_PAGES) -> Moments:
    """Mix `shrinkage_pages` pages of the larger group into each group. An empty group gets the larger one's moments."""
    total = groups.pages + shrinkage_pages
    rate = (groups.pages * groups.rate + shrinkage_pages * toward.rate) / total
    log_rate = (groups.pages * groups.log_rate + shrinkage_pages * toward.log_rate) / total
    return Moments(groups.pages, np.asarray(rate), np.asarray(log_rate))


def fit_priors(groups: Moments) -> tuple[Floats, Floats]:
    """Fit (a0, b0) of each group: the Gamma with these moments, with a0 limited to [MIN_SHAPE, MAX_SHAPE].

    The mean is always kept. This is one step of expectation maximization: repeated on the estimates that the last
    priors gave, it converges to the maximum of the marginal likelihood.
    """
    spread = np.maximum(np.log(groups.rate) - groups.log_rate, 1e-9)
    a0 = np.clip(solve_shape(spread), MIN_SHAPE, MAX_SHAPE)
    return a0, np.asarray(a0 / groups.rate)


def compute_prior_moments(prior: RateEstimate) -> Moments:
    """Return the moments of a prior, for use as a larger group."""
    log_rate = compute_digamma(prior.a) - np.log(prior.b)
    return Moments(np.asarray(0.0), np.asarray(prior.rate_per_day), np.asarray(log_rate))


def fit_kind_prior(kind: Moments | None, *, everywhere: Moments) -> RateEstimate:
    """Fit the prior of a kind of site, which applies to its new domains. kind, everywhere: see refit_priors."""
    a, b = fit_priors(_shrink_kind(kind, everywhere))
    return RateEstimate(float(a), float(b))


def refit_priors(
    templates: Moments, *, everywhere: Moments, kind: Moments | None = None
) -> tuple[Floats, Floats, RateEstimate]:
    """Return the priors of a domain's templates, (a0, b0) as arrays, and of the domain, for pages of new templates.

    templates: the moments of the templates of this domain.  everywhere: the moments of all domains, which shrink toward
    PRIOR.  kind: the pooled moments of the domain's kind (pool_kind), which shrink toward `everywhere`; without a kind,
    the domain shrinks toward `everywhere`.
    """
    domain = shrink_moments(pool_moments(templates), _shrink_kind(kind, everywhere))
    a0, b0 = fit_priors(shrink_moments(templates, domain))
    domain_a, domain_b = fit_priors(domain)
    return a0, b0, RateEstimate(float(domain_a), float(domain_b))


def _shrink_kind(kind: Moments | None, everywhere: Moments) -> Moments:
    world = shrink_moments(everywhere, compute_prior_moments(PRIOR))
    return world if kind is None else shrink_moments(kind, world)


class KindPrior(Struct, frozen=True):
    """The prior for a page of a new domain of one kind, or of any kind (ALL_KINDS).

    pages, domains: the numbers of revisited pages (estimated from samples) and of their domains.
    """

    kind: str
    prior: RateEstimate
    pages: float
    domains: int


def classify_site(authority: Authority) -> str:
    """Return the kind of a site by its public suffix.

    That is the class in any country ("gov" for .gov and .gov.uk, "edu" for .ac.uk, "com" for .co.jp), or else the
    suffix itself ("org", "de", "github.io"), or NO_KIND without a public suffix.
    """
    suffix = get_public_suffix(authority)
    if suffix is None:
        return NO_KIND
    labels = suffix.split(".")
    return KIND_BY_LABEL.get(labels[-2], suffix) if len(labels) > 1 and suffix not in REGION_SUFFIXES else suffix
