"""What a request is worth: prices for all domains, forecasts for people, audits of what we report.

`plan_domains` solves and writes the prices, `forecast` says what another budget would buy, `audit_domains` draws
pages to look at regardless of their due times. Uses core, store, settings and clock.
"""

from crawler.plan.audit import LOOKED_BACK, Audit, Finding, audit_domains, findings
from crawler.plan.forecast import Forecast, Source, Step, forecast
from crawler.plan.plan import Planned, plan_domains

__all__ = [
    "LOOKED_BACK",
    "Audit",
    "Finding",
    "Forecast",
    "Planned",
    "Source",
    "Step",
    "audit_domains",
    "findings",
    "forecast",
    "plan_domains",
]
