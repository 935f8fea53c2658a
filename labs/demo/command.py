"""The command `python -m labs demo`: run the guided tour and print its results."""

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
            say_heading("Latest changes")
            for item in outcome.examples:
                say("")
                show_change(item, now=outcome.examples[0].at)
            say("")
        show_facts(facts_of(outcome, keep=keep))
    return DONE


def facts_of(outcome: DemoOutcome, *, keep: bool) -> list[tuple[str, str]]:
    """Return the outcome as labeled lines."""
    changes, received = outcome.changes, outcome.received_bytes
    lost = f"{changes.merged} were overwritten before a visit, {changes.pending} not visited yet"
    comparison = outcome.match
    return [
        (
            "The site",
            f"{outcome.domain}, {format_count(outcome.pages, 'page')}, {format_count(outcome.days, 'day')} of its life",
        ),
        ("Reported freshness", f"{_both(outcome.reported)}, on average over the days"),
        ("True freshness", _both(comparison.ours)),
        (
            "Uniform revisits",
            f"{_both(comparison.uniform)}, with as many requests after the first two crawls: {comparison.requests:,}",
        ),
        ("Gain", _points(outcome.margin)),
        ("Changes", f"{changes.happened}: {changes.found} were visited, {lost}"),
        ("Detected", f"{outcome.recognised}; {outcome.lied_away} more were hidden by the server"),
        ("False alarms", str(outcome.false_alarms)),
        ("Sitemap and feed", format_lists(outcome.lists)),
        ("Requests", _requests(outcome)),
        ("Received", _with_share_of_daily(received, outcome.received_daily_bytes, format_bytes(received))),
        ("Saved", format_bytes(outcome.saved_bytes)),
        ("Runs", "\n".join(outcome.runs)),
        ("Web UI as files", f"open {outcome.index} in a browser"),
        ("Prefect", outcome.ui_url + ("" if keep else " (while the local stack is running: recrawl up)")),
        ("Prefect login", "run recrawl ui to print it"),
    ]


def _both(fresh: Freshness) -> str:
    return f"{format_share(fresh.weighted)} of importance, {format_share(fresh.plain)} of pages"


def _points(margin: Freshness) -> str:
    weighted, plain = (f"{100 * share:+.1f}" for share in (margin.weighted, margin.plain))
    return f"{weighted} points of importance, {plain} points of pages, compared with uniform revisits"


def _requests(outcome: DemoOutcome) -> str:
    """Describe all requests, and those that are compared with uniform revisits."""
    since = outcome.match.requests
    return (
        f"{_with_share_of_daily(outcome.requests, outcome.requests_daily, f'{outcome.requests:,} in total')}:\n"
        f"{outcome.requests - since:,} in the first two crawls, which fetch every page,\n"
        f"{since:,} in the days after them, at most {BUDGET} per day"
    )


def _with_share_of_daily(ours: float, daily: float, shown: str) -> str:
    return f"{shown}, {ours / daily:.0%} of what fetching every page daily takes" if daily else shown
