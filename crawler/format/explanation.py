"""Why a page was fetched or not, when it is next and why, and what is known of its changes, in sentences."""

from dataclasses import replace
from datetime import datetime

from crawler.core.change.word_diff import diff_words, format_runs, shorten_runs
from crawler.core.freshness.estimates import compute_credible_interval
from crawler.core.freshness.prior import OTHER_TEMPLATES
from crawler.core.freshness.terms import USER_REQUESTS, RequestReason, VisitTerms
from crawler.core.http.robots import parse_robots
from crawler.core.http.urls import ExclusionReason, Scope, Url
from crawler.core.soft_errors import MAX_WITHHELD
from crawler.core.visit.visit import NEVER, State
from crawler.format.reasons import RENDERING_WORDS, format_reason
from crawler.format.values import format_count, format_instant, format_rate, format_share, format_span, format_when
from crawler.planner.page_value import Bound, Due, compute_page_magnitude_factor
from crawler.store.report import BlockChange, Explanation, InboxKind, PageFacts, PriorLevel, PriorSource

DUE_TOLERANCE = 0.03  # of the gap, by which a stored due time is the same: a claim rewrites none for less than 0.02


def format_untracked(url: Url, stored: Explanation, scope: Scope, *, refusal: str, max_pages: int) -> str:
    """Return why a URL of a registered domain is not one of its pages.

    refusal: what `format_refusal` says of it.  max_pages: of the domain.
    """
    if refusal:
        return refusal
    if InboxKind.SEED in stored.waiting:
        return f"{INBOX_REASONS[InboxKind.SEED]}: {INBOX_NOTE}"
    if stored.links == 0:
        return f"no page that was read links to it. To look at it: recrawl crawl {url}"
    if scope.max_depth is not None and stored.nearest_depth is not None and stored.nearest_depth + 1 > scope.max_depth:
        return (
            f"it is {stored.nearest_depth + 1} links away from the nearest seed, "
            f"and the domain ends at {scope.max_depth}"
        )
    if stored.tracked >= max_pages:
        return f"the domain is full: it has {stored.tracked} pages of at most {max_pages}"
    return (
        f"{stored.linking_pages[0].url} links to it, and was read when it was refused; "
        f"it is admitted at its next reading"
    )


def format_refusal(url: Url, scope: Scope, robots: bytes | None, *, agent: str) -> str:
    """Return why a URL may not be fetched now, whoever links to it; empty if it may. robots: the body of robots.txt."""
    scope = replace(scope, max_depth=None)
    refusal = scope.find_exclusion(url)
    if refusal is ExclusionReason.EXCLUDED:
        pattern = next(
            p for p in scope.exclude if replace(scope, exclude=(p,)).find_exclusion(url) is ExclusionReason.EXCLUDED
        )
        return f"the domain excludes {pattern}"
    if refusal is ExclusionReason.NOT_INCLUDED:
        return f"the domain includes only {', '.join(scope.include)}"
    if refusal is ExclusionReason.URL_FILTER:
        return "a plugin that filters URLs refuses it (recrawl plugins)"
    if refusal is not None:
        return f"it is out of scope ({refusal.value.replace('_', ' ')})"
    if robots is not None and not parse_robots(robots).allows(url, agent):
        return f"robots.txt forbids it to {agent}"
    return ""


INBOX_REASONS = {
    InboxKind.SEED: "somebody asked for it",
    InboxKind.REFRESH: "somebody asked for it",
    InboxKind.REREAD: "other settings of its domain ask for all of it again",
    InboxKind.AUDIT: "it was drawn for an audit",
    InboxKind.SIGNAL: "a source of signals says that it has changed, which is to be weighed",
    InboxKind.REPRICE: "its due time may be another, by a new price, other settings or other rules",
    InboxKind.REORDER: "its place may be another, by other settings",
}
INBOX_NOTE = "this waits in the inbox, and the next crawl takes it up"


def format_next_fetch(stored: Explanation, page: PageFacts, *, today: Due | None, refusal: str) -> str:
    """Return when a page is fetched next, and why, with what the next crawl applies to it before that."""
    is_unfetched = page.state is State.UNFETCHED
    idle = (
        {InboxKind.REFRESH, InboxKind.REREAD, InboxKind.AUDIT, InboxKind.REPRICE}
        if is_unfetched
        else {InboxKind.REORDER}
    )
    reasons = dict.fromkeys(INBOX_REASONS[each] for each in InboxKind if each in stored.waiting - idle)
    due = format_due(stored, page, today=today, refusal=refusal)
    return f"{' and '.join(reasons)}: {INBOX_NOTE}; until then, {due}" if reasons else due


def format_due(stored: Explanation, page: PageFacts, *, today: Due | None, refusal: str) -> str:
    """Return when a page is fetched next, and for what reason.

    today: when it would be due at today's price.  refusal: why it may not be fetched now; empty if it may.
    """
    at = stored.at
    when = format_when(page.due_at, now=at)
    is_overdue = page.due_at is not None and page.due_at <= at
    since = "it has been due since" if is_overdue else "it is due at"
    check_time = "by a look that has been due since" if is_overdue else "at"
    match page.state:
        case State.UNFETCHED:
            return _explain_unfetched(page, at)
        case State.GONE:
            return f"it is gone ({format_reason(page.reason)}); whether it comes back is seen {check_time} {when}"
        case State.MOVED:
            return f"it moved{f' to {page.moved_to}' if page.moved_to else ' away'}; {since} {when}"
        case State.EXCLUDED:
            if not refusal and page.failures:
                reason = format_reason(page.reason)
                return f"it may be fetched again, and gave no good answer yet ({reason}); {since} {when}"
            return (
                f"it may not be fetched ({refusal or page.reason});whether that has changed is seen {check_time} {when}"
            )
        case State.FETCHED:
            return _explain_fetched(page, today, f"{since} {when}")


def _explain_unfetched(page: PageFacts, at: datetime) -> str:
    if (
        page.request_reason is not RequestReason.NONE
        or page.boosted
        or (page.due_at is None and not page.is_template_deferred)
    ):
        return f"it was never fetched; in the order of discovery it is number {(page.ahead or 0) + 1}"
    if page.due_at is None or page.due_at > at:
        until = f" until {format_when(page.due_at, now=at)}" if page.due_at is not None else ""
    else:
        return f"it was never fetched; it was put off until {format_when(page.due_at, now=at)}"
    if page.is_template_deferred:
        reason = f"pages like it ({page.template}) have said nothing new of late, so one of them is asked for each day"
    else:
        reason = (
            "its URL is that of a page that was read, but for a parameter that makes no other, its folders repeat, or"
            " only redirects, one after another, lead to it"
        )
    return f"it was never fetched, and is put off{until}: {reason}"


REQUEST_REASONS = {
    **dict.fromkeys(USER_REQUESTS, "because it was requested"),
    RequestReason.BY_AUDIT: "as one of a random sample that checks the reported freshness",
    RequestReason.BY_CANONICAL: "since {canonical} has changed, which said the same",
    RequestReason.TO_CONFIRM: "since it answered 404, and only a second 404 shows that it is gone",
    RequestReason.BY_LIST: "since a sitemap or a feed names it, and it never was a page before",
    RequestReason.TO_RENDER: "since it is stored without what its scripts write, and a browser should read it",
}


def _explain_fetched(page: PageFacts, today: Due | None, due: str) -> str:
    if page.request_reason in REQUEST_REASONS:
        canonical = page.canonical or "the page whose schedule it shared"
        return f"{due}, {REQUEST_REASONS[page.request_reason].format(canonical=canonical)}"
    if page.failures:
        failed = f"{format_count(page.failures, 'look')} in a row failed ({format_reason(page.reason)})"
        return f"{failed}; {due}{_format_withheld(page)}"
    if page.canonical is not None:
        return f"{due}, to see whether it still says the same as {page.canonical}, whose schedule it shares"
    if today is None or page.reason:
        return f"it has no text of its own ({page.reason or 'never read'}); {due}"
    if today.bound is Bound.ONCE:
        return "it was had once, and a rule wants no more of it"
    if page.due_at is None or page.due_at >= NEVER:
        return f"it was had once, when a rule wanted no more of it; by today's rules {_explain_bound(today)}"
    return f"{due}{_explain_stored_due(page, page.due_at, today)}"


def _format_withheld(page: PageFacts) -> str:
    """Return since when new content of the page is withheld and when that ends, or an empty string."""
    if page.withheld_since is None:
        return ""
    since, until = format_instant(page.withheld_since), format_instant(page.withheld_since + MAX_WITHHELD)
    return f". Its new content has been withheld since {since}; the first look from {until} on accepts what it finds"


def _explain_stored_due(page: PageFacts, due_at: datetime, today: Due) -> str:
    """Return what its stored due time comes from: today's price and rules, or earlier ones."""
    assert today.at is not None
    assert today.gap is not None
    if abs(due_at - today.at) <= DUE_TOLERANCE * today.gap:
        return f", since {_explain_bound(today)}"
    if page.visits <= 1 and due_at < today.at:
        return f": pages that came in together are spread over their first interval; after it {_explain_bound(today)}"
    stored = ", which was stored at another price or under other rules"
    return f"{stored}; today {_explain_bound(today)}: {format_instant(today.at)}"


BOUND_REASONS = {
    Bound.PRICE: "a look pays off {span} after the last one",
    Bound.MIN: "a look pays off sooner, but {least} says {span} after the last one",
    Bound.MAX: "a look does not pay off by then, but {most} says {span} after the last one",
    Bound.ONCE: "a rule wants no more of it",
    Bound.POLICY: "the domain's policy says {span} after the last one",
}


def _explain_bound(today: Due) -> str:
    """Return the bound that holds, as a reason."""
    assert today.gap is not None
    least, most = ("a rule", "a rule") if today.by_rule else ("the least interval", "the longest interval")
    return BOUND_REASONS[today.bound].format(span=format_span(today.gap), least=least, most=most)


def format_change_rate(page: PageFacts, source: PriorSource | None) -> str:
    """Return how often a page is estimated to change, and from what. source: of its prior."""
    rate = format_rate(page.belief.rate_per_day)
    visits = page.visits - page.failures  # a look that failed has found nothing, not even that there is no change
    if page.state is State.GONE:
        return f"it changed {rate} while it was there"
    if visits < 2 or page.version == 0 or page.state is State.EXCLUDED:
        return f"it changes {rate}, {_format_prior(page, source)}"
    evidence = f"{format_count(visits, 'look')} found {format_count(page.changes, 'change')}"
    magnitude = format_magnitude(page.magnitudes.total / page.magnitudes.changes) if page.magnitudes.changes else ""
    return f"it changes {rate}{f', by about {magnitude} of its text' if magnitude else ''}: {evidence}"


def format_magnitude(magnitude: float) -> str:
    """Return a change magnitude as a part of a text, in words."""
    if magnitude < 0.01:
        return "a hundredth or less"
    named = {10: "a tenth", 5: "a fifth", 4: "a quarter", 3: "a third", 2: "a half", 1: "all"}
    return named.get(round(1 / magnitude), f"{magnitude:.0%}")


PRIOR_WORDS = {
    PriorLevel.NOTHING: "as pages do of which nothing is known",
    PriorLevel.TEMPLATE: "as pages like {template} do ({pages} looked at again)",
    PriorLevel.DOMAIN: "as pages of its domain do ({pages} looked at again)",
    PriorLevel.KIND: "as pages of .{kind} sites do ({sites})",
    PriorLevel.ALL: "as pages of all sites do ({sites})",
}


def _format_prior(page: PageFacts, source: PriorSource | None) -> str:
    """Return what is estimated of a page before its second visit."""
    if source is None:
        return PRIOR_WORDS[PriorLevel.NOTHING]
    pages, sites = format_count(source.pages, "page"), format_count(source.domains, "site")
    return PRIOR_WORDS[source.level].format(template=page.template, kind=source.kind, pages=pages, sites=sites)


TIMES = {1: "once", 2: "twice"}


def format_signals(stored: Explanation, page: PageFacts) -> str:
    """Return a line for each source of change signals: what it has said of the page, and its precision and recall."""
    lines = []
    for no, source in enumerate(stored.sources):
        count = page.signals[no] if no < len(page.signals) else 0
        times = TIMES.get(count, f"{count} times")
        history = f"has said {times} since then that it changed" if count else "has said nothing since then"
        precision = "" if source.precision is None else f", {format_share(source.precision)} of its signals were true"
        accuracy = f"it tells {format_share(source.recall)} of the changes{precision}"
        lines.append(
            f"{source.source} {history}: "
            f"{accuracy if source.recall else 'its word has not proved to be worth anything'}"
        )
    return "\n".join(lines)


def format_scripts(stored: Explanation) -> str:
    """Return what the last visit to a page that may need a browser did about its scripts; empty for other pages."""
    visit = next((visit for visit in stored.visits if visit.rendering), None)
    if visit is None:
        return ""
    description = RENDERING_WORDS.get(visit.rendering, visit.rendering)
    if visit.added_words is None or visit.added_links is None:
        return description
    return (
        f"{description}; they add {format_count(visit.added_words, 'word')} and "
        f"{format_count(visit.added_links, 'link')}"
    )


def format_rate_estimate(page: PageFacts, source: PriorSource | None) -> str:
    """Return what `format_change_rate` does, with the figures of the estimate and of the page's group."""
    low, high = compute_credible_interval(page.belief)
    group = f"pages like {page.template}" if page.template != OTHER_TEMPLATES else "pages of the domain"
    return (
        f"{format_change_rate(page, source)} (a {page.belief.a:.3g}, b {page.belief.b:.3g} days)\n"
        f"with a chance of 90% between {format_rate(low)} and {format_rate(high)}\n"
        f"{group} change {format_rate(page.prior.rate_per_day)} (a {page.prior.a:.3g}, b {page.prior.b:.3g})"
    )


def format_magnitude_factor(page: PageFacts, terms: VisitTerms | None) -> str:
    """Return what a page's changes count beside those of other pages; empty where they are not weighed."""
    if terms is None or terms.magnitude is None or not page.version:
        return ""
    own_changes = (
        f"{format_count(page.changes, 'change')} of its own" if page.magnitudes.changes else "none of its own yet"
    )
    factor = compute_page_magnitude_factor(page, terms)
    return f"count {factor:.2g} times the mean page's, by how much of the text they change ({own_changes})"


CONTEXT_CHARS, MAX_CHARS = 40, 160  # characters kept beside a change, and of a change itself


def format_edit(edit: BlockChange) -> str:
    """Return the words of a block that a change replaced, with marks around them."""
    runs = diff_words(edit.before or "", edit.after or "", kind=edit.part)
    return f"{edit.part.value}: {format_runs(shorten_runs(runs, context_chars=CONTEXT_CHARS, max_chars=MAX_CHARS))}"
