"""The value of knowing a new domain's kind of site: its first month, with and without priors of kinds.

Earlier domains of some kinds have been visited for months. Then new ones are registered, each of their pages is fetched
once, and the product's rule revisits them within a budget. Rates are made-up log-normals with medians that studies of
the web suggest: pages under .gov and .edu stay unchanged for months, under .com for days.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.random import Generator

from crawler.core.budget.sample import PageSample, RefittedPriors, refit_all_priors
from crawler.core.freshness.estimates import PRIOR, RateEstimate, learn_changed, learn_unchanged
from crawler.core.freshness.prior import ALL_KINDS, NO_KIND, KindPrior, add_prior, subtract_prior
from labs.experiments.comparison import Mean, mean_of
from labs.experiments.policies.clairvoyant import Clairvoyant
from labs.experiments.policies.ours import Mechanisms, Ours
from labs.experiments.policies.policy import Policy, Scene
from labs.experiments.simulation import simulate
from labs.experiments.worlds import rhythm
from labs.experiments.worlds.world import Floats, Ints, Segments, World, keys_of

MEDIAN_RATES = {"gov": 1 / 120, "edu": 1 / 40, "org": 1 / 20, "com": 1 / 8}  # changes per day
BETWEEN = 0.5  # standard deviation of the logarithms of the rates between the domains of a kind
WITHIN = 1.0  # the same between the pages of a domain
OLDER_DAYS = 180
OLDER_VISITS_PER_DAY = 0.1  # per page
REFITTED_EVERY = 15  # days of the earlier domains
EDIT = 0.5  # share of its text that a change replaces; the same for all, since magnitudes do not matter here


class Start(StrEnum):
    """The prior of a new domain."""

    NOTHING = "nothing"  # PRIOR until the first plan, and then the prior of all domains
    ALL = "all"  # the prior of all domains from the first page on
    KIND = "kind"  # the prior of its kind from the first page on
    OPTIMUM = "optimum"  # each page's true rate


@dataclass(frozen=True, slots=True)
class Trial:
    """The size of the experiment: new domains, equally of all kinds, with pages each, for a number of days.

    older: earlier domains of each kind, of the same size.
    """

    domains: int = 50
    pages: int = 40
    days: int = 30
    older: int = 5


@dataclass(frozen=True, slots=True)
class KindRow:
    """The freshness of the new domains with one start at one budget, over seeds.

    share: requests per day, as a share of the pages.  gain: freshness above that with Start.NOTHING in the same worlds.
    used: share of the requests that the ledger allowed.
    """

    share: float
    start: Start
    seeds: int
    freshness: Mean
    gain: Mean
    used: Mean


@dataclass(frozen=True, slots=True)
class OlderDomains:
    """Earlier domains as they were last sampled, with what was learned from them."""

    samples: tuple[PageSample, ...]
    kinds: tuple[str, ...]
    learned: tuple[KindPrior, ...]


class NewDomains(Ours):
    """The product's rule for new domains beside others: each group of the scene is a domain."""

    def __init__(
        self, scene: Scene, *, older: OlderDomains, kinds: Sequence[str], begins: Sequence[RateEstimate]
    ) -> None:
        """Create the rule. kinds, begins: the kind and the first prior of each new domain."""
        super().__init__(scene, Mechanisms(magnitudes=True))  # the default of domains
        self._older, self._kinds = older, tuple(kinds)
        self._members = [np.flatnonzero(scene.group == each) for each in range(len(self._kinds))]
        self._a0, self._b0 = np.array([each.a for each in begins]), np.array([each.b for each in begins])
        self._phase = 1.0 - np.random.default_rng(0).random(scene.size)  # as in the store, until the first revisit

    def refitted(self, known: Ints) -> tuple[Floats, Floats]:  # noqa: ARG002  all pages are, from the first day on
        samples = [
            _sample(self._evidence_a[pages], self._evidence_b[pages], RateEstimate(float(a), float(b)))
            for pages, a, b in zip(self._members, self._a0, self._b0, strict=True)
        ]
        priors = refit_all_priors([*self._older.samples, *samples], [*self._older.kinds, *self._kinds])
        new = [domain[0] for domain in priors.domains[-len(samples) :]]
        return np.array([each.a for each in new]), np.array([each.b for each in new])


def compare_kinds(trial: Trial, shares: Sequence[float], *, seeds: int) -> Iterator[KindRow]:
    """Yield a row for each budget and each start, over worlds of seeds 1, 2, 3 ..."""
    for share in shares:
        fresh: dict[Start, Floats] = {}
        for start in Start:
            found = [_simulate(trial, start, share, seed=seed) for seed in range(1, seeds + 1)]
            fresh[start] = np.array([each[0] for each in found])
            used = np.array([each[1] for each in found])
            gain = fresh[start] - fresh[Start.NOTHING]
            yield KindRow(share, start, seeds, mean_of(fresh[start]), mean_of(gain), mean_of(used))


def _simulate(trial: Trial, start: Start, share: float, *, seed: int) -> tuple[float, float]:
    """Return the freshness of the new domains in one world, and the share of the allowed requests that was used."""
    world = new_world(trial, seed=seed)
    kinds = kinds_of(trial.domains)
    budget = max(round(share * world.size), 1)

    def make_policy(scene: Scene, seen: World) -> Policy:
        if start is Start.OPTIMUM:
            return Clairvoyant(scene, seen)
        older = older_domains(trial, by_kind=start is Start.KIND, seed=seed)
        known = {each.kind: each.prior for each in older.learned}
        leans_on = kinds if start is Start.KIND else [NO_KIND] * len(kinds)
        begins = [PRIOR if start is Start.NOTHING else known.get(kind, known[ALL_KINDS]) for kind in leans_on]
        return NewDomains(scene, older=older, kinds=leans_on, begins=begins)

    measured = simulate(world, make_policy, budget_per_day=budget, from_day=0)
    return measured.freshness, measured.requests / measured.granted


def kinds_of(domains: int) -> list[str]:
    """Return the kinds of the domains, in turn."""
    names = list(MEDIAN_RATES)
    return [names[n % len(names)] for n in range(domains)]


def new_world(trial: Trial, *, seed: int) -> World:
    """Return the new domains: pages of equal importance that change at random at constant rates."""
    rng = np.random.default_rng(seed)
    domain, rate = _rates(rng, kinds_of(trial.domains), trial.pages)
    size, days = len(rate), float(trial.days)
    segments = Segments(np.arange(size), np.zeros(size), rate)
    changed, at = rhythm.poisson(rng, segments, np.full(size, days))
    return World(
        name="kinds",
        days=days,
        importance=np.ones(size),
        host=domain,
        group=domain,
        born=np.zeros(size),
        died=np.full(size, np.inf),
        edit=np.full(size, EDIT),
        keys=keys_of(changed, at, stride=days + 1.0),
        segments=segments,
    )


def older_domains(trial: Trial, *, by_kind: bool, seed: int) -> OlderDomains:
    """Return domains that were visited for OLDER_DAYS at random times and planned repeatedly, like the product does.

    by_kind: whether they use the priors of their kinds. The results of visits are the same either way.
    """
    rng = np.random.default_rng([seed, 1])
    names = kinds_of(trial.older * len(MEDIAN_RATES))
    kinds = names if by_kind else [NO_KIND] * len(names)
    domain, rate = _rates(rng, names, trial.pages)
    prior_a, prior_b = np.full(len(names), PRIOR.a), np.full(len(names), PRIOR.b)
    rate_a, rate_b, last = np.zeros(len(rate)), np.zeros(len(rate)), np.zeros(len(rate))
    found = RefittedPriors([], ())
    for day in range(1, OLDER_DAYS + 1):
        pages = np.flatnonzero(rng.random(len(rate)) < OLDER_VISITS_PER_DAY)
        gap = day - last[pages]
        changed = rng.random(len(pages)) < -np.expm1(-rate[pages] * gap)
        prior = prior_a[domain[pages]], prior_b[domain[pages]]
        rate_estimate = add_prior(rate_a[pages], rate_b[pages], *prior)
        up, down = learn_changed(*rate_estimate, gap), learn_unchanged(*rate_estimate, gap)
        learned = np.where(changed, up[0], down[0]), np.where(changed, up[1], down[1])
        rate_a[pages], rate_b[pages] = subtract_prior(*learned, *prior)
        last[pages] = day
        if day % REFITTED_EVERY == 0:
            samples = _samples(rate_a, rate_b, domain, prior_a, prior_b)
            found = refit_all_priors(samples, kinds)
            prior_a = np.array([each[0].a for each in found.domains])
            prior_b = np.array([each[0].b for each in found.domains])
    samples = _samples(rate_a, rate_b, domain, prior_a, prior_b)
    return OlderDomains(tuple(samples), tuple(kinds), found.kinds)


def _rates(rng: Generator, kinds: Sequence[str], pages: int) -> tuple[Ints, Floats]:
    """Return the domain and the true rate of each page."""
    medians = np.log([MEDIAN_RATES[kind] for kind in kinds]) + BETWEEN * rng.standard_normal(len(kinds))
    domain = np.repeat(np.arange(len(kinds)), pages)
    return domain, np.exp(medians[domain] + WITHIN * rng.standard_normal(len(domain)))


def _samples(a: Floats, b: Floats, domain: Ints, prior_a: Floats, prior_b: Floats) -> list[PageSample]:
    """Return samples of the domains with this evidence of each page."""
    return [
        _sample(a[domain == n], b[domain == n], RateEstimate(float(prior_a[n]), float(prior_b[n])))
        for n in range(len(prior_a))
    ]


def _sample(rate_a: Floats, rate_b: Floats, prior: RateEstimate) -> PageSample:
    """Return a sample with all pages of a domain without templates; fetched, and of equal importance."""
    size = len(rate_a)
    no, nothing = np.zeros(size, bool), np.full(size, np.nan)
    return PageSample(
        is_new=no,
        rate_a=rate_a,
        rate_b=rate_b,
        group=np.zeros(size, np.intp),
        importance=np.ones(size),
        request_kind=np.zeros(size, np.intp),
        min_interval=nothing,
        max_interval=nothing,
        follows=no,
        magnitude_total=np.zeros(size),
        magnitude_changes=np.zeros(size),
        silent_days=np.zeros(size),
        weight=np.ones(size),
        priors=(prior,),
    )
