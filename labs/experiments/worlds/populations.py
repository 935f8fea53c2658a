"""Worlds for measurements: how rates, importance, hosts and times of changes are drawn, all from one seed."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.random import Generator

from labs.experiments.worlds import rhythm
from labs.experiments.worlds.world import Floats, Ints, Modified, Segments, World, keys_of

MEDIAN_RATE = 1 / 30  # changes per day; with the spread below, the mean page changes every ten days
SPREAD = 1.5  # standard deviation of the log-normal's exponent
GAMMA_SHAPE = 0.5
TAIL = 1.1  # exponent of the importances' tail; that of in-links minus one, 2.1 in Abiteboul et al.
HOSTS = 30
GROUPS = 20
CAP_SHARE = 0.0015  # of all pages, per host and day: at a budget of 3 %, half more than an equal share
LIFETIME_DAYS = 1000.0
YEAR_DAYS = 365.0
RELEASES_APART_DAYS = 14.0
WAVES_APART_DAYS = 45.0
WAVE_SHARE = 0.6  # of a host's pages that a deploy changes

TYPICAL_EDIT = 0.1  # share of a page's text that its changes replace, if it differs by page
EDIT_SPREAD = 1.0  # standard deviation of its exponent
MIN_EDIT = 0.002

Draw = Callable[[Generator, int], Floats]


@dataclass(frozen=True, slots=True)
class Population:
    """A recipe for worlds. story: what is special, for users.

    rates: draws true rates per day.  redraw_days: how often rates are redrawn, inf for never.
    lifetime_days: mean life of a page, which another page replaces; inf for unlimited.
    edit_spread: standard deviation of the logarithm of the share of its text that a page's changes replace; None: any
    share.  edit_by_rate: correlation of that logarithm with that of the page's rate, -1 to 1.
    adds_up: see World.  releases: changes are visible from the next release on.
    """

    story: str
    rates: Draw
    power_law: bool = True
    templates: float = 0.0  # share of the log-rates' variance that a page's group explains
    hosts: int = 1
    is_capped: bool = False
    redraw_days: float = np.inf
    lifetime_days: float = np.inf
    timing: Callable[[Generator, Segments, Floats], tuple[Ints, Floats]] | None = None
    waves: bool = False
    releases: bool = False
    edit_spread: float | None = None
    edit_by_rate: float = 0.0
    adds_up: bool = True
    modified: Modified = Modified.SILENT

    def world(self, name: str, *, pages: int, days: float, seed: int) -> World:
        """Draw a world of the population: the same arguments always give the same world."""
        rng = np.random.default_rng(seed)
        place, born, died = _lives(rng, pages, days, self.lifetime_days)
        size = len(place)
        importance = _power_law(rng, pages)[place] if self.power_law else np.ones(size)
        host = _hosts(rng, pages, self.hosts)[place]
        group = rng.integers(GROUPS, size=size)
        segments = _segments(rng, self, group=group, born=born, died=died, days=days)
        ends = np.minimum(died, days)
        changed, at = (self.timing or rhythm.poisson)(rng, segments, ends)
        if self.waves:
            extra, instants, per_day = _waves(rng, host, days)
            segments = Segments(segments.page, segments.since, segments.rate + per_day)
            changed, at = np.append(changed, extra), np.append(at, instants)
        if self.releases:
            changed, at = rhythm.released(rng, changed, at, days=days, apart=RELEASES_APART_DAYS)
            # Of a page's changes until one release, only one is visible.
            segments = Segments(
                segments.page, segments.since, segments.rate / (1 + segments.rate * RELEASES_APART_DAYS)
            )
        alive = (at > born[changed]) & (at <= ends[changed])
        return World(
            name=name,
            days=days,
            importance=importance,
            host=host,
            group=group,
            born=born,
            died=died,
            edit=_edits(rng, self, segments, size),
            keys=keys_of(changed[alive], at[alive], stride=days + 1.0),
            segments=segments,
            modified=self.modified,
            adds_up=self.adds_up,
            cap_per_day=CAP_SHARE * pages if self.is_capped else None,
        )


def _edits(rng: Generator, population: Population, segments: Segments, size: int) -> Floats:
    """Return the share of its text that each page's changes replace."""
    if population.edit_spread is None:
        return rng.uniform(0.1, 1.0, size)
    logs = np.zeros(size)
    logs[segments.page[::-1]] = np.log(segments.rate[::-1])  # of several segments of a page, the first one stays
    by_rate = (logs - logs.mean()) / max(float(logs.std()), 1e-9)
    drawn = population.edit_by_rate * by_rate + np.sqrt(1 - population.edit_by_rate**2) * rng.standard_normal(size)
    return np.asarray(np.clip(TYPICAL_EDIT * np.exp(population.edit_spread * drawn), MIN_EDIT, 1.0), np.float64)


def _lives(rng: Generator, pages: int, days: float, lifetime: float) -> tuple[Ints, Floats, Floats]:
    """Return whose place each page takes, when it appears and when it vanishes; places are always taken."""
    place, born = np.arange(pages), np.zeros(pages)
    places, births, deaths = [], [], []
    while len(place):
        died = born + rng.exponential(1.0, len(place)) * lifetime if np.isfinite(lifetime) else np.full(pages, np.inf)
        died = np.where(died < days, died, np.inf)
        places.append(place)
        births.append(born)
        deaths.append(died)
        place, born = place[died < days], died[died < days]
    return np.concatenate(places), np.concatenate(births), np.concatenate(deaths)


def _power_law(rng: Generator, pages: int) -> Floats:
    """Return importances with the tail of in-links: the quantiles themselves, which are equal for all seeds."""
    drawn = ((np.arange(pages) + 0.5) / pages) ** (-1 / TAIL)
    return np.asarray(rng.permutation(drawn / drawn.mean()), np.float64)


def _hosts(rng: Generator, pages: int, hosts: int) -> Ints:
    """Return hosts whose sizes decrease as 1, 1/2, 1/3."""
    sizes = 1 / np.arange(1, hosts + 1)
    return np.asarray(rng.choice(hosts, size=pages, p=sizes / sizes.sum()), np.int64)


def _segments(
    rng: Generator, population: Population, *, group: Ints, born: Floats, died: Floats, days: float
) -> Segments:
    """Return each page's rate from birth on, redrawn every `redraw_days`, at a different hour for each page."""
    size = len(born)
    pages, since = [np.arange(size)], [born]
    start = (
        rng.uniform(0, 1, size) * population.redraw_days
        if np.isfinite(population.redraw_days)
        else np.full(size, np.inf)
    )
    while (start < days).any():
        later = np.flatnonzero((start > born) & (start < np.minimum(died, days)))
        pages.append(later)
        since.append(start[later])
        start = start + population.redraw_days
    page, from_day = np.concatenate(pages), np.concatenate(since)
    rate = _with_templates(rng, population.rates(rng, len(page)), group[page], population.templates)
    order = np.argsort(from_day, kind="stable")
    return Segments(page[order], from_day[order], rate[order])


def _with_templates(rng: Generator, rates: Floats, group: Ints, share: float) -> Floats:
    """Return rates with the same spread, of whose variance a share is between groups."""
    if share == 0:
        return rates
    logs = np.log(rates)
    between = rng.standard_normal(GROUPS)[group] * np.sqrt(share) * logs.std()
    return np.asarray(np.exp(logs.mean() + (logs - logs.mean()) * np.sqrt(1 - share) + between), np.float64)


def _waves(rng: Generator, host: Ints, days: float) -> tuple[Ints, Floats, float]:
    """Return deploys, each of which changes many pages of a host at once, and their addition to a page's rate."""
    pages, instants = [np.zeros(0, np.int64)], [np.zeros(0)]
    for each in range(int(host.max()) + 1):
        members = np.flatnonzero(host == each)
        for at in rng.uniform(0, days, rng.poisson(days / WAVES_APART_DAYS)):
            hit = members[rng.random(len(members)) < WAVE_SHARE]
            pages.append(hit)
            instants.append(np.full(len(hit), at))
    return np.concatenate(pages), np.concatenate(instants), WAVE_SHARE / WAVES_APART_DAYS


def _heavy(rng: Generator, size: int) -> Floats:
    """Return rates with a tail like importance: a few pages that no crawler can follow dominate the mean."""
    return np.asarray(MEDIAN_RATE / 2 * rng.random(size) ** (-1 / TAIL), np.float64)


def _log_normal(rng: Generator, size: int) -> Floats:
    return MEDIAN_RATE * np.exp(SPREAD * rng.standard_normal(size))


def _gamma(rng: Generator, size: int) -> Floats:
    mean = MEDIAN_RATE * np.exp(SPREAD**2 / 2)  # the same mean as the log-normal
    return np.maximum(rng.gamma(GAMMA_SHAPE, mean / GAMMA_SHAPE, size), 1e-9)


_usual = partial(Population, rates=_log_normal)
_amounts = partial(_usual, edit_spread=EDIT_SPREAD, adds_up=False)
POPULATIONS: dict[str, Population] = {
    "log-normal": _usual("log-normal rates, power-law importance"),
    "equal": _usual("log-normal rates, every page of equal importance", power_law=False),
    "gamma": Population("Gamma rates of shape 0.5, power-law importance", rates=_gamma),
    "heavy": Population("rates with a power-law tail, power-law importance", rates=_heavy),
    "templates": _usual("half of the variance of the log-rates is between URL templates", templates=0.5),
    "hosts": _usual("thirty hosts, a politeness cap that binds the big ones", hosts=HOSTS, is_capped=True),
    "drift": _usual("every page's rate redrawn once a year", redraw_days=YEAR_DAYS),
    "births": _usual("pages live a thousand days on average, then new ones replace them", lifetime_days=LIFETIME_DAYS),
    "bursts": _usual("changes come in bursts: gaps vary 1.3 to 1.8 times their mean", timing=rhythm.bursts),
    "rhythms": _usual("changes keep office hours, each site in its time zone", timing=rhythm.office_hours),
    "waves": _usual("thirty sites, deploys change most pages of one at once", hosts=HOSTS, waves=True),
    "releases": _usual("one site whose changes are visible from its next release on, every two weeks", releases=True),
    "magnitudes": _amounts("change magnitudes differ by page, typically a tenth of the text"),
    "fast-large": _amounts("the same, and pages that change often change much", edit_by_rate=0.7),
    "fast-small": _amounts("the same, and pages that change often change little", edit_by_rate=-0.7),
    "even-amounts": _amounts("every change replaces a tenth of the text", edit_spread=0.0),
    "adding-up": _amounts("different magnitudes, and each change replaces another part of the text", adds_up=True),
    "honest": _usual("Last-Modified is the time of the last change", modified=Modified.HONEST),
    "echo": _usual("Last-Modified is always now", modified=Modified.ECHO),
    "frozen": _usual("Last-Modified never changes", modified=Modified.FROZEN),
}


def make_world(name: str, *, pages: int, days: float, seed: int) -> World:
    """Return a named population's world. Raise KeyError for a name that is not in POPULATIONS."""
    return POPULATIONS[name].world(name, pages=pages, days=days, seed=seed)
