"""What sources of change signals have said of a page, and what their word is worth in its domain."""

from crawler.core.freshness import DAY, Heard, chance_fresh, days_ahead, heard_about, heard_days
from crawler.format.values import format_share
from crawler.store.report import Explanation, PageFacts

TIMES = {1: "once", 2: "twice"}


def heard_of_page(page: PageFacts, known: Explanation) -> Heard:
    """What was heard of the page since its last good look."""
    sources = known.terms.sources if known.terms is not None else ()
    return heard_about(page.belief, page.signals, sources)


def unseen_days(page: PageFacts, known: Explanation) -> float:
    """The days since the last good look, in days of the site's activity; 0 without one."""
    if page.last_good_at is None:
        return 0.0
    return max((known.at - page.last_good_at) / DAY + page.activity_ahead, 0.0)


def recall_and_ahead(page: PageFacts, known: Explanation) -> tuple[float, float]:
    """The chance that a change would have been told, and the days by which signals make the page older."""
    heard = heard_of_page(page, known)
    return float(heard.recall), float(days_ahead(page.belief.a, page.belief.b, heard))


def chance_now(page: PageFacts, known: Explanation) -> float:
    """The chance that the page is as it was at the last good look."""
    belief = page.belief
    days = heard_days(belief.a, belief.b, unseen_days(page, known), heard_of_page(page, known))
    return float(chance_fresh(belief.a, belief.b, days))


def shown_signals(page: PageFacts, known: Explanation) -> str:
    """A line for each source of the domain: what it has said of the page, and what that is worth."""
    lines = []
    for no, source in enumerate(known.sources):
        count = page.signals[no] if no < len(page.signals) else 0
        times = TIMES.get(count, f"{count} times")
        said = f"has said {times} since then that it changed" if count else "has said nothing since then"
        lines.append(f"{source.source} {said}: {_shown_worth(source.recall, source.precision)}")
    return "\n".join(lines)


def _shown_worth(recall: float, precision: float | None) -> str:
    if not recall:
        return "its word has not proved to be worth anything"
    true = f", {format_share(precision)} of its signals were true" if precision is not None else ""
    return f"it tells {format_share(recall)} of the changes{true}"
