"""recrawl explain: everything about one URL, in words with the figures behind them."""

from dataclasses import replace
from datetime import UTC, datetime

from crawler.cli.exits import DONE, PROBLEM
from crawler.cli.output import print_json, say, show, show_facts, values_of
from crawler.cli.reading import shown_rate
from crawler.cli.session import Interrupts, with_database
from crawler.cli.values import counted, shown_bytes, shown_instant, shown_share
from crawler.core.belief import Belief, credible_interval, fresh_now
from crawler.core.domain import Domain
from crawler.core.order import Order
from crawler.core.price import value
from crawler.core.prior import ELSEWHERE
from crawler.core.robots import parse
from crawler.core.rules import Rules
from crawler.core.urls import Refusal, Scope, Url, authority_of
from crawler.core.visit import NEVER, State, Wanted
from crawler.naming import refuse_the_past
from crawler.registration import url_of
from crawler.settings import settings
from crawler.store import domains, explanations
from crawler.store.database import Database
from crawler.store.explanations import Explanation, PageFacts
from crawler.walker import usual_of


def explain(text: str, *, at: datetime | None, as_json: bool) -> int:
    url = url_of(text)

    async def work(db: Database, _: Interrupts) -> tuple[Domain, Url, Explanation] | None:
        domain = await domains.find(db, authority_of(url))
        if domain is None:
            return None
        if at is not None:
            await refuse_the_past(db, [domain], at)
        home = scope_now(domain).home(url)
        return (
            domain,
            home,
            await explanations.explain(db, domain, home, at=at or datetime.now(UTC), usual=usual_of(settings())),
        )

    found = with_database(work)
    if found is None:
        reason = f"{authority_of(url)} is not registered: recrawl domains add {authority_of(url)}"
        _print_untracked(url, reason, None, as_json=as_json)
        return PROBLEM
    domain, home, known = found
    if known.page is None:
        _print_untracked(home, why_untracked(home, domain, known), known, as_json=as_json)
    elif as_json:
        print_json(_document(domain, known, known.page))
    else:
        _show(domain, known, known.page)
    return DONE


def scope_now(domain: Domain) -> Scope:
    """Which URLs are pages of the domain, with the depth that holds where its user set none."""
    return domain.scope(max_depth=settings().max_depth)


def why_untracked(url: Url, domain: Domain, known: Explanation) -> str:
    """Why a URL of a registered domain is not one of its pages."""
    refused = why_refused(url, domain, known.robots)
    if refused:
        return refused
    if known.links == 0:
        return "no page that was read links to it: recrawl crawl with this URL looks at it"
    deepest = scope_now(domain).max_depth
    if deepest is not None and known.nearest is not None and known.nearest + 1 > deepest:
        return f"it is {known.nearest + 1} links away from the nearest seed, and the domain ends at {deepest}"
    most = domain.wishes.max_pages or settings().max_pages
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
    if refusal is not None:
        return f"it is out of scope ({refusal.value.replace('_', ' ')})"
    if robots is not None and not parse(robots).allows(url, settings().agent):
        return f"robots.txt refuses it to {settings().agent}"
    return ""


def why_due(page: PageFacts, *, at: datetime) -> str:
    """When it is looked at next, and for what reason."""
    when = shown_instant(page.due_at)
    since = "it has been due since" if page.due_at is not None and page.due_at <= at else "it is due at"
    match page.state:
        case State.NEW:
            return f"it was never fetched; in the order of discovery it is number {(page.ahead or 0) + 1}"
        case State.GONE:
            return f"it is gone ({page.reason}); in case it comes back, {since} {when}"
        case State.MOVED:
            return f"it moved{f' to {page.moved_to}' if page.moved_to else ' away'}; {since} {when}"
        case State.REFUSED:
            return f"it may not be fetched ({page.reason}); in case that changes, {since} {when}"
        case State.KNOWN:
            return _why_known(page, f"{since} {when}")


def _why_known(page: PageFacts, due: str) -> str:
    if page.wanted is Wanted.BY_USER:
        return f"{due}, since somebody asked for it"
    if page.wanted is Wanted.BY_AUDIT:
        return f"{due}, as one of a random sample that holds our report to the truth"
    if page.failures:
        return f"{counted(page.failures, 'look')} in a row failed ({page.reason}), so {due}"
    if page.version == 0 or page.reason:
        return f"it has no text of its own ({page.reason or 'never read'}); {due}"
    if page.due_at is not None and page.due_at >= NEVER:
        return "it was had once, and a rule wants no more of it"
    return f"{due}, when a look is worth its price"


def why_belief(page: PageFacts) -> str:
    """What is believed about the page's changes, as a sentence."""
    rate = shown_rate(page.belief.rate_per_day)
    if page.visits < 2:
        return f"it changes {rate}, as pages do of which nothing is known"
    return f"it changes {rate}: {counted(page.visits, 'look')} found {counted(page.changes, 'change')}"


def worth_now(domain: Domain, known: Explanation, page: PageFacts) -> float | None:
    """What a look now is worth, in importance x days; None for a page that has no version to lose."""
    if page.last_good_at is None or page.version == 0 or known.terms is None:
        return None
    importance = page.importance if page.importance is not None else 1.0
    weight = Rules(domain.wishes.rules).terms(page.url).weight
    lively = Belief(page.belief.a, page.belief.b / known.terms.activity)
    return value(lively, importance=importance * weight, unseen=known.at - page.last_good_at)


def _show(domain: Domain, known: Explanation, page: PageFacts) -> None:
    refused = why_refused(page.url, domain, known.robots)
    show_facts(
        [
            ("URL", page.url),
            ("Title", page.title or ""),
            ("State", page.state.value + (f", but now {refused}" if refused else "")),
            ("Next", why_due(page, at=known.at)),
            ("Belief", _shown_belief(page)),
            ("Fresh", _shown_freshness(page, at=known.at)),
            ("Worth", _shown_worth(domain, known, page)),
            ("Rules", _shown_rules(domain, page)),
            ("Importance", _shown_importance(domain, page)),
            ("Cash", _shown_cash(page)),
            ("Favoured", f"paid {domain.wishes.ordering.favour_by:g} times by the reserve" if page.favoured else ""),
            ("Rank", f"{page.rank} in the order {domain.wishes.ordering.order}" if page.state is State.NEW else ""),
            ("Depth", f"{counted(page.depth, 'link')} from the nearest seed"),
            ("First seen", shown_instant(page.first_seen_at)),
            ("Last look", _shown_look(page)),
            ("Last change", shown_instant(page.last_change_at) if page.last_change_at else ""),
            ("Version", f"{page.version}, {shown_bytes(page.received_bytes)} received" if page.version else "none"),
            ("ETag", page.etag or ""),
            ("Last-Modified", page.last_modified or ""),
            ("Links", f"to {counted(page.outlinks or 0, 'page')}, from {known.links}"),
        ]
    )
    _show_linkers(known)
    if known.visits:
        say("")
        show(
            ["look", "answer", "found", "by", "bytes", "expected", "reason"],
            [
                (
                    shown_instant(look.at),
                    look.answer.replace("_", " ") + (f" {look.status}" if look.status else ""),
                    look.change.value,
                    look.rung.value.replace("_", " "),
                    shown_bytes(look.received_bytes),
                    shown_share(look.expected),
                    look.reason,
                )
                for look in known.visits
            ],
            right=["bytes", "expected"],
        )


def _shown_belief(page: PageFacts) -> str:
    low, high = credible_interval(page.belief)
    group = f"pages like {page.template}" if page.template != ELSEWHERE else "pages of the domain"
    return (
        f"{why_belief(page)} (a {page.belief.a:.3g}, b {page.belief.b:.3g} days)\n"
        f"with a chance of 90% between {shown_rate(low)} and {shown_rate(high)}\n"
        f"{group} change {shown_rate(page.prior.rate_per_day)} (a {page.prior.a:.3g}, b {page.prior.b:.3g})"
    )


def _shown_worth(domain: Domain, known: Explanation, page: PageFacts) -> str:
    worth = worth_now(domain, known, page)
    if worth is None or known.terms is None:
        return ""
    lively = f"; the domain is {known.terms.activity:.2g} times as lively as usual" if known.terms.activity != 1 else ""
    return f"{worth:.3g} importance x days now, against a price of {known.terms.price:.3g}{lively}"


def _shown_rules(domain: Domain, page: PageFacts) -> str:
    return ", ".join(rule.pattern for rule in domain.wishes.rules if rule.matches(page.url))


def _shown_freshness(page: PageFacts, *, at: datetime) -> str:
    if page.freshness is None or page.last_good_at is None:
        return ""
    chance = fresh_now(page.belief, unseen=at - page.last_good_at)
    return f"{shown_share(chance)} that it is as it was at {shown_instant(page.last_good_at)}"


def _shown_importance(domain: Domain, page: PageFacts) -> str:
    if page.importance is None or page.popularity is None:
        return ""
    parts = ""
    ordering = domain.wishes.ordering
    if ordering.order is Order.MIXED:
        parts = f": {1 - ordering.url_share:.0%} links ({page.popularity:.3g})"
        parts += f" and {ordering.url_share:.0%} URL ({page.url_score:.3g})"
    return f"{page.importance:.3g} times the domain's mean page{parts}"


def _shown_cash(page: PageFacts) -> str:
    if page.cash is None or page.history is None or page.clock is None:
        return "none: it takes no part in the economy"
    cash = f"{page.cash:,} coins of {page.circulating:,}, which are waiting to be passed on"
    return (
        f"{cash}\nhistory {page.history:,.0f}; the clock was {page.clock:,.0f} then, it is {page.domain_clock:,.0f} now"
    )


def _shown_look(page: PageFacts) -> str:
    what = ", ".join(filter(None, [f"status {page.status}" if page.status else "", page.reason]))
    return shown_instant(page.last_look_at) + (f" ({what})" if what else "")


def _show_linkers(known: Explanation) -> None:
    if not known.linkers:
        return
    say("")
    show(
        ["linked from", "its importance", "its links", "pays"],
        [
            (
                linker.url,
                f"{linker.importance:.2f}" if linker.importance is not None else "-",
                str(linker.outlinks),
                f"{linker.pays:.3f}" if linker.pays is not None else "-",
            )
            for linker in known.linkers
        ],
        right=["its importance", "its links", "pays"],
    )


def _print_untracked(url: Url, reason: str, known: Explanation | None, *, as_json: bool) -> None:
    linkers = known.linkers if known is not None else ()
    if as_json:
        links = known.links if known is not None else 0
        print_json({"url": url, "tracked": False, "reason": reason, "links": links, "linkers": linkers})
        return
    say(f"{url} is not tracked: {reason}")
    if known is not None:
        _show_linkers(known)


def _document(domain: Domain, known: Explanation, page: PageFacts) -> dict[str, object]:
    return {
        "url": page.url,
        "tracked": True,
        "domain": domain.authority,
        "at": known.at,
        "next": why_due(page, at=known.at),
        "refused_now": why_refused(page.url, domain, known.robots),
        "belief": why_belief(page),
        "worth": worth_now(domain, known, page),
        "price": known.terms.price if known.terms else None,
        "terms": known.terms,
        "page": values_of(page)
        | {
            "rate_per_day": page.belief.rate_per_day,
            "rate_per_day_90": credible_interval(page.belief),
        },
        "visits": known.visits,
        "links": known.links,
        "linkers": known.linkers,
    }
