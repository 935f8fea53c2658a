"""The command `labs replay`: replays by budget and sitemap, with their figures and bounds."""

import asyncio
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from itertools import product
from pathlib import Path

from crawler.errors import BadInput
from crawler.store.database import open_database
from labs.replay.crawl import Plan, Replay, Run, new_database, replay
from labs.replay.history import SiteHistory, UnreadableHistory, opened_history
from labs.replay.measures import ENDS_IN_S, SPARE, Bound, Delays, Figures, Staleness, bounds_of, figures_of
from labs.replay.site import Sitemap


@dataclass(frozen=True, slots=True)
class ReplayRequest:
    """The replays of a history: one for each budget and sitemap.

    budgets: requests per day.  shares: the same, as a share of the initial pages.  days: None for all of them.
    by_importance: the bound of staleness weighted by importance, which depends on the site's links.
    """

    budgets: Sequence[int]
    shares: Sequence[float]
    sitemaps: Sequence[str]
    days: int | None
    by_importance: float


def replay_history(folder: Path, request: ReplayRequest, plan: Plan, *, home: Path, as_json: bool) -> int:
    """Print the figures of each replay. Return 1 if a run did not end by itself or a lease was claimed needlessly.

    plan: what all replays have in common.  Raise BadInput.
    """
    if bool(request.budgets) == bool(request.shares):
        raise BadInput("give either --budget or --share to set how many requests per day the replay may make")
    if unknown := next((name for name in request.sitemaps if name not in list(Sitemap)), None):
        raise BadInput(f"{unknown!r} is not a sitemap; choose one of {', '.join(Sitemap)}")
    is_sound = True
    try:
        with opened_history(folder) as history:
            days = min(request.days or history.days, history.days)
            budgets = request.budgets or [max(1, round(part * len(history.importance))) for part in request.shares]
            for sitemap, budget in product(request.sitemaps, budgets):
                each = replace(plan, budget=budget, days=days, sitemap=Sitemap(sitemap))
                found = figures_of(history, each, asyncio.run(_replay(history, each, home=home)))
                bounds = bounds_of(each.sitemap, weighted=request.by_importance)
                print(_json(folder, each, found, bounds) if as_json else "\n".join(lines_of(each, found, bounds)))
                sys.stdout.flush()  # the next one takes minutes
                is_sound &= not (found.late_runs or found.repeated_leases)
    except UnreadableHistory as error:
        raise BadInput(str(error)) from error
    return 0 if is_sound else 1


async def _replay(history: SiteHistory, plan: Plan, *, home: Path) -> Replay:
    def show(run: Run) -> None:
        if sys.stderr.isatty():
            print(f"\rday {run.day:.1f} of {plan.days}", end="", file=sys.stderr, flush=True)

    with new_database(home) as url:
        async with open_database(url) as db:
            return await replay(db, history, plan, progress=show)


def _json(folder: Path, plan: Plan, found: Figures, bounds: Sequence[Bound]) -> str:
    missed = [bound.of for bound in bounds if not bound.is_met(found)]
    return json.dumps({"folder": folder.name, **asdict(plan), **asdict(found), "missed": missed})


def lines_of(plan: Plan, found: Figures, bounds: Sequence[Bound]) -> list[str]:
    """Return the figures as lines of text, with their bounds."""
    marks = {bound.of: _mark(bound, is_met=bound.is_met(found)) for bound in bounds}

    def with_mark(text: str, of: str) -> str:
        return text + marks.get(of, "")

    alike, by_importance = _both(found.by_budget)
    at_budget = f"{with_mark(alike, 'by_budget.plain')}, {with_mark(by_importance, 'by_budget.weighted')}"
    precision = with_mark(f"precision {found.precision:.2f}", "precision")
    recall = with_mark(f"recall {found.recall:.2f}", "recall")
    return [
        f"{plan.budget} requests a day, {found.days:.0f} days, {plan.runs_a_day} runs a day, sitemap: {plan.sitemap}",
        f"{with_mark(f'used {found.used:.3f} of the budget', 'used')}: {found.requests_per_day:.1f} requests a day",
        f"{found.leases_per_day:.1f} leases a day; claimed again without a request: {found.repeated_leases}",
        f"days with more than {SPARE} requests left while pages were unfetched: {found.short_days}",
        f"runs that did not end within {ENDS_IN_S:.0f} s after their last request: {found.late_runs}",
        f"slowest run: {found.slowest_run_s:.1f} s",
        f"stale: {', '.join(_both(found.stale, 4))}",
        f"against visits in turn at equal budget: {at_budget}",
        f"against visits in turn at equal requests: {', '.join(_both(found.by_requests))}",
        f"the plain rule, at equal budget: {', '.join(_both(found.rule))}",
        f"discovery: {_delays(found.discovery)}",
        f"deletion: {_delays(found.deletion)}",
        with_mark(f"dead links: {found.dead_links:.1%} of the requests", "dead_links"),
        f"robots.txt, sitemaps and feeds: {found.for_files:.1%} of the requests",
        f"verdict `changed`: {precision}, {recall}",
        with_mark(f"weekly error of reported freshness: {found.report_error:.3f}", "report_error"),
        "",
    ]


def _mark(bound: Bound, *, is_met: bool) -> str:
    side = "at least" if bound.is_least else "at most"
    return f" ({side} {bound.limit:g}{'' if is_met else ': MISSED'})"


def _both(found: Staleness, digits: int = 2) -> tuple[str, str]:
    return f"{found.plain:.{digits}f} all pages equal", f"{found.weighted:.{digits}f} by importance"


def _delays(found: Delays) -> str:
    times = f"{found.median:.1f} (median), {found.mean:.1f} (mean), {found.worst:.1f} (worst)"
    return f"{found.found} of {found.events} found, after days: {times}"
