"""Every policy by its name in tables and in the command."""

from dataclasses import replace

from labs.experiments.policies import adaptive, fixed
from labs.experiments.policies.adaptive import Queue
from labs.experiments.policies.clairvoyant import Clairvoyant
from labs.experiments.policies.informed import Informed
from labs.experiments.policies.ours import ALL, NOTHING, Mechanisms, Ours
from labs.experiments.simulation import Maker

OURS, AMOUNTS, OPTIMUM, UNIFORM, INFORMED, PLAIN = "ours", "magnitudes", "optimum", "uniform", "informed", "plain"


def _ours(mechanisms: Mechanisms) -> Maker:
    return lambda scene, _: Ours(scene, mechanisms)


POLICIES: dict[str, Maker] = {
    OURS: _ours(ALL),  # each change counts equally, since freshness is compared
    AMOUNTS: _ours(replace(ALL, magnitudes=True)),
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

# Ours with all mechanisms off, and with one changed, for the table of mechanisms.
SWITCHED: dict[str, Maker] = {
    PLAIN: _ours(NOTHING),
    "no activity": _ours(replace(ALL, activity=False)),
    "no templates": _ours(replace(ALL, groups=False)),
    "no prior": _ours(replace(ALL, prior=False)),
    "mix 0.5": _ours(replace(ALL, mix=0.5)),
}
EVERY = POLICIES | SWITCHED
