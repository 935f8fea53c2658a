"""The inputs of scoring a domain's pages, such as the shadow price, the costs of visits and the rules."""

from datetime import UTC, datetime, timedelta
from typing import Any

from msgspec import Struct

from crawler.core.budget.cost import TIME_PRICE, Costs, RequestKind, ShadowPrice, is_head_cheaper
from crawler.core.budget.ledger import count_floor_left
from crawler.core.budget.shadow_price import FLOOR_VISITS_SHARE, LONGEST_INTERVAL_SHARE
from crawler.core.domain import Domain
from crawler.core.domain_settings import DomainSettings
from crawler.core.freshness.estimates import DAY, DEFAULT_MAGNITUDE, ChangeWeight, ExpectedMagnitude, RateEstimate
from crawler.core.freshness.policies import RevisitPolicy, parse_policy_or_default
from crawler.core.freshness.selection import DayBudget
from crawler.core.freshness.signals import SourceQuality
from crawler.core.freshness.site_activity import SiteActivity
from crawler.core.freshness.visit_terms import CrawlDefaults, VisitTerms
from crawler.core.http.response import Validators
from crawler.core.http.urls import Url
from crawler.core.page_rules import PageRules
from crawler.core.validator_trust import (
    NO_TRUST,
    WHOLE_DOMAIN,
    Validator,
    ValidatorTrust,
    apply_suspicion,
    choose_head_validators,
    choose_validators,
    find_suspected_validators,
    is_validator_check_due,
)
from crawler.store.database import Connection
from crawler.store.learned.credibility import Trusts, read_sources, read_trusts
from crawler.store.rows import decode_costs, fetch_dict

COPIED_FIELDS = ("clock", "circulating", "window_passes", "mean_magnitude")  # columns of CONTEXT with the same name
MAX_LIST_INTERVAL = timedelta(hours=22)  # below a day, so that a daily run visits each list even if it starts early
LIST_SHARE = 0.03  # maximum share of a budget for visits to lists that are due only because of MAX_LIST_INTERVAL
CONTEXT = """
    SELECT s.clock, s.total_cash - s.dormant AS circulating, s.window_passes, s.costs, s.tracked,
           s.activity_at, s.activity_ahead, d.bytes_per_day, l.price_request, coalesce(l.price_byte, 0) AS price_byte,
           coalesce(l.price_correction, 1) AS price_correction, l.longest_s,
           coalesce(l.mean_magnitude, %(usual_amount)s) AS mean_magnitude,
           coalesce(d.budget_per_day, l.budget_per_day) AS budget,
           CASE WHEN s.budget_day = (%(at)s AT TIME ZONE 'UTC')::date THEN s.spent_floor ELSE 0 END AS spent_floor,
           CASE WHEN s.budget_day = (%(at)s AT TIME ZONE 'UTC')::date THEN s.spent_requests ELSE 0 END AS spent_today,
           (SELECT sum(pages) FROM pool WHERE domain_id = %(domain_id)s)::bigint AS pages,
           (SELECT count(*) FROM url_list WHERE domain_id = %(domain_id)s) AS lists,
           (SELECT coalesce(array_agg(no), '{}') FROM prior
             WHERE domain_id = %(domain_id)s AND deferred_until IS NOT NULL) AS deferred
      FROM domain_state s
      JOIN domain d ON d.id = s.domain_id
      LEFT JOIN domain_plan l ON l.domain_id = s.domain_id
     WHERE s.domain_id = %(domain_id)s AND (%(token)s::uuid IS NULL OR s.lease_token = %(token)s)
"""


class ScoringContext(Struct, frozen=True):
    """Everything that the scores of a domain's pages depend on.

    clock, circulating: the domain's clock and its circulating cash (core/opic/opic.py).  window_passes: the importance
    window, in units of circulating cash.  pages: the number of pages that take part in OPIC.  budget: the domain's
    daily budget; None without a limit, or if the domain has a maximum age.
    trusts: the reliability of validators, by group.
    slot_number: a number that grows with each request granted today and each day; it varies how fractions of slots are
    rounded.
    is_scarce: the plan has set a shadow price; otherwise, the cost of a visit is time.
    suspected: validators that lied in every group in which a change tested them.
    deferred: groups whose unfetched pages are deferred because such pages brought hardly anything new.
    mean_magnitude: of a change, over the domain's pages.
    sources: the quality of the signal sources, by number.
    activity: the site activity as last learned.
    max_list_interval: the longest interval between visits of a URL list.
    uses_whole_budget: spend the budget even if no page has enough value (CrawlDefaults.fills_budgets).
    discovery_share, refresh_share: shares of the domain's requests guaranteed to unfetched pages and to revisits.
    """

    clock: float
    circulating: int
    window_passes: float
    pages: int
    settings: DomainSettings
    shadow_price: ShadowPrice
    costs: Costs
    min_interval: timedelta
    max_interval: timedelta
    budget: DayBudget | None
    rules: PageRules
    trusts: Trusts
    slot_number: int
    discovery_share: float
    refresh_share: float
    is_scarce: bool
    suspected: frozenset[Validator]
    deferred: tuple[int, ...]
    mean_magnitude: float
    revisit_policy: RevisitPolicy
    sources: tuple[SourceQuality, ...]
    activity: SiteActivity
    max_list_interval: timedelta
    uses_whole_budget: bool

    def compute_expected_magnitude(self, group_magnitude: float) -> ExpectedMagnitude | None:
        """Return the expected magnitude of a change of a page in this group; None if all changes count equally."""
        counts_magnitude = self.settings.change_weight == ChangeWeight.MAGNITUDE
        return ExpectedMagnitude(group_magnitude, self.mean_magnitude) if counts_magnitude else None

    def get_trust(self, group: int) -> ValidatorTrust:
        """Return the trust in the validators of a group of pages, reduced for suspected ones."""
        return apply_suspicion(self.trusts.get(group, NO_TRUST), self.suspected)

    def is_check_due(self, group: int) -> bool:
        """Return whether a group's next revisit is a validator check, if it is also the domain's next revisit."""
        trust = self.get_trust(group)
        return is_validator_check_due(trust, trust.revisits, self.trusts.get(WHOLE_DOMAIN, NO_TRUST).revisits)

    def choose_request_kind(
        self, validators: Validators, group: int, *, body_bytes: int, is_rendered: bool = False
    ) -> RequestKind:
        """Return the kind of request for a page with these validators, unless the visit is a validator check."""
        with_head, without_head = self.list_request_kinds(validators, group, is_rendered=is_rendered)
        is_same = with_head is without_head
        return with_head if is_same or self.should_send_head(group, body_bytes=body_bytes) else without_head

    def list_request_kinds(
        self, validators: Validators, group: int, *, is_rendered: bool = False
    ) -> tuple[RequestKind, RequestKind]:
        """Return the kind of request if a HEAD is used where possible, and the kind without one.

        Only the presence of the validators matters, not their values.
        is_rendered: the page is rendered by a browser. RENDER also stands for its visits that need no browser, because
        the response is "not modified".
        """
        if is_rendered:
            return RequestKind.RENDER, RequestKind.RENDER
        trust = self.get_trust(group)
        without_head = RequestKind.CONDITIONAL if choose_validators(validators, trust) else RequestKind.FULL
        return without_head if choose_head_validators(validators, trust) is None else RequestKind.HEAD, without_head

    def should_send_head(self, group: int, *, body_bytes: int) -> bool:
        """Return whether HEADs have been useful in this group and cost less than a GET of a body of this size."""
        shadow_price = self.shadow_price if self.is_scarce else TIME_PRICE
        was_useful = self.get_trust(group).get_stats(Validator.HEAD).is_steady
        return was_useful and is_head_cheaper(shadow_price, self.costs, body_bytes=body_bytes)

    def build_terms(
        self, url: Url, *, prior: RateEstimate, magnitude: float, kind: RequestKind, is_list: bool = False
    ) -> VisitTerms:
        """Return the terms of a page's next visit: shadow price, intervals, prior, and the user's rules."""
        rule_terms = self.rules.merge_terms(url)
        max_interval = min(self.max_interval, self.max_list_interval) if is_list else self.max_interval
        upper_bound = rule_terms.max_interval or max(max_interval, rule_terms.min_interval or self.min_interval)
        return VisitTerms(
            shadow_price=self.shadow_price.compute_min_value(self.costs.get_cost(kind)),
            min_interval=min(rule_terms.min_interval or self.min_interval, upper_bound),
            max_interval=upper_bound,
            prior=prior,
            magnitude=self.compute_expected_magnitude(magnitude),
            revisit=self.revisit_policy,
            once=rule_terms.once,
            is_ruled=rule_terms.max_interval is not None,
            sources=self.sources,
        )


async def read_scoring_context(
    connection: Connection, domain: Domain, *, at: datetime, defaults: CrawlDefaults, token: object = None
) -> ScoringContext | None:
    """Read the context; None if the domain does not exist or the lease was lost. token: of the lease; None: any."""
    values = {"domain_id": domain.id, "at": at, "token": token, "usual_amount": DEFAULT_MAGNITUDE}
    row = await fetch_dict(connection, CONTEXT, values)
    if row is None:
        return None
    trusts = await read_trusts(connection, domain.id)
    sources = await read_sources(connection, domain.id)
    request_price = row["price_request"] or defaults.shadow_price
    ordering = domain.settings.ordering
    discovery, refresh = ordering.compute_shares(discovery=defaults.discovery_share, refresh=defaults.refresh_share)
    per_day = _compute_requests_per_day(row, domain, defaults)
    days = at.astimezone(UTC).toordinal() + domain.id
    floor_left_today = count_floor_left(row["spent_floor"], per_day or 0, share=FLOOR_VISITS_SHARE, day_number=days)
    # All lists together take at most LIST_SHARE of a budget.
    list_load = row["lists"] / (LIST_SHARE * row["budget"]) if row["budget"] else 1.0
    return ScoringContext(
        **{name: row[name] for name in COPIED_FIELDS},
        pages=int(row["pages"] or 0),
        settings=domain.settings,
        shadow_price=ShadowPrice(request_price * row["price_correction"], row["price_byte"] * row["price_correction"]),
        costs=decode_costs(row["costs"]),
        min_interval=defaults.min_interval,
        max_interval=defaults.max_interval if row["longest_s"] is None else timedelta(seconds=row["longest_s"]),
        budget=None if per_day is None else DayBudget(per_day, floor_left_today),
        rules=PageRules(domain.settings.rules, defaults.page_score),
        trusts=trusts,
        slot_number=days + row["spent_today"],
        discovery_share=discovery,
        refresh_share=refresh,
        is_scarce=row["price_request"] is not None,
        uses_whole_budget=domain.settings.uses_whole_budget and defaults.fills_budgets,
        suspected=find_suspected_validators(trusts),
        deferred=tuple(row["deferred"]),
        revisit_policy=parse_policy_or_default(domain.settings.revisit, defaults.plugin_policies),
        max_list_interval=MAX_LIST_INTERVAL * max(1.0, list_load),
        sources=tuple(each.compute_record_at(at).quality for each in sources),
        activity=SiteActivity(at=tuple(row["activity_at"]), ahead=tuple(row["activity_ahead"])),
    )


def _compute_requests_per_day(row: dict[str, Any], domain: Domain, defaults: CrawlDefaults) -> float | None:
    """Return the number of requests per day of a domain; None if it is unlimited or follows from a maximum age.

    If bytes or the requests of all domains are limited, the domain's share is derived from its longest interval in the
    plan.
    """
    if domain.settings.max_age is not None:  # the budget follows from the target, so there are no floor visits
        return None
    budgets = [row["budget"], defaults.budget_per_day]
    limits = (defaults.budget_per_day, defaults.bytes_per_day, row["bytes_per_day"])
    if row["longest_s"] and any(limit is not None for limit in limits):
        budgets.append(row["tracked"] * DAY.total_seconds() / (LONGEST_INTERVAL_SHARE * row["longest_s"]))
    return min((budget for budget in budgets if budget is not None), default=None)
