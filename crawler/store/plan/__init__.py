"""Storage for the plan and audit flows: samples of pages, shadow prices, random audits.

`sample_domain` samples a domain's pages, `write_plan` stores its shadow price and priors, `learn_activity` learns the
site activity, `draw_sample` selects pages for an audit. This package may use all others except retention.
"""

from crawler.store.plan.audits import (
    Calibration,
    count_calibration,
    count_requests,
    draw_sample,
    list_domains_to_audit,
    load_calibration,
)
from crawler.store.plan.plans import PlanInput, PlanRow, read_flows, read_plan_inputs, write_plan
from crawler.store.plan.samples import learn_activity, sample_domain
