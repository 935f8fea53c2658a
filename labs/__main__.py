"""Experiments with the crawler's rules, replays of recorded sites, and the demo: `python -m labs --help`."""

import sys
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Annotated, Literal

import typer

from crawler.cli.main import main as run_command
from crawler.cli.options import Json
from labs.experiments.cli.app import app

HOME = Path(__file__).parents[1] / ".cache" / "labs"  # where the Postgres of replays lives


@app.command()
def demo(
    days: Annotated[int, typer.Option(min=1, max=365, metavar="N", help="Number of virtual days.")] = 30,
    keep: Annotated[bool, typer.Option("--keep", help="Keep the local stack running afterwards.")] = False,
    as_json: Json = False,
) -> int:
    """Run a small changing site for a virtual month, crawl it day by day, and compare the results with the truth.

    Examples:

        python -m labs demo
        python -m labs demo --days 7 --keep
    """
    from labs.demo import command

    return command.demo(days=days, keep=keep, as_json=as_json)


@app.command()
def replay(
    folder: Annotated[Path, typer.Argument(help="A history, or a .tar archive of one.")],
    budget: Annotated[
        list[int] | None, typer.Option(min=1, metavar="N", help="Requests per day; can be repeated.")
    ] = None,
    share: Annotated[
        list[float] | None,
        typer.Option(
            min=0.0001, metavar="SHARE", help="Requests per day, as a share of initial pages; can be repeated."
        ),
    ] = None,
    days: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Days of the history to replay, from its start; default: all."),
    ] = None,
    runs: Annotated[int, typer.Option(min=1, metavar="N", help="Crawl runs per day, evenly spaced.")] = 4,
    sitemap: Annotated[
        list[str] | None,
        typer.Option(metavar="dates|plain|none", help="Sitemap: true dates, no dates, or no sitemap; can be repeated."),
    ] = None,
    by_importance: Annotated[
        float, typer.Option(metavar="RATIO", help="Maximum ratio of the staleness weighted by importance.")
    ] = 0.85,
    cold: Annotated[
        bool, typer.Option("--cold", help="Apply the budget from the first day on, not the second.")
    ] = False,
    revisit: Annotated[str, typer.Option(metavar="POLICY", help="Revisit policy of the domain.")] = "value",
    hours: Annotated[str, typer.Option(metavar="HOURS", help="Crawl hours of the domain, such as mon-fri 9-17.")] = "",
    target_freshness: Annotated[
        float | None, typer.Option(metavar="SHARE", help="Target freshness instead of the budget, such as 0.97.")
    ] = None,
    home: Annotated[Path, typer.Option(metavar="FOLDER", help="Folder of the Postgres server.")] = HOME,
    as_json: Json = False,
) -> int:
    """Replay a recorded site history with the real crawler; print how it used its budget and how stale its copies were.

    labs/replay/history.py describes the format of a history. Ratios are relative to visiting all pages in turn: below 1
    is fresher. They are also given for the plain rule (labs/replay/rule.py), which knows all pages and what each visit
    finds. Figures that miss their bound are marked. With --json, each replay is one line with an object.

    Examples:

        python -m labs replay wcag-pages-2022.tar.xz --share 0.05 --days 120
        python -m labs replay wcag-pages-2022.tar.xz --share 0.05 --share 0.15 --sitemap plain --sitemap none
        python -m labs history news news && python -m labs replay news --budget 30 --json
    """
    from labs.replay import command
    from labs.replay.crawl import Plan
    from labs.replay.site import Sitemap

    request = command.ReplayRequest(budget or [], share or [], sitemap or ["plain"], days, by_importance)
    plan = Plan(0, 0, runs, Sitemap.PLAIN, cold, revisit, hours, target_freshness)
    return command.replay_history(folder, request, plan, home=home, as_json=as_json)


@app.command()
def history(
    kind: Annotated[Literal["releases", "news"], typer.Argument(help="Kind of site.")],
    folder: Annotated[Path, typer.Argument(help="A folder that does not exist yet.")],
    days: Annotated[int, typer.Option(min=1, metavar="N", help="Length of the history in days.")] = 180,
    of: Annotated[
        Literal["pytest", "sqlalchemy"], typer.Option(metavar="pytest|sqlalchemy", help="For releases: the project.")
    ] = "pytest",
    changelogs: Annotated[
        Path, typer.Option(metavar="FOLDER", help="For news: folder with Debian's PACKAGE/changelog*.gz.")
    ] = Path("/usr/share/doc"),
    start: Annotated[datetime, typer.Option(formats=["%Y-%m-%d"], help="News: the first day.")] = datetime(2022, 7, 1),  # noqa: DTZ001  UTC
) -> int:
    """Create the history of a site for `labs replay`: events.json and blobs/ in a folder.

    releases: documentation that is rebuilt with each release. news: articles that appear and are corrected, lists of
    them, a feed, and pages that never change.

    Examples:

        python -m labs history releases manual --of sqlalchemy
        python -m labs history news news --start 2022-07-01
    """
    from labs.histories import command

    return command.make_history(kind, folder, days=days, of=of, changelogs=changelogs, start=start)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command. Return its exit code, as for `recrawl`."""
    return run_command(arguments, app=app, program="python -m labs")


if __name__ == "__main__":
    sys.exit(main())
