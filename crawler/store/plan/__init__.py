"""What the plan and audit flows read and write: samples of pages, prices, random audits.

`sample_domain` samples a domain's pages, `write_plan` stores its price and priors, `learn_activity` learns when its
pages changed, `draw` takes pages for an audit. The last
room of the store: it may use all others.
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
