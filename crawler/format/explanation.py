"""Sentences that explain why a page is fetched or not, when it is fetched next, and how often it changes."""

from dataclasses import replace
from datetime import datetime

from crawler.core.change.word_diff import diff_words, format_runs, shorten_runs
from crawler.core.freshness.estimates import compute_credible_interval
from crawler.core.freshness.prior import OTHER_TEMPLATES
from crawler.core.freshness.visit_terms import USER_REQUESTS, RequestReason, VisitTerms
from crawler.core.http.robots import parse_robots
from crawler.core.http.urls import ExclusionReason, Scope, Url
from crawler.core.soft_errors import MAX_WITHHELD
from crawler.core.visit.state import NEVER, State
from crawler.format.reasons import RENDERING_WORDS, format_reason
from crawler.format.values import format_count, format_instant, format_rate, format_share, format_span, format_when
from crawler.planner.page_value import Bound, Due, compute_page_magnitude_factor
from crawler.store.report import BlockChange, Explanation, InboxKind, PageFacts, PriorLevel, PriorSource
from crawler.store.report.page_list import ListedPage

DUE_TOLERANCE = 0.03  # share of the interval; a due time that differs by less than 0.02 is not updated


def format_untracked(url: Url, stored: Explanation, scope: Scope, *, exclusion: str, max_pages: int) -> str:
    """Return why a URL of a registered domain is not a page of it.

    exclusion: the result of `format_exclusion`.  max_pages: the limit of the domain.
    """
    if exclusion:
        return exclusion
    if InboxKind.SEED in stored.waiting:
        return f"{INBOX_REASONS[InboxKind.SEED]}, and the next crawl fetches it"
    if stored.links == 0:
        return f"no fetched page links to it. To fetch it: recrawl crawl {url}"
    if scope.max_depth is not None and stored.nearest_depth is not None and stored.nearest_depth + 1 > scope.max_depth:
        depth = f"{stored.nearest_depth + 1} links away from the nearest seed"
        return f"it is {depth}, and the domain's maximum depth is {scope.max_depth}"
    if stored.tracked >= max_pages:
        return f"the domain is full: it has {stored.tracked} of at most {max_pages} pages"
    linker = f"{stored.linking_pages[0].url}, which links to it,"
    return f"it was excluded when {linker} was last fetched; it is added at the next visit of that page"


def format_exclusion(url: Url, scope: Scope, robots: bytes | None, *, agent: str) -> str:
    """Return why a URL may not be fetched now, apart from its depth; empty if it may. robots: the robots.txt body."""
    scope = replace(scope, max_depth=None)
    exclusion = scope.find_exclusion(url)
    if exclusion is ExclusionReason.EXCLUDED:
        pattern = next(
            each for each in scope.exclude if replace(scope, exclude=(each,)).find_exclusion(url) is exclusion
        )
        return f"the domain's settings exclude {pattern}"
    if exclusion is ExclusionReason.NOT_INCLUDED:
        return f"the domain's settings include only {', '.join(scope.include)}"
    if exclusion is ExclusionReason.URL_FILTER:
        return "a URL filter plugin excludes it (recrawl plugins)"
    if exclusion is not None:
        return f"it is out of scope ({exclusion.value.replace('_', ' ')})"
    if robots is not None and not parse_robots(robots).allows(url, agent):
        return f"robots.txt forbids it for {agent}"
    return ""


INBOX_REASONS = {
    InboxKind.SEED: "it was requested",
    InboxKind.REFRESH: "it was requested",
    InboxKind.REREAD: "it is fetched in full because of changed settings or rules",
    InboxKind.AUDIT: "it was drawn for an audit",
    InboxKind.SIGNAL: "a change signal for it was received",
    InboxKind.REPRICE: "its due time may change because of a new plan, settings or rules",
    InboxKind.REORDER: "its rank may change because of changed settings",
}
INBOX_NOTE = "this waits in the inbox until the next crawl"


def format_next_fetch(stored: Explanation, page: PageFacts, *, today: Due | None, exclusion: str) -> str:
    """Return when a page is fetched next and why, including entries in the inbox that the next crawl applies."""
    without_effect = {InboxKind.REORDER}
    if page.state is State.UNFETCHED:
        without_effect = {InboxKind.REFRESH, InboxKind.REREAD, InboxKind.AUDIT, InboxKind.REPRICE}
    reasons = dict.fromkeys(INBOX_REASONS[each] for each in InboxKind if each in stored.waiting - without_effect)
    due = format_due(stored, page, today=today, exclusion=exclusion)
    return f"{' and '.join(reasons)}: {INBOX_NOTE}; until then, {due}" if reasons else due


def format_due(stored: Explanation, page: PageFacts, *, today: Due | None, exclusion: str) -> str:
    """Return when a page is fetched next and why.

    today: when it would be due by the current plan and rules; None if that is unknown.
    exclusion: why it may not be fetched now; empty if it may.
    """
    at = stored.at
    when = format_when(page.due_at, now=at)
    is_overdue = page.due_at is not None and page.due_at <= at
    since = "it has been due since" if is_overdue else "it is due at"
    check_time = "by a visit that has been due since" if is_overdue else "at"
    match page.state:
        case State.UNFETCHED:
            return _explain_unfetched(page, at)
        case State.GONE:
            return f"it is gone ({format_reason(page.reason)}); it is checked again {check_time} {when}"
        case State.MOVED:
            return f"it moved{f' to {page.moved_to}' if page.moved_to else ' away'}; {since} {when}"
        case State.EXCLUDED:
            if not exclusion and page.failures:
                reason = format_reason(page.reason)
                return f"it may be fetched again, but has had no usable response yet ({reason}); {since} {when}"
            return f"it may not be fetched ({exclusion or page.reason}); this is checked again {check_time} {when}"
        case State.FETCHED:
            return _explain_fetched(page, today, f"{since} {when}")


def format_due_reason(page: ListedPage) -> str:
    """Return why a page in a list is visited at its due time, in a few words; empty for the usual reason."""
    if page.request_reason in SHORT_REQUEST_REASONS:
        return SHORT_REQUEST_REASONS[page.request_reason]
    if page.state is State.UNFETCHED:
        return "deferred" if page.due_at is not None else "not fetched yet"
    if page.due_at is not None and page.due_at >= NEVER:
        return "a rule stops revisits"
    if page.state is not State.FETCHED:
        return "to check whether it is back"
    if page.failures:
        return "retry"
    return "to compare with its duplicate" if page.is_duplicate else ""


SHORT_REQUEST_REASONS = {
    **dict.fromkeys(USER_REQUESTS, "requested"),
    RequestReason.BY_AUDIT: "audit",
    RequestReason.BY_CANONICAL: "its duplicate changed",
    RequestReason.TO_CONFIRM: "to confirm a 404",
    RequestReason.BY_LIST: "listed in a sitemap",
    RequestReason.TO_RENDER: "to render it",
}
DEFERRAL_REASON = """its URL differs from a fetched page only by an irrelevant parameter, its folders repeat, or only \
chains of redirects lead to it"""


def _explain_unfetched(page: PageFacts, at: datetime) -> str:
    is_deferred = page.due_at is not None or page.is_template_deferred
    if page.request_reason is not RequestReason.NONE or page.boosted or not is_deferred:
        return f"it was never fetched; it is number {(page.ahead or 0) + 1} in the order of unfetched pages"
    until = f" until {format_when(page.due_at, now=at)}" if page.due_at is not None else ""
    if page.due_at is not None and page.due_at <= at:
        return f"it was never fetched; it was deferred{until}"
    reason = DEFERRAL_REASON
    if page.is_template_deferred:
        reason = f"pages like it ({page.template}) had no new content recently, so one of them is fetched per day"
    return f"it was never fetched, and is deferred{until}: {reason}"


REQUEST_REASONS = {
    **dict.fromkeys(USER_REQUESTS, "because it was requested"),
    RequestReason.BY_AUDIT: "as part of the random sample that checks the reported freshness",
    RequestReason.BY_CANONICAL: "because {canonical}, which had the same text, has changed",
    RequestReason.TO_CONFIRM: "because it returned 404, and only a second 404 shows that it is gone",
    RequestReason.BY_LIST: "because a sitemap or feed lists it, and it has never been fetched successfully",
    RequestReason.TO_RENDER: "to render it in a browser, because it was stored without the output of its scripts",
}


def _explain_fetched(page: PageFacts, today: Due | None, due: str) -> str:
    if page.request_reason in REQUEST_REASONS:
        canonical = page.canonical or "the page whose schedule it shared"
        return f"{due}, {REQUEST_REASONS[page.request_reason].format(canonical=canonical)}"
    if page.failures:
        failed = f"{format_count(page.failures, 'visit')} in a row failed ({format_reason(page.reason)}); {due}"
        if page.withheld_since is None:
            return failed
        since, until = format_instant(page.withheld_since), format_instant(page.withheld_since + MAX_WITHHELD)
        return f"{failed}. Its new content has been withheld since {since}; the first visit from {until} on accepts it"
    if page.canonical is not None:
        return f"{due}, to check whether its text is still the same as {page.canonical}, whose schedule it shares"
    if today is None or page.reason:
        reason = format_reason(page.reason) or "never fetched"
        return f"{'its last visit gave no result' if page.version else 'it has no text of its own'} ({reason}); {due}"
    if today.bound is Bound.ONCE:
        return "it was fetched once, and a rule excludes further visits"
    if page.due_at is None or page.due_at >= NEVER:
        return f"it was fetched once under a rule against further visits; by today's rules, {_explain_bound(today)}"
    return f"{due}{_explain_stored_due(page, page.due_at, today)}"


def _explain_stored_due(page: PageFacts, due_at: datetime, today: Due) -> str:
    """Return where the stored due time comes from: today's shadow price and rules, or earlier ones."""
    assert today.at is not None
    assert today.gap is not None
    if abs(due_at - today.at) <= DUE_TOLERANCE * today.gap:
        return f", because {_explain_bound(today)}"
    if page.visits <= 1 and due_at < today.at:
        return f": pages added together are spread over their first interval; after that, {_explain_bound(today)}"
    return f", by an earlier plan or earlier rules; today {_explain_bound(today)}: {format_instant(today.at)}"


BOUND_REASONS = {
    Bound.PRICE: "the value of a visit reaches the minimum after an interval of {span}",
    Bound.MIN: "the value of a visit reaches the minimum sooner, but {least} {span}",
    Bound.MAX: "the value of a visit reaches the minimum later, but {most} {span}",
    Bound.ONCE: "a rule excludes further visits",
    Bound.POLICY: "the domain's revisit policy sets an interval of {span}",
}


def _explain_bound(today: Due) -> str:
    """Return what determines the due time, as a clause."""
    assert today.gap is not None
    rule = "a rule sets an interval of"
    least, most = (rule, rule) if today.by_rule else ("the minimum interval is", "the maximum interval is")
    return BOUND_REASONS[today.bound].format(span=format_span(today.gap), least=least, most=most)


def format_change_rate(page: PageFacts, source: PriorSource | None) -> str:
    """Return how often a page is estimated to change, and why. source: where its prior comes from."""
    rate = format_rate(page.rate_estimate.rate_per_day)
    visits = page.visits - page.failures  # a failed visit says nothing about changes
    if page.state is State.GONE:
        return f"it changed {rate} before it was gone"
    if visits < 2 or page.version == 0 or page.state is State.EXCLUDED:
        return f"it changes {rate}, {_format_prior(page, source)}"
    evidence = f"{format_count(visits, 'visit')} found {format_count(page.changes, 'change')}"
    magnitude = format_magnitude(page.magnitudes.total / page.magnitudes.changes) if page.magnitudes.changes else ""
    return f"it changes {rate}{f', by about {magnitude} of its text' if magnitude else ''}: {evidence}"


def format_magnitude(magnitude: float) -> str:
    """Return a change magnitude as a fraction in words, or as a percentage if none is close."""
    if magnitude < 0.01:
        return "a hundredth or less"
    named = {10: "a tenth", 5: "a fifth", 4: "a quarter", 3: "a third", 2: "a half", 1: "all"}
    return named.get(round(1 / magnitude), f"{magnitude:.0%}")


PRIOR_WORDS = {
    PriorLevel.NOTHING: "the default for pages without data",
    PriorLevel.TEMPLATE: "like other pages of the form {template} ({pages} revisited)",
    PriorLevel.DOMAIN: "like other pages of its domain ({pages} revisited)",
    PriorLevel.KIND: "like pages of other .{kind} sites ({sites})",
    PriorLevel.ALL: "like pages of other sites ({sites})",
}


def _format_prior(page: PageFacts, source: PriorSource | None) -> str:
    """Return where the change-rate estimate of a page comes from before its second visit."""
    if source is None:
        return PRIOR_WORDS[PriorLevel.NOTHING]
    pages, sites = format_count(source.pages, "page"), format_count(source.domains, "site")
    return PRIOR_WORDS[source.level].format(template=page.template, kind=source.kind, pages=pages, sites=sites)


def format_signals(stored: Explanation, page: PageFacts) -> str:
    """Return a line per source of change signals: its signals for the page, and its precision and recall."""
    lines = []
    for no, source in enumerate(stored.sources):
        count = page.signals[no] if no < len(page.signals) else 0
        times = {1: "once", 2: "twice"}.get(count, f"{count} times")
        history = f"signaled a change {times} since the last visit" if count else "no signal since the last visit"
        precision = "" if source.precision is None else f", precision {format_share(source.precision)}"
        accuracy = f"recall {format_share(source.recall)}{precision}"
        lines.append(f"{source.source}: {history}; {accuracy if source.recall else 'not yet proved useful'}")
    return "\n".join(lines)


def format_scripts(stored: Explanation) -> str:
    """Return how the last visit handled the scripts of a page; empty for pages without a rendering decision."""
    visit = next((visit for visit in stored.visits if visit.rendering), None)
    if visit is None:
        return ""
    description = RENDERING_WORDS.get(visit.rendering, visit.rendering)
    if visit.added_words is None or visit.added_links is None:
        return description
    words, links = format_count(visit.added_words, "word"), format_count(visit.added_links, "link")
    return f"{description}; scripts add {words} and {links}"


def format_rate_estimate(page: PageFacts, source: PriorSource | None) -> str:
    """Return `format_change_rate` with the figures of the estimate and of the page's group."""
    low, high = compute_credible_interval(page.rate_estimate)
    group = f"pages like {page.template}" if page.template != OTHER_TEMPLATES else "pages of the domain"
    return (
        f"{format_change_rate(page, source)} (a {page.rate_estimate.a:.3g}, b {page.rate_estimate.b:.3g} days)\n"
        f"90% credible interval: {format_rate(low)} to {format_rate(high)}\n"
        f"{group} change {format_rate(page.prior.rate_per_day)} (a {page.prior.a:.3g}, b {page.prior.b:.3g})"
    )


def format_magnitude_factor(page: PageFacts, terms: VisitTerms | None) -> str:
    """Return how much a page's changes count relative to those of the average page; empty without such figures."""
    if terms is None or terms.magnitude is None or not page.version:
        return ""
    own_changes = format_count(page.changes, "change") if page.magnitudes.changes else "no changes yet"
    factor = compute_page_magnitude_factor(page, terms)
    return f"its changes count {factor:.2g} times as much as those of the average page ({own_changes})"


def format_edit(edit: BlockChange) -> str:
    """Return the words of a block that a change replaced, marked as [-old-]{+new+}."""
    runs = diff_words(edit.before or "", edit.after or "", kind=edit.part)
    return f"{edit.part.value}: {format_runs(shorten_runs(runs, context_chars=40, max_chars=160))}"
