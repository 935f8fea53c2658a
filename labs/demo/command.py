"""python -m labs demo: what the guided tour shows at its end."""

from crawler.cli.output import print_json, remark, say, say_heading, show_facts
from crawler.cli.reports.changes_output import show_change
from crawler.cli.session import DONE
from crawler.format.lists import format_lists
from crawler.format.values import format_bytes, format_count, format_share
from crawler.settings import get_settings
from labs.demo.outcome import DemoOutcome
from labs.demo.rival import Freshness
from labs.demo.tour import BUDGET, tour
from labs.progress import Days


def demo(*, days: int, keep: bool, as_json: bool) -> int:
    with Days(days) as progress:
        outcome = tour(get_settings(), days=days, keep=keep, report=remark, progress=progress.count)
    if as_json:
        print_json(outcome)
    else:
        if outcome.examples:
            say_heading("The last changes that it found")
            for item in outcome.examples:
                say("")
                show_change(item, now=outcome.examples[0].at)
            say("")
        show_facts(facts_of(outcome, keep=keep))
    return DONE


def facts_of(outcome: DemoOutcome, *, keep: bool) -> list[tuple[str, str]]:
    """The outcome in words, a line each."""
    changes, received = outcome.changes, outcome.received_bytes
    lost = f"{changes.merged} were over before a look, {changes.pending} wait for one"
    duel = outcome.match
    return [
        (
            "The site",
            f"{outcome.domain}, {format_count(outcome.pages, 'page')}, {format_count(outcome.days, 'day')} of its life",
        ),
        ("Fresh, as reported", f"{_both(outcome.reported)}, on average over the days"),
        ("Fresh, in truth", _both(duel.ours)),
        (
            "Each page in turn",
            f"{_both(duel.uniform)}, with as many requests after the first two crawls: {duel.requests:,}",
        ),
        ("Margin", _points(outcome.margin)),
        ("Changes", f"{changes.happened}: looks met {changes.found}, {lost}"),
        ("Recognised", f"{outcome.recognised}; {outcome.lied_away} more were denied by the server"),
        ("False alarms", str(outcome.false_alarms)),
        ("Sitemap and feed", format_lists(outcome.lists)),
        ("Requests", _requests(outcome)),
        ("Received", _beside(received, outcome.received_daily_bytes, format_bytes(received))),
        ("Saved", format_bytes(outcome.saved_bytes)),
        ("Runs", "\n".join(outcome.runs)),
        ("Look at it", f"{outcome.index} in a browser"),
        ("Prefect", outcome.ui_url + ("" if keep else " (while the stack is up: recrawl up)")),
        ("To log in there", "recrawl ui prints what the first page asks for"),
    ]


def _both(fresh: Freshness) -> str:
    return f"{format_share(fresh.weighted)} of importance, {format_share(fresh.plain)} of pages"


def _points(margin: Freshness) -> str:
    weighted, plain = (f"{100 * share:+.1f}" for share in (margin.weighted, margin.plain))
    return f"{weighted} points of importance, {plain} points of pages: ours over each page in turn"


def _requests(outcome: DemoOutcome) -> str:
    """All of them, and which of them stand beside those of each page in turn."""
    since = outcome.match.requests
    return (
        f"{_beside(outcome.requests, outcome.requests_daily, f'{outcome.requests:,} in all')}:\n"
        f"{outcome.requests - since:,} of the first two crawls, which look at every page,\n"
        f"{since:,} of the days since, which may make {BUDGET} each"
    )


def _beside(ours: float, daily: float, shown: str) -> str:
    return f"{shown}, {ours / daily:.0%} of what fetching every page every day takes" if daily else shown
