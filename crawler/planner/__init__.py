"""What a request is worth: prices for all domains, forecasts for people, audits of what we report.

`plan_domains` solves and writes the prices, `forecast` says what another budget would buy, `audit_domains` draws
pages to look at regardless of their due times, `traffic_findings` says whose last hour was far from its usual. Uses
core, store, settings and clock.
"""

from crawler.planner.audit import LOOKED_BACK, AuditFinding, DomainAudit, audit_domains, findings
from crawler.planner.forecast import BudgetSource, Forecast, ForecastStep, forecast
from crawler.planner.plan import Planned, plan_domains
from crawler.planner.traffic import JudgedHour, TrafficFinding, judged_hours, traffic_findings
