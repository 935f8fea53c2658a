"""Every policy by its name, as tables and the command show it."""

from crawler.lab.policies import adaptive, fixed
from crawler.lab.policies.adaptive import Queue
from crawler.lab.policies.clairvoyant import Clairvoyant
from crawler.lab.policies.informed import Informed
from crawler.lab.policies.ours import Ours
from crawler.lab.simulation import Maker

OURS, AMOUNTS, OPTIMUM, UNIFORM, INFORMED = "ours", "amounts", "optimum", "uniform", "informed"

POLICIES: dict[str, Maker] = {
    OURS: lambda scene, _: Ours(scene),  # each change alike, since freshness is what is compared
    AMOUNTS: lambda scene, _: Ours(scene, by_amount=True),
    OPTIMUM: Clairvoyant,
    INFORMED: Informed,
    UNIFORM: lambda scene, _: fixed.uniform(scene),
    "importance": lambda scene, _: fixed.by_importance(scene),
    "rate": lambda scene, world: fixed.by_rate(scene, world.rates_at(0.0)),
    "nutch-score": lambda scene, _: adaptive.nutch(scene, Queue.SCORE),
    "nutch-due": lambda scene, _: adaptive.nutch(scene, Queue.DUE),
    "stormcrawler": lambda scene, _: adaptive.stormcrawler(scene),
    "likeness": lambda scene, _: adaptive.likeness(scene),
}
