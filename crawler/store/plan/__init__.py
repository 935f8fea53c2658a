"""What the plan and audit flows read and write: samples of pages, prices, random audits.

`counted` samples a domain's pages, `write` stores its price and priors, `draw` takes pages for an audit. The last
room of the store: it may use all others.
"""

from crawler.store.plan.audits import Audited, Calibration, calibrate, calibration, domains_to_audit, draw, requests_of
from crawler.store.plan.plans import Plan, Standing, flows_between, standings, write
from crawler.store.plan.samples import counted

__all__ = [
    "Audited",
    "Calibration",
    "Plan",
    "Standing",
    "calibrate",
    "calibration",
    "counted",
    "domains_to_audit",
    "draw",
    "flows_between",
    "requests_of",
    "standings",
    "write",
]
