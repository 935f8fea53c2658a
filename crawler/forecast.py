"""What a domain may expect of the requests it makes, and of a tenth to ten times as many."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from crawler.core.budget import Budget
from crawler.core.cost import Price
from crawler.core.domain import Domain
from crawler.core.outlook import FACTORS
from crawler.core.target import Terms, budget_for
from crawler.core.tariff import Tariff, requests_at, tariffs
from crawler.errors import BadInput
from crawler.plan import shares_of, terms_of, work_of
from crawler.settings import Settings
from crawler.store import plans
from crawler.store.database import Database

PAGES = 10_000  # read of the domain; freshness is then right to half a point


@dataclass(frozen=True, slots=True)
class Step:
    """What to expect of a budget. factor: times today's.  is_allowed: politeness leaves so many requests a day."""

    factor: float
    budget: float
    is_allowed: bool
    tariff: Tariff


@dataclass(frozen=True, slots=True)
class Forecast:
    """One domain's prospects. known, new: pages, by a sample.  price: in force, with its trim.

    budget: requests a day that it may make by its user's wish, or what the price costs now if there is no wish.
    cap: requests a day that politeness leaves.  finding: what is out of reach today.
    """

    domain: Domain
    known: float
    new: float
    price: Price
    budget: float
    has_budget: bool
    cap: float
    finding: str
    steps: Sequence[Step]

    @property
    def points_for_tenth(self) -> float:
        """By how many points of freshness a budget larger by a tenth is better."""
        fresh = {step.factor: step.tariff.outlook.freshness for step in self.steps}
        return 100 * (fresh[1.1] - fresh[1.0])


async def forecast(db: Database, domain: Domain, *, at: datetime, settings: Settings) -> Forecast | None:
    """What the domain may expect; None without known pages. Changes nothing. Raises BadInput if it was removed."""
    standings = await plans.standings(db, at=at, only=domain)
    if not standings:
        raise BadInput(f"{domain.authority} is not registered any more")
    (standing,) = standings
    census = await plans.census(db, standing, most=PAGES, at=at)
    if not census.known:
        return None
    work = work_of(census, census.priors, settings)
    terms = terms_of(standing, settings, importance=1.0)
    (now,) = tariffs([work], [terms], shares=shares_of(settings))
    price = standing.price or Price(settings.price)
    price = Price(price.per_request * standing.trim, price.per_byte * standing.trim)
    wished = min(terms.budget.requests, now.asked or terms.budget.requests)
    has_budget = wished < float("inf")
    budget = wished if has_budget else budget_for(requests_at(work, price, limit=terms.cap))
    steps = [
        _step(factor, budget, terms, tariffs([work], [_scaled(terms, budget, factor)], shares=shares_of(settings))[0])
        for factor in FACTORS
    ]
    return Forecast(domain, census.known, census.new, price, budget, has_budget, terms.cap, now.finding, steps)


def _scaled(terms: Terms, budget: float, factor: float) -> Terms:
    """So many times the budget, and no target that would ask for another."""
    scaled = Budget(budget * factor, terms.budget.received_bytes * factor)
    return replace(terms, budget=scaled, freshness=None, oldest_days=None)


def _step(factor: float, budget: float, terms: Terms, tariff: Tariff) -> Step:
    return Step(factor, budget * factor, is_allowed=budget * factor <= terms.cap, tariff=tariff)
