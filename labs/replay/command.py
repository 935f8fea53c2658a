"""Replay a recorded site history with the real crawler: print how it spent its budget and how stale its copies were.

FOLDER is a history as labs/replay/history.py describes it, or a .tar archive of one. Ratios are to visiting all pages
in turn: below 1 is fresher.
"""

import argparse
import asyncio
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from crawler.store.database import open_database
from labs.replay.crawl import Plan, Replay, Run, new_database, replay
from labs.replay.history import SiteHistory, opened_history
from labs.replay.measures import ENDS_IN_S, SPARE, Delays, Figures, Staleness, figures_of
from labs.replay.site import Sitemap

HOME = Path(__file__).parents[2] / ".cache" / "labs"  # where the Postgres of experiments lives


def main(arguments: Sequence[str]) -> int:
    """Run the command; 1 where a run did not end by itself or a lease was taken in vain."""
    given = options().parse_args(arguments)
    with opened_history(given.folder) as history:
        days = min(given.days or history.days, history.days)
        per_day = given.budget or round(given.share * len(history.importance))
        plan = Plan(
            per_day,
            days,
            given.runs,
            Sitemap(given.sitemap),
            given.cold,
            revisit=given.revisit,
            hours=given.hours,
            target_freshness=given.target_freshness,
        )
        found = figures_of(history, plan, asyncio.run(_replay(history, plan, home=given.home)))
    if given.json:
        print(json.dumps({"folder": given.folder.name, **asdict(plan), **asdict(found)}))
    else:
        print("\n".join(lines_of(plan, found)))
    return 0 if not (found.late_runs or found.repeated_leases) else 1


def options() -> argparse.ArgumentParser:
    """Return the parser of the command's options."""
    parser = argparse.ArgumentParser(prog="labs replay", description=__doc__)
    parser.add_argument("folder", type=Path, help="a history, or a .tar archive of one")
    budget = parser.add_mutually_exclusive_group(required=True)
    budget.add_argument("--budget", type=int, help="requests a day")
    budget.add_argument("--share", type=float, help="requests a day, as a share of the pages at the start: 0.05")
    parser.add_argument("--days", type=int, help="of the history, from its start; all of them if not given")
    parser.add_argument("--runs", type=int, default=2, help="a day, 15 minutes before the end of each equal part of it")
    parser.add_argument(
        "--sitemap", choices=list(Sitemap), default=Sitemap.PLAIN, help="with true dates, without, or none"
    )
    parser.add_argument("--cold", action="store_true", help="begin with the budget, not with a day without one")
    parser.add_argument("--revisit", default="price", help="the domain's policy, as in its settings")
    parser.add_argument("--hours", default="", help="of the domain, as in its settings: mon-fri 9-17")
    parser.add_argument("--target-freshness", type=float, help="of the domain, in place of the budget: 0.97")
    parser.add_argument("--home", type=Path, default=HOME, help="of the Postgres server")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    return parser


async def _replay(history: SiteHistory, plan: Plan, *, home: Path) -> Replay:
    def show(run: Run) -> None:
        if sys.stderr.isatty():
            print(f"\rday {run.day:.1f} of {plan.days}", end="", file=sys.stderr, flush=True)

    with new_database(home) as url:
        async with open_database(url) as db:
            return await replay(db, history, plan, progress=show)


def lines_of(plan: Plan, found: Figures) -> list[str]:
    """Return the figures as lines of text."""
    return [
        f"{plan.budget} requests a day, {found.days:.0f} days, {plan.runs_a_day} runs a day, sitemap: {plan.sitemap}",
        f"used {found.used:.3f} of the budget: {found.requests_per_day:.1f} requests a day",
        f"{found.leases_per_day:.1f} leases a day; taken without a request since the last one: {found.repeated_leases}",
        f"days with more than {SPARE} requests left while pages were unfetched: {found.short_days}",
        f"runs that did not end within {ENDS_IN_S:.0f} s of their last request: {found.late_runs}",
        f"slowest run: {found.slowest_run_s:.1f} s",
        f"stale: {_both(found.stale, 4)}",
        f"against visits in turn at equal budget: {_both(found.by_budget)}",
        f"against visits in turn at equal requests: {_both(found.by_requests)}",
        f"discovery: {_delays(found.discovery)}",
        f"deletion: {_delays(found.deletion)}",
        f"dead links: {found.dead_links:.1%} of the requests",
        f"verdict `changed`: precision {found.precision:.2f}, recall {found.recall:.2f}",
        f"weekly error of reported freshness: {found.report_error:.3f}",
    ]


def _both(found: Staleness, digits: int = 2) -> str:
    return f"{found.plain:.{digits}f} all pages alike, {found.weighted:.{digits}f} by importance"


def _delays(found: Delays) -> str:
    times = f"{found.median:.1f} (median), {found.mean:.1f} (mean), {found.worst:.1f} (worst)"
    return f"{found.found} of {found.events} found, after days: {times}"
