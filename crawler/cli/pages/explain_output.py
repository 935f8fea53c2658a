"""Output of recrawl explain: everything that is known about a URL."""

from datetime import datetime

from crawler.app import explain as app
from crawler.app.running.maintenance import check_plugins
from crawler.cli.output import print_json, remark, say, show_facts, show_rows
from crawler.cli.session import DONE, PROBLEM, Interrupts, run_on_database, settings
from crawler.format.domain_settings import format_rule
from crawler.format.explanation import format_edit, format_magnitude_factor, format_rate_estimate
from crawler.format.lists import format_dates, format_list
from crawler.format.reasons import format_reason
from crawler.format.values import format_bytes, format_count, format_instant, format_share, format_when

METHOD_NOTE = """The SimHash distance of two versions measures the magnitude of a change, which affects how soon the
page is revisited. Content-Length and Last-Modified, if they have proved reliable, can show before the body is fetched
that the page is unchanged."""
MAX_EDITS = 3  # shown blocks of the last change

MIN_SHOWN_DAYS = 0.5  # a smaller lead or lag of the site's activity is not shown
MIN_SHOWN_PAGES = 0.05  # a smaller number of new pages per change is not shown
# The facts that are shown without --why.
PLAIN_FACTS = {
    *("URL", "Title", "List", "State", "Next", "Domain", "Fresh", "Rules", "Importance", "Last visit"),
    *("Last change", "What changed", "Version", "Scripts", "Links", "Dates", "Signals"),
}


def show_explanation(text: str, *, why: bool, at: datetime | None, as_json: bool) -> int:
    check_plugins(settings())

    async def work(db: app.AppDatabase, _: Interrupts) -> tuple[app.UrlExplanation, app.PageDetails] | app.UnknownUrl:
        explanation = await app.explain_url(db, text, at=at)
        if isinstance(explanation, app.UnknownUrl):
            return explanation
        return explanation, await app.explain_details(db, explanation)

    outcome = run_on_database(work)
    if isinstance(outcome, app.UnknownUrl):
        _print_untracked(outcome, as_json=as_json)
        return PROBLEM
    explanation, details = outcome
    if (page := explanation.known.page) is None:
        _print_untracked(explanation, as_json=as_json)
    elif as_json:
        print_json(app.describe_explanation(explanation, page, details))
    else:
        _show_explanation(explanation, page, details, why=why)
    return DONE


def _format_content(content: app.ComparedContent) -> str:
    masked = f"{content.masked} masked blocks and {format_count(content.words, 'masked word')} in the others"
    return f"{format_count(content.blocks, 'block')}, except {masked}; for details: recrawl try"


def _format_edits(content: app.ComparedContent) -> str:
    """Return the words that the page's last change replaced."""
    if content.last_change is None:
        return ""
    blocks = content.last_change.blocks
    more = len(blocks) - MAX_EDITS
    ending = f"\nand {format_count(more, 'block')} more: recrawl diff {content.last_change.url}" if more > 0 else ""
    return "\n".join(map(format_edit, blocks[:MAX_EDITS])) + ending


def _format_activity(page: app.PageFacts) -> str:
    """Describe by how many days of usual activity the site was ahead or behind since the page's last good visit."""
    if abs(page.activity_ahead) < MIN_SHOWN_DAYS:
        return ""
    more = "more" if page.activity_ahead > 0 else "less"
    span = f"{abs(page.activity_ahead):.1f} days"
    return f"{span} {more} than usual on the site's other pages, since the last successful visit"


def _list_facts(about: app.UrlExplanation, page: app.PageFacts, details: app.PageDetails) -> list[tuple[str, str]]:
    stored, ordering = about.known, about.domain.settings.ordering
    exclusion = about.exclusion if page.state is not app.State.EXCLUDED else ""
    duplicates = f"shared by {format_count(page.duplicates, 'page')} with the same text" if page.duplicates else ""
    never_succeeded = page.state is app.State.FETCHED and page.version == 0 and page.failures
    state = "failing, no successful visit yet" if never_succeeded else page.state.value
    reason = format_reason(page.reason) if page.reason else f"status {page.status}" if page.status else ""
    return [
        ("URL", page.url),
        ("Title", page.title or ""),
        ("List", format_list(details.source) if details.source else ""),
        ("Dates", format_dates(details.dates)),
        ("State", state + (f", but now {exclusion}" if exclusion else "")),
        ("Next", about.next),
        ("Domain", about.waits),
        ("Schedule", duplicates),
        ("Change rate", format_rate_estimate(page, stored.prior_source)),
        ("Fresh", _format_freshness(about, page)),
        ("Signals", about.signals),
        ("Site activity", _format_activity(page)),
        ("Value of a visit", _format_value(about)),
        ("Rules", "\n".join(format_rule(rule) for rule in about.domain.settings.rules if rule.matches(page.url))),
        ("Importance", _format_importance(about, page)),
        (
            "Leads to",
            f"{page.announces:.1f} new pages per change, on average" if page.announces >= MIN_SHOWN_PAGES else "",
        ),
        ("Change magnitude", format_magnitude_factor(page, stored.terms)),
        ("Cash", _format_cash(page)),
        ("Boost", f"receives {ordering.boost_factor:g} times the cash of the virtual page" if page.boosted else ""),
        ("Rank", f"{page.rank} in the order {ordering.order}" if page.state is app.State.UNFETCHED else ""),
        ("Depth", f"{format_count(page.depth, 'link')} from the nearest seed"),
        ("Added", format_instant(page.first_seen_at)),
        ("Last visit", format_instant(page.last_visit_at) + (f" ({reason})" if reason else "")),
        ("Last change", format_when(page.last_change_at, now=stored.at) if page.last_change_at else ""),
        ("What changed", _format_edits(details.content) if details.content else ""),
        ("Compared", _format_content(details.content) if details.content else ""),
        ("Version", f"{page.version}, {format_bytes(page.received_bytes)} received" if page.version else "none"),
        ("ETag", page.etag or ""),
        ("Last-Modified", page.last_modified or ""),
        ("Next request", app.format_next_request(page, stored) if page.version else ""),
        ("Scripts", about.scripts),
        ("Method", METHOD_NOTE if page.version else ""),
        ("Links", f"to {format_count(page.outlinks or 0, 'page')}; {_format_links(stored)}"),
    ]


def _show_explanation(about: app.UrlExplanation, page: app.PageFacts, details: app.PageDetails, *, why: bool) -> None:
    """Print the facts. why: also print rates, values and cash, and the pages that link to this one."""
    show_facts(fact for fact in _list_facts(about, page, details) if why or fact[0] in PLAIN_FACTS)
    if why:
        _show_linkers(about.known, gets_cash=page.cash is not None)
    if about.known.visits:
        say("\nPast visits")
        _show_visits(about.known, why=why)
    if not why:
        version = f"recrawl versions {page.url}; " if page.version else ""
        remark(f"Next: {version}recrawl explain {page.url} --why for its change rate, the value of a visit and links")


def _show_visits(stored: app.Explanation, *, why: bool) -> None:
    rows = []
    for visit in stored.visits:
        figures = {"evidence": visit.evidence.replace("_", " "), "requests": str(visit.requests)}
        figures |= {"bytes": format_bytes(visit.received_bytes), "expected": format_share(visit.expected)}
        row = {
            "visit": format_instant(visit.at),
            "outcome": visit.outcome.replace("_", " ") + (f" {visit.status}" if visit.status else ""),
            "change": visit.change.value,
            "magnitude": format_share(visit.magnitude),
        }
        rows.append(row | (figures if why else {}) | {"reason": format_reason(visit.reason)})
    show_rows(rows, right=["magnitude", "requests", "bytes", "expected"])


def _format_links(stored: app.Explanation) -> str:
    if stored.is_orphan:
        return "no fetched page links to it; the page is kept"
    return f"{format_count(stored.links, 'page')} {'links' if stored.links == 1 else 'link'} to it"


def _format_value(explanation: app.UrlExplanation) -> str:
    if explanation.value is None or explanation.known.terms is None:
        return ""
    shadow_price = explanation.known.terms.shadow_price
    return f"{explanation.value:.3g} importance x days now; the page is due when the value reaches {shadow_price:.3g}"


def _format_freshness(explanation: app.UrlExplanation, page: app.PageFacts) -> str:
    if explanation.fresh is None or page.last_good_at is None:
        return ""
    was = format_instant(page.last_good_at)
    if page.failures and page.status in {404, 410}:
        return f"0%: the server returned {page.status} at {format_instant(page.last_visit_at)}; the copy is from {was}"
    return f"{format_share(explanation.fresh)} probability that the page is unchanged since {was}"


def _format_importance(explanation: app.UrlExplanation, page: app.PageFacts) -> str:
    if page.importance is None or page.popularity is None:
        return ""
    parts = ""
    ordering = explanation.domain.settings.ordering
    if ordering.order is app.Order.MIXED:
        parts = f": {1 - ordering.url_weight:.0%} links ({page.popularity:.3g})"
        parts += f" and {ordering.url_weight:.0%} URL ({page.url_score:.3g})"
    weight, score = explanation.rules.merge_terms(page.url).weight, explanation.rules.compute_score(page.url)
    factors = [f"a rule's weight of {weight:g}"] if weight != 1 else []
    factors += [f"a plugin's score of {score:g}"] if score != 1 else []
    weighed = f"; with {' and '.join(factors)}: {page.importance * weight * score:.3g}" if factors else ""
    return f"{page.importance:.3g} times the domain's average page{parts}{weighed}"


def _format_cash(page: app.PageFacts) -> str:
    if page.cash is None or page.history is None or page.clock is None:
        return "none: the page neither receives nor distributes cash"
    cash = f"{page.cash:,} of {page.circulating:,} in the domain, to be distributed at the next visit"
    clocks = f"the domain's clock was {page.clock:,.0f} at the last visit and is {page.domain_clock:,.0f} now"
    return f"{cash}\nhistory {page.history:,.0f}; {clocks}"


def _show_linkers(stored: app.Explanation, *, gets_cash: bool) -> None:
    if not stored.linking_pages:
        return
    say("")
    rows = (
        {
            "linked from": linker.url,
            "importance": f"{linker.importance:.2f}" if linker.importance is not None else "-",
            "links": str(linker.outlinks),
            "passes": f"{linker.passed_importance:.3f}" if linker.passed_importance is not None and gets_cash else "-",
        }
        for linker in stored.linking_pages
    )
    show_rows(rows, right=["importance", "links", "passes"])


def _print_untracked(explanation: app.UrlExplanation | app.UnknownUrl, *, as_json: bool) -> None:
    stored = None if isinstance(explanation, app.UnknownUrl) else explanation.known
    reason = explanation.reason if isinstance(explanation, app.UnknownUrl) else explanation.untracked
    if as_json:
        print_json(app.describe_untracked(explanation))
        return
    say(f"{explanation.url} is not tracked: {reason}")
    if stored is not None:
        _show_linkers(stored, gets_cash=False)
