"""Why a URL is tracked or not, and why a page is due when it is, in words."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import assert_never

from crawler.cli.actions.explain.signals import recall_and_ahead, unseen_days
from crawler.core.domain import Domain
from crawler.core.freshness import (
    DAY,
    REQUESTED,
    Defaults,
    PricePolicy,
    Terms,
    Wanted,
    due_gap,
    factor_of,
    phase_of,
    values_heard,
    weight_of,
)
from crawler.core.http import Refusal, Scope, Url, key_of, parse_robots
from crawler.core.page_rules import PageRules
from crawler.core.soft_errors import MAX_WITHHELD
from crawler.core.visit import NEVER, State
from crawler.format.reasons import format_reason
from crawler.format.values import format_count, format_instant, format_rate, format_span, format_when
from crawler.plugins import defaults_with, load
from crawler.settings import settings
from crawler.store.report import Explanation, PageFacts, PriorLevel, PriorSource, Waiting

ROUNDED = 0.03  # of the gap, by which a stored due time is the same: a claim rewrites none for less than 0.02
FOREVER_DAYS = 1e6  # no bound: the terms' own are looked at by themselves


def defaults_in_use() -> Defaults:
    """Return the defaults with the scores and revisit policies of the plugins in use, as a crawl has them."""
    return defaults_with(settings().defaults, settings().plugins)


def scope_now(domain: Domain) -> Scope:
    """Which URLs are pages of the domain, with the depth that holds where its user set none."""
    return domain.scope(max_depth=settings().max_depth, accepts=load(settings().plugins).accepts)


def rules_now(domain: Domain) -> PageRules:
    """What the domain's rules, and the score that plugins give, say of its pages."""
    return PageRules(domain.settings.rules, load(settings().plugins).page_score)


def why_untracked(url: Url, domain: Domain, known: Explanation) -> str:
    """Why a URL of a registered domain is not one of its pages."""
    refused = why_refused(url, domain, known.robots)
    if refused:
        return refused
    if Waiting.SEED in known.waiting:
        return f"{WAITS[Waiting.SEED]}: {TAKEN_UP}"
    if known.links == 0:
        return f"no page that was read links to it. To look at it: recrawl crawl {url}"
    deepest = scope_now(domain).max_depth
    if deepest is not None and known.nearest is not None and known.nearest + 1 > deepest:
        return f"it is {known.nearest + 1} links away from the nearest seed, and the domain ends at {deepest}"
    most = domain.settings.max_pages or settings().max_pages
    if known.tracked >= most:
        return f"the domain is full: it has {known.tracked} pages of at most {most}"
    return f"{known.linkers[0].url} links to it, and was read when it was refused; it is admitted at its next reading"


def why_refused(url: Url, domain: Domain, robots: bytes | None) -> str:
    """Why the URL may not be fetched now, whoever links to it; empty if it may."""
    scope = replace(scope_now(domain), max_depth=None)
    refusal = scope.refusal(url)
    if refusal is Refusal.EXCLUDED:
        pattern = next(p for p in scope.exclude if replace(scope, exclude=(p,)).refusal(url) is Refusal.EXCLUDED)
        return f"the domain excludes {pattern}"
    if refusal is Refusal.NOT_INCLUDED:
        return f"the domain includes only {', '.join(scope.include)}"
    if refusal is Refusal.URL_FILTER:
        return "a plugin that filters URLs refuses it (recrawl plugins)"
    if refusal is not None:
        return f"it is out of scope ({refusal.value.replace('_', ' ')})"
    if robots is not None and not parse_robots(robots).allows(url, settings().agent):
        return f"robots.txt forbids it to {settings().agent}"
    return ""


class Bound(StrEnum):
    """What says when a page with a version is due."""

    PRICE = "price"  # a look is worth it then
    LEAST = "least"  # it is worth it sooner, but not to be looked at before
    MOST = "most"  # it is worth it later or never, but no page waits longer
    ONCE = "once"  # it is not looked at again
    POLICY = "policy"  # another rule than the price, chosen for the domain


@dataclass(frozen=True, slots=True)
class Due:
    """When a page's next look would be due, were it recorded now: at today's price and by today's rules.

    gap: after its last good look; None for never.  by_rule: a rule of the user's is the bound.
    """

    bound: Bound
    by_rule: bool
    gap: timedelta | None
    at: datetime | None


def due_today(domain: Domain, known: Explanation, page: PageFacts) -> Due | None:
    """What its worth and today's price make of a page; None for one that goes by a clock of its own."""
    terms = known.terms
    if page.state is not State.KNOWN or page.last_good_at is None or not page.version or page.failures or terms is None:
        return None
    rules = rules_now(domain)
    said = rules.terms(page.url)
    if terms.once:
        return Due(Bound.ONCE, by_rule=True, gap=None, at=None)
    if not isinstance(terms.revisit, PricePolicy):
        return _due_by_policy(page, terms)
    weight = weight_of(_weighed_importance(page, said.weight * rules.score(page.url), terms))
    recall, ahead = recall_and_ahead(page, known)
    bounds = {"least": 0.0, "most": FOREVER_DAYS, "recall": recall, "ahead": ahead}
    days = float(due_gap(page.belief.a, page.belief.b, weight, terms.price, **bounds)) - page.activity_ahead
    if days >= terms.most / DAY:
        bound, by_rule, gap = Bound.MOST, said.most is not None, terms.most
    elif days <= terms.least / DAY:
        bound, by_rule, gap = Bound.LEAST, said.least is not None, terms.least
    else:
        bound, by_rule, gap = Bound.PRICE, False, timedelta(days=days)
    return Due(bound, by_rule, gap, page.last_good_at + gap)


def _due_by_policy(page: PageFacts, terms: Terms) -> Due | None:
    """Return what the domain's policy makes of a page: one span for all, or what was stored after the last look.

    The first wait of a page is stored as it was cut (`phase_of`), and is given here as the policy said it.
    """
    standing = terms.revisit.standing
    if page.last_good_at is None or page.due_at is None:
        return None
    phase = phase_of(key_of(page.url)) if page.visits == 1 else 1.0
    gap = min(max(standing or (page.due_at - page.last_good_at) / phase, terms.least), terms.most)
    return Due(Bound.POLICY, by_rule=False, gap=gap, at=page.last_good_at + gap)


def _weighed_importance(page: PageFacts, weight: float, terms: Terms) -> float:
    return page.look_importance * weight * amount_factor_of(page, terms)


def amount_factor_of(page: PageFacts, terms: Terms) -> float:
    """The factor on the importance of a page by how much its changes change, beside the domain's mean page."""
    return factor_of(page.amounts, terms.amount) if page.version else 1.0


WAITS = {
    Waiting.SEED: "somebody asked for it",
    Waiting.REFRESH: "somebody asked for it",
    Waiting.REREAD: "other settings of its domain ask for all of it again",
    Waiting.AUDIT: "it was drawn for an audit",
    Waiting.SIGNAL: "a source of signals says that it has changed, which is to be weighed",
    Waiting.REPRICE: "its due time may be another, by a new price, other settings or other rules",
    Waiting.REORDER: "its place may be another, by other settings",
}
TAKEN_UP = "this waits in the inbox, and the next crawl takes it up"


def why_next(domain: Domain, known: Explanation, page: PageFacts) -> str:
    """When it is looked at next, and why, with what the next crawl is to apply to it before that."""
    is_new = page.state is State.NEW
    idle = {Waiting.REFRESH, Waiting.REREAD, Waiting.AUDIT, Waiting.REPRICE} if is_new else {Waiting.REORDER}
    said = dict.fromkeys(WAITS[each] for each in Waiting if each in known.waiting - idle)
    due = why_due(domain, known, page)
    return f"{' and '.join(said)}: {TAKEN_UP}; until then, {due}" if said else due


def why_due(domain: Domain, known: Explanation, page: PageFacts) -> str:
    """When it is looked at next, and for what reason."""
    at = known.at
    when = format_when(page.due_at, now=at)
    is_overdue = page.due_at is not None and page.due_at <= at
    since = "it has been due since" if is_overdue else "it is due at"
    seen = "by a look that has been due since" if is_overdue else "at"
    match page.state:
        case State.NEW:
            return _why_new(page, at)
        case State.GONE:
            return f"it is gone ({format_reason(page.reason)}); whether it comes back is seen {seen} {when}"
        case State.MOVED:
            return f"it moved{f' to {page.moved_to}' if page.moved_to else ' away'}; {since} {when}"
        case State.REFUSED:
            why = why_refused(page.url, domain, known.robots)
            if not why and page.failures:
                reason = format_reason(page.reason)
                return f"it may be fetched again, and gave no good answer yet ({reason}); {since} {when}"
            return f"it may not be fetched ({why or page.reason}); whether that has changed is seen {seen} {when}"
        case State.KNOWN:
            return _why_known(page, due_today(domain, known, page), f"{since} {when}")


def _why_new(page: PageFacts, at: datetime) -> str:
    if page.wanted is not Wanted.NO or page.favoured or (page.due_at is None and not page.is_template_held):
        return f"it was never fetched; in the order of discovery it is number {(page.ahead or 0) + 1}"
    if page.due_at is None or page.due_at > at:
        until = f" until {format_when(page.due_at, now=at)}" if page.due_at is not None else ""
    else:
        return f"it was never fetched; it was put off until {format_when(page.due_at, now=at)}"
    if page.is_template_held:
        why = f"pages like it ({page.template}) have said nothing new of late, so one of them is asked for each day"
    else:
        why = (
            "its URL is that of a page that was read, but for a parameter that makes no other, its folders repeat, or"
            " only redirects, one after another, lead to it"
        )
    return f"it was never fetched, and is put off{until}: {why}"


WANTED_FOR = {
    **dict.fromkeys(REQUESTED, "because it was requested"),
    Wanted.BY_AUDIT: "as one of a random sample that checks the reported freshness",
    Wanted.BY_LEADER: "since {leader} has changed, which said the same",
    Wanted.TO_CONFIRM: "since it answered 404, and only a second 404 shows that it is gone",
    Wanted.BY_LIST: "since a sitemap or a feed names it, and it never was a page before",
    Wanted.TO_RENDER: "since it is stored without what its scripts write, and a browser should read it",
}


def _why_known(page: PageFacts, today: Due | None, due: str) -> str:
    if page.wanted in WANTED_FOR:
        leader = page.leader or "the page whose schedule it shared"
        return f"{due}, {WANTED_FOR[page.wanted].format(leader=leader)}"
    if page.failures:
        failed = f"{format_count(page.failures, 'look')} in a row failed ({format_reason(page.reason)})"
        return f"{failed}; {due}{_withheld(page)}"
    if page.leader is not None:
        return f"{due}, to see whether it still says the same as {page.leader}, whose schedule it shares"
    if today is None or page.reason:
        return f"it has no text of its own ({page.reason or 'never read'}); {due}"
    if today.bound is Bound.ONCE:
        return "it was had once, and a rule wants no more of it"
    if page.due_at is None or page.due_at >= NEVER:
        return f"it was had once, when a rule wanted no more of it; by today's rules {_why_then(today)}"
    return f"{due}{_why_stored(page, page.due_at, today)}"


def _withheld(page: PageFacts) -> str:
    """Return since when new content of the page is withheld and when that ends, or an empty string."""
    if page.withheld_since is None:
        return ""
    since, until = format_instant(page.withheld_since), format_instant(page.withheld_since + MAX_WITHHELD)
    return f". Its new content has been withheld since {since}; the first look from {until} on accepts what it finds"


def _why_stored(page: PageFacts, due_at: datetime, today: Due) -> str:
    """What its stored due time comes from: today's price and rules, or others before."""
    assert today.at is not None
    assert today.gap is not None
    if abs(due_at - today.at) <= ROUNDED * today.gap:
        return f", since {_why_then(today)}"
    if page.visits <= 1 and due_at < today.at:
        return f": pages that came in together are spread over their first interval; after it {_why_then(today)}"
    stored = ", which was stored at another price or under other rules"
    return f"{stored}; today {_why_then(today)}: {format_instant(today.at)}"


def _why_then(today: Due) -> str:
    """The bound that holds, as a reason."""
    assert today.gap is not None
    span, who = format_span(today.gap), "a rule" if today.by_rule else "the longest interval"
    match today.bound:
        case Bound.PRICE:
            return f"a look pays off {span} after the last one"
        case Bound.LEAST:
            least = "a rule" if today.by_rule else "the least interval"
            return f"a look pays off sooner, but {least} says {span} after the last one"
        case Bound.MOST:
            return f"a look does not pay off by then, but {who} says {span} after the last one"
        case Bound.ONCE:
            return "a rule wants no more of it"
        case Bound.POLICY:
            return f"the domain's policy says {span} after the last one"
        case _:
            assert_never(today.bound)


def why_belief(page: PageFacts, source: PriorSource | None) -> str:
    """What is believed about the page's changes, as a sentence."""
    rate = format_rate(page.belief.rate_per_day)
    looks = page.visits - page.failures  # a look that failed has found nothing, not even that there is no change
    if page.state is State.GONE:
        return f"it changed {rate} while it was there"
    if looks < 2 or page.version == 0 or page.state is State.REFUSED:
        return f"it changes {rate}, {_as_others(page, source)}"
    found = f"{format_count(looks, 'look')} found {format_count(page.changes, 'change')}"
    return f"it changes {rate}{_by_how_much(page)}: {found}"


def _by_how_much(page: PageFacts) -> str:
    if not page.amounts.changes:
        return ""
    return f", by about {shown_amount(page.amounts.total / page.amounts.changes)} of its text"


def shown_amount(amount: float) -> str:
    """An amount of change as a part of a text, in words."""
    if amount < 0.01:
        return "a hundredth or less"
    named = {10: "a tenth", 5: "a fifth", 4: "a quarter", 3: "a third", 2: "a half", 1: "all"}
    return named.get(round(1 / amount), f"{amount:.0%}")


def _as_others(page: PageFacts, source: PriorSource | None) -> str:
    """What is believed of a page before it was looked at again."""
    level = source.level if source else PriorLevel.NOTHING
    if source is None or level is PriorLevel.NOTHING:
        return "as pages do of which nothing is known"
    pages, sites = (
        f"({format_count(source.pages, 'page')} looked at again)",
        f"({format_count(source.domains, 'site')})",
    )
    match level:
        case PriorLevel.TEMPLATE:
            return f"as pages like {page.template} do {pages}"
        case PriorLevel.DOMAIN:
            return f"as pages of its domain do {pages}"
        case PriorLevel.KIND:
            return f"as pages of .{source.kind} sites do {sites}"
        case PriorLevel.ALL:
            return f"as pages of all sites do {sites}"
        case _:
            assert_never(level)


def worth_now(domain: Domain, known: Explanation, page: PageFacts) -> float | None:
    """What a look now is worth, in importance x days.

    None for a page that has no version to lose, and where another policy than the price decides.
    """
    if page.last_good_at is None or page.version == 0 or known.terms is None:
        return None
    if not isinstance(known.terms.revisit, PricePolicy):
        return None
    weight = weight_of(_weighed_importance(page, rules_now(domain).weight(page.url), known.terms))
    (recall, ahead), most = recall_and_ahead(page, known), known.terms.most / DAY
    belief, aged = page.belief, (1 - recall) * unseen_days(page, known) + ahead
    return float(values_heard(belief.a, belief.b, weight, aged, ahead=ahead, most=most))
