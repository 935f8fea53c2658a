"""recrawl demo: what the guided tour shows at its end."""

from crawler.cli.exits import DONE
from crawler.cli.output import print_json, remark, show_facts
from crawler.cli.progress import Days
from crawler.cli.values import counted, shown_bytes, shown_share
from crawler.demo.outcome import Outcome
from crawler.demo.rival import Freshness
from crawler.demo.tour import tour
from crawler.settings import settings


def demo(*, days: int, keep: bool, as_json: bool) -> int:
    with Days(days) as progress:
        outcome = tour(settings(), days=days, keep=keep, report=remark, progress=progress.advance)
    if as_json:
        print_json(outcome)
    else:
        show_facts(_facts(outcome, keep=keep))
    return DONE


def _facts(outcome: Outcome, *, keep: bool) -> list[tuple[str, str]]:
    changes, received = outcome.changes, outcome.received_bytes
    lost = f"{changes.merged} were over before a look, {changes.pending} wait for one"
    duel, at_the_end = outcome.match, shown_share(outcome.freshness_true)
    reported_at_the_end = shown_share(outcome.freshness_reported)
    return [
        ("The site", f"{outcome.domain}, {counted(outcome.pages, 'page')}, {counted(outcome.days, 'day')} of its life"),
        ("Fresh, as reported", f"{_both(outcome.reported)}; {reported_at_the_end} at the end"),
        ("Fresh, in truth", f"{_both(duel.ours)}; {at_the_end} at the end"),
        ("Each page in turn", f"{_both(duel.uniform)}, in truth, with as many requests ({duel.requests:,})"),
        ("Margin", _points(outcome.margin)),
        ("Changes", f"{changes.happened}: looks met {changes.found}, {lost}"),
        ("Recognised", f"{outcome.recognised}; {outcome.lied_away} more were denied by the server"),
        ("False alarms", str(outcome.false_alarms)),
        ("Requests", _beside(outcome.requests, outcome.requests_daily, f"{outcome.requests:,}")),
        ("Received", _beside(received, outcome.received_daily_bytes, shown_bytes(received))),
        ("Saved", shown_bytes(outcome.saved_bytes)),
        ("Runs", "\n".join(outcome.runs)),
        ("Prefect", outcome.ui_url + ("" if keep else " (while the stack is up: recrawl up)")),
    ]


def _both(fresh: Freshness) -> str:
    """Freshness over the days after the recrawl."""
    return f"{shown_share(fresh.weighted)} of importance, {shown_share(fresh.plain)} of pages"


def _points(margin: Freshness) -> str:
    return f"{100 * margin.weighted:+.1f} points of importance, {100 * margin.plain:+.1f} of pages, over each in turn"


def _beside(ours: float, daily: float, shown: str) -> str:
    return f"{shown}, {ours / daily:.0%} of what fetching every page every day takes" if daily else shown
