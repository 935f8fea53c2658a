"""recrawl explain: everything about one URL, in words with the figures behind them."""

from datetime import UTC, datetime
from typing import NamedTuple

from crawler.app.registration import not_registered, require_not_before_last_visit, url_of
from crawler.app.rules import describe_rule
from crawler.app.status import page_wait
from crawler.cli.actions.explain.content import ShownContent, content_of, shown_content, shown_edits
from crawler.cli.actions.explain.signals import chance_now, shown_signals
from crawler.cli.actions.explain.why import (
    amount_factor_of,
    defaults_in_use,
    due_today,
    rules_now,
    scope_now,
    why_belief,
    why_next,
    why_refused,
    why_untracked,
    worth_now,
)
from crawler.cli.exits import DONE, PROBLEM
from crawler.cli.output import print_json, remark, say, show, show_facts
from crawler.cli.session import Interrupts, with_database
from crawler.core.domain import Domain
from crawler.core.freshness import ELSEWHERE, PricePolicy, Terms, credible_interval
from crawler.core.http import Url, authority_of, key_of
from crawler.core.opic import Order
from crawler.core.visit import State
from crawler.format.lists import format_dates, format_list
from crawler.format.reasons import RENDERING_WORDS, format_reason
from crawler.format.rules import format_rule
from crawler.format.trust import describe_trust, format_conditional_request
from crawler.format.values import format_bytes, format_count, format_instant, format_rate, format_share, format_when
from crawler.json_lines import values_of
from crawler.plugins import load
from crawler.settings import settings
from crawler.store import domains, report
from crawler.store.database import Database
from crawler.store.report import Explanation, GivenDate, ListReport, PageFacts


class ListFacts(NamedTuple):
    """What a URL is as a list, None for one that is none, and the dates that lists gave it."""

    itself: ListReport | None
    dates: list[GivenDate]


NOT_FOUND = {404, 410}
DECIDED = """SimHash and its Hamming distance say how much of the text a change changes, and so how soon to look again.
Content-Length and Last-Modified decide before the body whether it is asked for, as far as they have proven honest."""


def explain(text: str, *, why: bool, at: datetime | None, as_json: bool) -> int:
    url = url_of(text)
    load(settings().plugins)  # whatever is wrong with one is said before anything begins

    async def work(
        db: Database, _: Interrupts
    ) -> tuple[Domain, Url, Explanation, ShownContent | None, str, ListFacts] | str:
        domain = await domains.find(db, authority_of(url))
        if domain is None:
            return await not_registered(db, authority_of(url))
        if at is not None:
            await require_not_before_last_visit(db, [domain], at)
        home = scope_now(domain).home(url)
        instant = at or datetime.now(UTC)
        known = await report.explain(db, domain, home, at=instant, defaults=defaults_in_use())
        waits = await page_wait(db, domain, settings(), at=instant)
        content_now = await content_of(db, domain, known.page) if known.page else None
        return domain, home, known, content_now, waits, await _listed(db, domain, home)

    found = with_database(work)
    if isinstance(found, str):
        _print_untracked(url, found, None, as_json=as_json)
        return PROBLEM
    domain, home, known, content_now, waits, listed = found
    if known.page is None:
        _print_untracked(home, why_untracked(home, domain, known), known, as_json=as_json)
    elif as_json:
        more = {"content": content_now, "domain_waits": waits, "list": listed.itself, "dates": listed.dates}
        print_json(_document(domain, known, known.page) | more)
    else:
        _show(_facts(domain, known, known.page, content_now, waits, listed=listed), known, why=why)
    return DONE


async def _listed(db: Database, domain: Domain, url: Url) -> ListFacts:
    lists = await report.lists_of(db, domain, key=key_of(url))
    return ListFacts(lists[0] if lists else None, await report.dates_given(db, domain, key_of(url)))


def _asking(page: PageFacts, known: Explanation) -> str:
    return format_conditional_request(
        page.held,
        known.trust,
        template=page.template,
        suspected=known.suspected,
        by_head=known.by_head,
        challenge=known.challenge,
    )


def _shown_scripts(known: Explanation) -> str:
    """What the last look at it as a web page did about its scripts."""
    look = next((look for look in known.visits if look.rendering), None)
    if look is None:
        return ""
    said = RENDERING_WORDS.get(look.rendering, look.rendering)
    if look.added_words is None or look.added_links is None:
        return said
    return f"{said}; they add {format_count(look.added_words, 'word')} and {format_count(look.added_links, 'link')}"


SHOWN_DAYS = 0.5  # by which the site's activity is not as the calendar
SHOWN_PAGES = 0.05  # that a change announces
# What is told without being asked for; the rest is the figures behind it.
PLAIN = frozenset(
    {
        *("URL", "Title", "List", "State", "Next", "Its domain", "Fresh", "Rules", "Importance", "Last look"),
        *("Last change", "What changed", "Version", "Scripts", "Links", "Dated", "Signals"),
    }
)


def _shown_activity(page: PageFacts) -> str:
    """By how much the pages of its site have aged together since the last good look; nothing where as the calendar."""
    if abs(page.activity_ahead) < SHOWN_DAYS:
        return ""
    more = "more" if page.activity_ahead > 0 else "less"
    return (
        f"{abs(page.activity_ahead):.1f} days {more} than the calendar since then, by what visits find at other pages"
    )


def _shown_announced(page: PageFacts) -> str:
    if page.announces < SHOWN_PAGES:
        return ""
    return f"{page.announces:.1f} new pages worth a first look with each of its changes, on average"


def _facts(
    domain: Domain,
    known: Explanation,
    page: PageFacts,
    content_now: ShownContent | None,
    waits: str,
    *,
    listed: ListFacts,
) -> list[tuple[str, str]]:
    refused = why_refused(page.url, domain, known.robots) if page.state is not State.REFUSED else ""
    return [
        ("URL", page.url),
        ("Title", page.title or ""),
        ("List", format_list(listed.itself) if listed.itself else ""),
        ("Dated", format_dates(listed.dates)),
        ("State", _shown_state(page) + (f", but now {refused}" if refused else "")),
        ("Next", why_next(domain, known, page)),
        ("Its domain", waits),
        ("Schedule", f"shared by {format_count(page.riders, 'page')} with the same text" if page.riders else ""),
        ("Belief", _shown_belief(page, known)),
        ("Fresh", _shown_freshness(page, known)),
        ("Signals", shown_signals(page, known) if page.version else ""),
        ("Site activity", _shown_activity(page)),
        ("Worth", _shown_worth(domain, known, page)),
        ("Rules", _shown_rules(domain, page)),
        ("Importance", _shown_importance(domain, page)),
        ("Announces", _shown_announced(page)),
        ("Changes", _shown_amount(page, known.terms)),
        ("Cash", _shown_cash(page)),
        ("Favoured", f"paid {domain.settings.ordering.favour_by:g} times by the reserve" if page.favoured else ""),
        ("Rank", f"{page.rank} in the order {domain.settings.ordering.order}" if page.state is State.NEW else ""),
        ("Depth", f"{format_count(page.depth, 'link')} from the nearest seed"),
        ("First seen", format_instant(page.first_seen_at)),
        ("Last look", _shown_look(page)),
        ("Last change", format_when(page.last_change_at, now=known.at) if page.last_change_at else ""),
        ("What changed", shown_edits(content_now)),
        ("Compared", shown_content(content_now)),
        ("Version", f"{page.version}, {format_bytes(page.received_bytes)} received" if page.version else "none"),
        ("ETag", page.etag or ""),
        ("Last-Modified", page.last_modified or ""),
        ("Asked", _asking(page, known) if page.version else ""),
        ("Scripts", _shown_scripts(known)),
        ("Decided", DECIDED if page.version else ""),
        ("Links", f"to {format_count(page.outlinks or 0, 'page')}; {_shown_links(known)}"),
    ]


def _show(facts: list[tuple[str, str]], known: Explanation, *, why: bool) -> None:
    """Print the facts; why: with beliefs, prices and coins, and who links to it and pays it."""
    page = known.page
    assert page is not None
    show_facts(fact for fact in facts if why or fact[0] in PLAIN)
    if why:
        _show_linkers(known, is_paid=page.cash is not None)
    if known.visits:
        say("\nPast looks")
        _show_looks(known, why=why)
    if not why:
        version = f"recrawl versions {page.url}; " if page.version else ""
        remark(f"Next: {version}recrawl explain {page.url} --why for how often it changes, what a look is worth, links")


def _show_looks(known: Explanation, *, why: bool) -> None:
    figures = ["by", "requests", "bytes", "expected"] if why else []
    show(
        ["look", "answer", "found", "amount", *figures, "reason"],
        [
            (
                format_instant(look.at),
                look.answer.replace("_", " ") + (f" {look.status}" if look.status else ""),
                look.change.value,
                format_share(look.amount),
                *(
                    (
                        look.rung.replace("_", " "),
                        str(look.requests),
                        format_bytes(look.received_bytes),
                        format_share(look.expected),
                    )
                    if why
                    else ()
                ),
                format_reason(look.reason),
            )
            for look in known.visits
        ],
        right=["amount", "requests", "bytes", "expected"],
    )


def _shown_links(known: Explanation) -> str:
    if known.is_orphan:
        return "no page links to it any more, as far as they were read: it is kept"
    return f"{format_count(known.links, 'page')} {'links' if known.links == 1 else 'link'} to it"


def _shown_belief(page: PageFacts, known: Explanation) -> str:
    low, high = credible_interval(page.belief)
    group = f"pages like {page.template}" if page.template != ELSEWHERE else "pages of the domain"
    return (
        f"{why_belief(page, known.prior_source)} (a {page.belief.a:.3g}, b {page.belief.b:.3g} days)\n"
        f"with a chance of 90% between {format_rate(low)} and {format_rate(high)}\n"
        f"{group} change {format_rate(page.prior.rate_per_day)} (a {page.prior.a:.3g}, b {page.prior.b:.3g})"
    )


def _shown_worth(domain: Domain, known: Explanation, page: PageFacts) -> str:
    worth = worth_now(domain, known, page)
    if worth is None or known.terms is None:
        return ""
    return f"{worth:.3g} importance x days now, against a price of {known.terms.price:.3g}"


def _shown_rules(domain: Domain, page: PageFacts) -> str:
    return "\n".join(format_rule(rule) for rule in domain.settings.rules if rule.matches(page.url))


def _shown_freshness(page: PageFacts, known: Explanation) -> str:
    if page.freshness is None or page.last_good_at is None:
        return ""
    if page.failures and page.status in NOT_FOUND:
        was = format_instant(page.last_good_at)
        return f"0%: its server said {page.status} at {format_instant(page.last_look_at)}; what is kept is of {was}"
    chance = chance_now(page, known)
    return f"{format_share(chance)} likely to be as it was at {format_instant(page.last_good_at)}"


def _shown_importance(domain: Domain, page: PageFacts) -> str:
    if page.importance is None or page.popularity is None:
        return ""
    parts = ""
    ordering = domain.settings.ordering
    if ordering.order is Order.MIXED:
        parts = f": {1 - ordering.url_share:.0%} links ({page.popularity:.3g})"
        parts += f" and {ordering.url_share:.0%} URL ({page.url_score:.3g})"
    rules = rules_now(domain)
    weight, score = rules.terms(page.url).weight, rules.score(page.url)
    factors = [f"a rule's weight of {weight:g}"] if weight != 1 else []
    factors += [f"a plugin's score of {score:g}"] if score != 1 else []
    weighed = f"; with {' and '.join(factors)}, {page.importance * weight * score:.3g}" if factors else ""
    return f"{page.importance:.3g} times the domain's mean page{parts}{weighed}"


def _shown_amount(page: PageFacts, terms: Terms | None) -> str:
    """What its changes count beside those of other pages; nothing where they are not weighed, or are as usual."""
    if terms is None or terms.amount is None or not page.version:
        return ""
    factor = amount_factor_of(page, terms)
    own = f"{format_count(page.changes, 'change')} of its own" if page.amounts.changes else "none of its own yet"
    return f"count {factor:.2g} times the mean page's, by how much of the text they change ({own})"


def _shown_cash(page: PageFacts) -> str:
    if page.cash is None or page.history is None or page.clock is None:
        return "none: it takes no part in the economy"
    cash = f"{page.cash:,} coins of {page.circulating:,}, which are waiting to be passed on"
    return (
        f"{cash}\nhistory {page.history:,.0f}; the clock was {page.clock:,.0f} then, it is {page.domain_clock:,.0f} now"
    )


def _shown_state(page: PageFacts) -> str:
    never_read = page.state is State.KNOWN and page.version == 0 and page.failures
    return "failing, never read" if never_read else page.state.value


def _shown_look(page: PageFacts) -> str:
    what = format_reason(page.reason) if page.reason else f"status {page.status}" if page.status else ""
    return format_instant(page.last_look_at) + (f" ({what})" if what else "")


def _show_linkers(known: Explanation, *, is_paid: bool) -> None:
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
                f"{linker.pays:.3f}" if linker.pays is not None and is_paid else "-",
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
        _show_linkers(known, is_paid=False)


def _document(domain: Domain, known: Explanation, page: PageFacts) -> dict[str, object]:
    return {
        "url": page.url,
        "tracked": True,
        "domain": domain.authority,
        "at": known.at,
        "next": why_next(domain, known, page),
        "waiting": known.waiting,
        "refused_now": why_refused(page.url, domain, known.robots),
        "belief": why_belief(page, known.prior_source),
        "prior_source": known.prior_source,
        "worth": worth_now(domain, known, page),
        "price": known.terms.price if known.terms and isinstance(known.terms.revisit, PricePolicy) else None,
        "revisit": domain.settings.revisit,
        "terms": known.terms and values_of(known.terms) | {"revisit": domain.settings.revisit},
        "due_today": due_today(domain, known, page),
        "sources": known.sources,
        "asked": _asking(page, known),
        "trust": describe_trust(known.trust),
        "rules": [describe_rule(rule) for rule in domain.settings.rules if rule.matches(page.url)],
        "page": values_of(page)
        | {
            "rate_per_day": page.belief.rate_per_day,
            "rate_per_day_90": credible_interval(page.belief),
        },
        "visits": known.visits,
        "links": known.links,
        "orphan": known.is_orphan,
        "linkers": known.linkers,
    }
