"""By what a domain's pages are measured today: clock and window of importance, price, costs, rules."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from crawler.core.budget.cost import BY_TIME, Costs, Price, RequestKind, is_head_cheaper
from crawler.core.budget.ledger import floor_left
from crawler.core.budget.shadow_price import FLOOR_VISITS_SHARE, LONGEST_INTERVAL_SHARE
from crawler.core.domain import Domain
from crawler.core.domain_settings import DomainSettings
from crawler.core.freshness.estimates import DAY, USUAL_AMOUNT, Belief, ChangeValue, UsualAmount
from crawler.core.freshness.policies import RevisitPolicy, policy_or_price
from crawler.core.freshness.selection import DayBudget
from crawler.core.freshness.signals import SourceWorth
from crawler.core.freshness.site_activity import SiteActivity
from crawler.core.freshness.terms import Defaults, Terms
from crawler.core.http.response import Validators
from crawler.core.http.urls import Url
from crawler.core.page_rules import PageRules
from crawler.core.validators import (
    NO_TRUST,
    WHOLE_DOMAIN,
    Trust,
    Validator,
    head_validators,
    is_challenge_due,
    suspected_validators,
    validators_to_send,
    with_suspicion,
)
from crawler.store.database import Connection
from crawler.store.learned.credibility import Trusts, sources_of, trusts_of
from crawler.store.rows import costs_from, fetch_dict

AS_THEY_ARE = ("clock", "circulating", "window_passes", "mean_amount")  # of a row of CONTEXT
LONGEST_LIST = timedelta(hours=22)  # so that a daily run visits each, though one may begin earlier than the last
LIST_SHARE = 0.03  # of a budget, for visits of lists that nothing but LONGEST_LIST asks for
CONTEXT = """
    SELECT s.clock, s.coins - s.dormant AS circulating, s.window_passes, s.costs, s.tracked,
           s.activity_at, s.activity_ahead, d.bytes_per_day, l.price_request,
           coalesce(l.price_byte, 0) AS price_byte,
           coalesce(l.price_correction, 1) AS price_correction, l.longest_s,
           coalesce(l.mean_amount, %(usual_amount)s) AS mean_amount,
           coalesce(d.budget_per_day, l.budget_per_day) AS budget,
           CASE WHEN s.budget_day = (%(at)s AT TIME ZONE 'UTC')::date THEN s.spent_floor ELSE 0 END AS spent_floor,
           CASE WHEN s.budget_day = (%(at)s AT TIME ZONE 'UTC')::date THEN s.spent_requests ELSE 0 END AS spent_today,
           (SELECT sum(pages) FROM pool WHERE domain_id = %(domain_id)s)::bigint AS pages,
           (SELECT count(*) FROM url_list WHERE domain_id = %(domain_id)s) AS lists,
           (SELECT coalesce(array_agg(no), '{}') FROM prior
             WHERE domain_id = %(domain_id)s AND held_until IS NOT NULL) AS held_back
      FROM domain_state s
      JOIN domain d ON d.id = s.domain_id
      LEFT JOIN domain_plan l ON l.domain_id = s.domain_id
     WHERE s.domain_id = %(domain_id)s AND (%(token)s::uuid IS NULL OR s.lease_token = %(token)s)
"""


@dataclass(frozen=True, slots=True)
class ScoringContext:
    """Everything by which a domain's pages are scored today.

    clock, circulating: coins.  window_passes: of the clock, over which importance is told.  pages: how many take part.
    budget: of the domain, as far as it is known.
    trusts: how far validators can be believed, by group.
    turn: requests granted today, and one more for each day: which of many small hand-outs the next one is.
    is_scarce: there is less of something than could be spent; otherwise what a look costs is time.
    suspected: validators that have lied in every group that was tested.
    held_back: groups whose new pages are held back, since such pages have brought nothing new of late.
    mean_amount: of a change, over the domain's pages.  revisit: when pages are looked at again.
    sources: what sources of signals are worth, by their numbers.
    activity: of the site, until it was last learned.
    longest_list: between visits of a sitemap or a feed, which tell of new pages.
    uses_whole_budget: requests that no page is worth are made all the same (Defaults.fills_budgets).
    discovery_share, refresh_share: of the domain's requests, guaranteed to new pages and to revisits.
    """

    clock: float
    circulating: int
    window_passes: float
    pages: int
    settings: DomainSettings
    price: Price
    costs: Costs
    least: timedelta
    most: timedelta
    budget: DayBudget | None
    rules: PageRules
    trusts: Trusts
    turn: int
    discovery_share: float
    refresh_share: float
    is_scarce: bool
    suspected: frozenset[Validator]
    held_back: tuple[int, ...]
    mean_amount: float
    revisit: RevisitPolicy
    sources: tuple[SourceWorth, ...]
    activity: SiteActivity
    longest_list: timedelta
    uses_whole_budget: bool

    def usual_amount(self, group: float) -> UsualAmount | None:
        """What is expected of a change of a page whose group has this amount; None: each change counts alike."""
        return UsualAmount(group, self.mean_amount) if self.settings.value == ChangeValue.AMOUNT else None

    def trust(self, group: int) -> Trust:
        """How far the validators of a group of pages can be believed."""
        return with_suspicion(self.trusts.get(group, NO_TRUST), self.suspected)

    def is_challenge(self, group: int) -> bool:
        """Whether a group's next revisit is a challenge, provided that it is the domain's next revisit, too."""
        trust = self.trust(group)
        return is_challenge_due(trust, trust.revisits, self.trusts.get(WHOLE_DOMAIN, NO_TRUST).revisits)

    def kind(self, held: Validators, group: int, *, body_bytes: int, is_rendered: bool = False) -> RequestKind:
        """The kind of request for a page with such validators, challenges aside."""
        worth_it, otherwise = self.kinds(held, group, is_rendered=is_rendered)
        is_same = worth_it is otherwise
        return worth_it if is_same or self.is_head_worth_it(group, body_bytes=body_bytes) else otherwise

    def kinds(self, held: Validators, group: int, *, is_rendered: bool = False) -> tuple[RequestKind, RequestKind]:
        """The kinds of request where a HEAD is worth it, and where it is not. What validators say does not matter.

        is_rendered: the page is one that is rendered; what looks at such pages cost, with those that are not modified
        and need no browser, is learnt of them together.
        """
        if is_rendered:
            return RequestKind.RENDER, RequestKind.RENDER
        trust = self.trust(group)
        otherwise = RequestKind.CONDITIONAL if validators_to_send(held, trust) else RequestKind.FULL
        return otherwise if head_validators(held, trust) is None else RequestKind.HEAD, otherwise

    def is_head_worth_it(self, group: int, *, body_bytes: int) -> bool:
        """Whether a HEAD was of use in that group, and is cheaper than this body."""
        price = self.price if self.is_scarce else BY_TIME
        was_useful = self.trust(group).of(Validator.HEAD).is_steady
        return was_useful and is_head_cheaper(price, self.costs, body_bytes=body_bytes)

    def terms(self, url: Url, *, prior: Belief, amount: float, kind: RequestKind, is_list: bool = False) -> Terms:
        """The terms of a page's next look: its price, intervals, prior, and the rules of its user."""
        said = self.rules.terms(url)
        longest = min(self.most, self.longest_list) if is_list else self.most
        most = said.most or max(longest, said.least or self.least)
        return Terms(
            price=self.price.of(self.costs.of(kind)),
            least=min(said.least or self.least, most),
            most=most,
            prior=prior,
            amount=self.usual_amount(amount),
            revisit=self.revisit,
            once=said.once,
            is_ruled=said.most is not None,
            sources=self.sources,
        )


async def scoring_context(
    connection: Connection, domain: Domain, *, at: datetime, defaults: Defaults, token: object = None
) -> ScoringContext | None:
    """Read the context. token: of the caller's lease. None if the lease was lost, or if there is no such domain."""
    values = {"domain_id": domain.id, "at": at, "token": token, "usual_amount": USUAL_AMOUNT}
    row = await fetch_dict(connection, CONTEXT, values)
    if row is None:
        return None
    trusts = await trusts_of(connection, domain.id)
    sources = await sources_of(connection, domain.id)
    price = row["price_request"] or defaults.price
    discovery, refresh = domain.settings.ordering.shares(
        discovery=defaults.discovery_share, refresh=defaults.refresh_share
    )
    per_day = _requests_per_day(row, domain, defaults)
    days = at.astimezone(UTC).toordinal() + domain.id
    left = floor_left(row["spent_floor"], per_day or 0, share=FLOOR_VISITS_SHARE, day_number=days)
    # All lists together take at most LIST_SHARE of a budget.
    list_load = row["lists"] / (LIST_SHARE * row["budget"]) if row["budget"] else 1.0
    return ScoringContext(
        **{name: row[name] for name in AS_THEY_ARE},
        pages=int(row["pages"] or 0),
        settings=domain.settings,
        price=Price(price * row["price_correction"], row["price_byte"] * row["price_correction"]),
        costs=costs_from(row["costs"]),
        least=defaults.least,
        most=defaults.most if row["longest_s"] is None else timedelta(seconds=row["longest_s"]),
        budget=None if per_day is None else DayBudget(per_day, left),
        rules=PageRules(domain.settings.rules, defaults.page_score),
        trusts=trusts,
        turn=days + row["spent_today"],
        discovery_share=discovery,
        refresh_share=refresh,
        is_scarce=row["price_request"] is not None,
        uses_whole_budget=domain.settings.uses_whole_budget and defaults.fills_budgets,
        suspected=suspected_validators(trusts),
        held_back=tuple(row["held_back"]),
        revisit=policy_or_price(domain.settings.revisit, defaults.revisits),
        longest_list=LONGEST_LIST * max(1.0, list_load),
        sources=tuple(each.at(at).worth for each in sources),
        activity=SiteActivity(at=tuple(row["activity_at"]), ahead=tuple(row["activity_ahead"])),
    )


def _requests_per_day(row: dict[str, Any], domain: Domain, defaults: Defaults) -> float | None:
    """Return the requests that a domain has a day; None where nothing says how many.

    Of bytes, and of what all domains share, a domain has the part that its longest interval was made for.
    """
    if domain.settings.target_age is not None:  # its budget is made for the target, so there is no floor beside it
        return None
    budgets = [row["budget"], defaults.budget_per_day]
    limits = (defaults.budget_per_day, defaults.bytes_per_day, row["bytes_per_day"])
    if row["longest_s"] and any(limit is not None for limit in limits):
        budgets.append(row["tracked"] * DAY.total_seconds() / (LONGEST_INTERVAL_SHARE * row["longest_s"]))
    return min((budget for budget in budgets if budget is not None), default=None)
