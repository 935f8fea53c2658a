"""recrawl demo: what the guided tour shows at its end."""

from crawler.cli.exits import DONE
from crawler.cli.output import print_json, remark, show_facts
from crawler.cli.progress import Days
from crawler.cli.values import counted, shown_bytes, shown_share
from crawler.demo.tour import Outcome, tour
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
    truth, mean = shown_share(outcome.freshness_true), shown_share(outcome.freshness_mean)
    return [
        ("The site", f"{outcome.domain}, {counted(outcome.pages, 'page')}, {counted(outcome.days, 'day')} of its life"),
        ("Fresh, as reported", shown_share(outcome.freshness_reported)),
        ("Fresh, in truth", f"{truth} at the end, {mean} over the whole time"),
        ("Changes", f"{changes.happened}: looks met {changes.found}, {lost}"),
        ("Recognised", f"{outcome.recognised}; {outcome.lied_away} more were denied by the server"),
        ("False alarms", str(outcome.false_alarms)),
        ("Requests", _beside(outcome.requests, outcome.requests_daily, f"{outcome.requests:,}")),
        ("Received", _beside(received, outcome.received_daily_bytes, shown_bytes(received))),
        ("Saved", shown_bytes(outcome.saved_bytes)),
        ("Runs", "\n".join(outcome.runs)),
        ("Prefect", outcome.ui_url + ("" if keep else " (while the stack is up: recrawl up)")),
    ]


def _beside(ours: float, daily: float, shown: str) -> str:
    return f"{shown}, {ours / daily:.0%} of what fetching every page every day takes" if daily else shown
