"""What holds for the next look at a page: how much it must be worth, by when, and whether somebody asked for it."""

from dataclasses import dataclass
from datetime import timedelta
from enum import IntEnum

from crawler.core.freshness.belief import PRIOR, Belief


class Wanted(IntEnum):
    """Whether a look is wanted whatever it is worth."""

    NO = 0
    BY_USER = 1
    BY_AUDIT = 2  # one of a random sample
    BY_LEADER = 3  # the page whose schedule it shares has changed


@dataclass(frozen=True, slots=True)
class Terms:
    """What holds for a page's next look: how much it must be worth, and by when.

    price: importance x days that this look must be worth, with what it costs in it.  prior: what the page's group says.
    activity: how many times livelier than usual the domain is these days.  drift: how often a page's rate is drawn anew
    there, per day (drift.py).  once: it is not to be looked at again.
    is_ruled: a rule says how long at most: then such a look is ordinary work, and no floor under it.
    """

    price: float = 0.25
    least: timedelta = timedelta(minutes=10)
    most: timedelta = timedelta(days=180)
    prior: Belief = PRIOR
    activity: float = 1.0
    drift: float = 0.0
    once: bool = False
    is_ruled: bool = False


USUAL_TERMS = Terms()


@dataclass(frozen=True, slots=True)
class Defaults:
    """What holds where neither plan nor rules say otherwise, and what each kind of work is guaranteed of the requests.

    price: importance x days that a request must be worth.  budget_per_day, bytes_per_day: of all domains together.
    """

    price: float
    least: timedelta
    most: timedelta
    discovery_share: float
    refresh_share: float
    budget_per_day: int | None = None
    bytes_per_day: int | None = None
