"""Replay a recorded site history with the real crawler: print how it spent its budget and how stale its copies were.

FOLDER is a history as labs/replay/history.py describes it, or a .tar archive of one. Ratios are to visiting all pages
in turn: below 1 is fresher. Beside them are those of the plain rule (labs/replay/rule.py), which knows all pages and
what each visit finds. A figure that misses its bound is marked.
"""

import argparse
import asyncio
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from itertools import product
from pathlib import Path

from crawler.store.database import open_database
from labs.replay.crawl import Plan, Replay, Run, new_database, replay
from labs.replay.history import SiteHistory, UnreadableHistory, opened_history
from labs.replay.measures import ENDS_IN_S, SPARE, Bound, Delays, Figures, Staleness, bounds_of, figures_of
from labs.replay.site import Sitemap

HOME = Path(__file__).parents[2] / ".cache" / "labs"  # where the Postgres of experiments lives


EXAMPLES = """examples:
  python -m labs replay wcag-pages-2022.tar.xz --share 0.05 --days 120
  python -m labs replay wcag-pages-2022.tar.xz --share 0.05 --share 0.15 --share 0.5 --sitemap plain --sitemap none
  python -m labs history news news && python -m labs replay news --budget 30 --json
"""


def main(arguments: Sequence[str]) -> int:
    """Run the command; 1 where a run did not end by itself or a lease was taken in vain, 2 where FOLDER is none."""
    given = options().parse_args(arguments)
    sound = True
    try:
        with opened_history(given.folder) as history:
            days = min(given.days or history.days, history.days)
            budgets = given.budget or [max(1, round(share * len(history.importance))) for share in given.share]
            for sitemap, budget in product(given.sitemap or [Sitemap.PLAIN], budgets):
                plan = Plan(
                    budget,
                    days,
                    given.runs,
                    Sitemap(sitemap),
                    given.cold,
                    revisit=given.revisit,
                    hours=given.hours,
                    target_freshness=given.target_freshness,
                )
                found = figures_of(history, plan, asyncio.run(_replay(history, plan, home=given.home)))
                bounds = bounds_of(plan.sitemap, weighted=given.by_importance)
                print(
                    _json(given.folder, plan, found, bounds) if given.json else "\n".join(lines_of(plan, found, bounds))
                )
                sys.stdout.flush()  # the next one takes minutes
                sound &= not (found.late_runs or found.repeated_leases)
    except UnreadableHistory as error:
        print(error, file=sys.stderr)
        return 2
    return 0 if sound else 1


def options() -> argparse.ArgumentParser:
    """Return the parser of the command's options."""
    parser = argparse.ArgumentParser(
        prog="labs replay",
        description=__doc__,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("folder", type=Path, help="a history, or a .tar archive of one")
    budget = parser.add_mutually_exclusive_group(required=True)
    budget.add_argument("--budget", type=_positive, action="append", help="requests a day; again for another replay")
    budget.add_argument(
        "--share", type=_share, action="append", help="requests a day, as a share of the pages at the start: 0.05"
    )
    parser.add_argument("--days", type=_positive, help="of the history, from its start; all of them if not given")
    parser.add_argument(
        "--runs", type=_positive, default=4, help="a day, 15 minutes before the end of each equal part of it"
    )
    parser.add_argument(
        "--sitemap",
        choices=list(Sitemap),
        action="append",
        help="with true dates, without (default), or none; again for another replay",
    )
    parser.add_argument(
        "--by-importance", type=float, default=0.85, help="the bound of staleness by importance, which links decide"
    )
    parser.add_argument("--cold", action="store_true", help="begin with the budget, not with a day without one")
    parser.add_argument("--revisit", default="price", help="the domain's policy, as in its settings")
    parser.add_argument("--hours", default="", help="of the domain, as in its settings: mon-fri 9-17")
    parser.add_argument("--target-freshness", type=float, help="of the domain, in place of the budget: 0.97")
    parser.add_argument("--home", type=Path, default=HOME, help="of the Postgres server")
    parser.add_argument("--json", action="store_true", help="print one JSON object a line for each replay")
    return parser


def _positive(text: str) -> int:
    if (number := int(text)) < 1:
        raise argparse.ArgumentTypeError(f"{text} is not above 0")
    return number


def _share(text: str) -> float:
    if not (share := float(text)) > 0:
        raise argparse.ArgumentTypeError(f"{text} is not above 0")
    return share


async def _replay(history: SiteHistory, plan: Plan, *, home: Path) -> Replay:
    def show(run: Run) -> None:
        if sys.stderr.isatty():
            print(f"\rday {run.day:.1f} of {plan.days}", end="", file=sys.stderr, flush=True)

    with new_database(home) as url:
        async with open_database(url) as db:
            return await replay(db, history, plan, progress=show)


def _json(folder: Path, plan: Plan, found: Figures, bounds: Sequence[Bound]) -> str:
    missed = [bound.of for bound in bounds if not bound.is_kept(found)]
    return json.dumps({"folder": folder.name, **asdict(plan), **asdict(found), "missed": missed})


def lines_of(plan: Plan, found: Figures, bounds: Sequence[Bound]) -> list[str]:
    """Return the figures as lines of text, with the bound of each that has one."""
    marks = {bound.of: _mark(bound, is_kept=bound.is_kept(found)) for bound in bounds}

    def with_mark(text: str, of: str) -> str:
        return text + marks.get(of, "")

    alike, by_importance = _both(found.by_budget)
    at_budget = f"{with_mark(alike, 'by_budget.plain')}, {with_mark(by_importance, 'by_budget.weighted')}"
    precision = with_mark(f"precision {found.precision:.2f}", "precision")
    recall = with_mark(f"recall {found.recall:.2f}", "recall")
    return [
        f"{plan.budget} requests a day, {found.days:.0f} days, {plan.runs_a_day} runs a day, sitemap: {plan.sitemap}",
        f"{with_mark(f'used {found.used:.3f} of the budget', 'used')}: {found.requests_per_day:.1f} requests a day",
        f"{found.leases_per_day:.1f} leases a day; taken without a request since the last one: {found.repeated_leases}",
        f"days with more than {SPARE} requests left while pages were unfetched: {found.short_days}",
        f"runs that did not end within {ENDS_IN_S:.0f} s of their last request: {found.late_runs}",
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


def _mark(bound: Bound, *, is_kept: bool) -> str:
    side = "at least" if bound.is_least else "at most"
    return f" ({side} {bound.limit:g}{'' if is_kept else ': MISSED'})"


def _both(found: Staleness, digits: int = 2) -> tuple[str, str]:
    return f"{found.plain:.{digits}f} all pages alike", f"{found.weighted:.{digits}f} by importance"


def _delays(found: Delays) -> str:
    times = f"{found.median:.1f} (median), {found.mean:.1f} (mean), {found.worst:.1f} (worst)"
    return f"{found.found} of {found.events} found, after days: {times}"
