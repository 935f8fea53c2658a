"""What a request is worth: prices for all domains, forecasts for people, audits of what we report.

`plan_domains` solves and writes the prices, `forecast` says what another budget would buy, `audit_domains` draws
pages to look at regardless of their due times. Uses core, store, settings and clock.
"""

from crawler.plan.audit import LOOKED_BACK, AuditFinding, DomainAudit, audit_domains, findings
from crawler.plan.forecast import BudgetSource, Forecast, ForecastStep, forecast
from crawler.plan.plan import Planned, plan_domains

__all__ = [
    "LOOKED_BACK",
    "AuditFinding",
    "BudgetSource",
    "DomainAudit",
    "Forecast",
    "ForecastStep",
    "Planned",
    "audit_domains",
    "findings",
    "forecast",
    "plan_domains",
]
