"""Experiments with the crawler's own rules, replays of recorded sites, and the demo: `python -m labs --help`."""

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
    days: Annotated[int, typer.Option(min=1, max=365, metavar="N", help="Virtual days that pass.")] = 30,
    keep: Annotated[bool, typer.Option("--keep", help="Leave the local stack running, to look at.")] = False,
    as_json: Json = False,
) -> int:
    """Let a small site live for a month on this machine, crawl it day by day, and compare with the truth.

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
        list[int] | None, typer.Option(min=1, metavar="N", help="Requests a day; may be repeated.")
    ] = None,
    share: Annotated[
        list[float] | None,
        typer.Option(min=0.0001, metavar="SHARE", help="Requests a day, of the pages at the start; may be repeated."),
    ] = None,
    days: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Of the history, from its start; all if not given.")
    ] = None,
    runs: Annotated[int, typer.Option(min=1, metavar="N", help="A day, each near the end of an equal part of it.")] = 4,
    sitemap: Annotated[
        list[str] | None,
        typer.Option(metavar="dates|plain|none", help="True dates, no dates, no sitemap; may be repeated."),
    ] = None,
    by_importance: Annotated[
        float, typer.Option(metavar="RATIO", help="The bound of staleness weighted by importance.")
    ] = 0.85,
    cold: Annotated[bool, typer.Option("--cold", help="Begin with the budget, not with a day without one.")] = False,
    revisit: Annotated[str, typer.Option(metavar="POLICY", help="Of the domain, as in its settings.")] = "value",
    hours: Annotated[str, typer.Option(metavar="HOURS", help="Of the domain: mon-fri 9-17.")] = "",
    target_freshness: Annotated[
        float | None, typer.Option(metavar="SHARE", help="Of the domain, in place of the budget: 0.97.")
    ] = None,
    home: Annotated[Path, typer.Option(metavar="FOLDER", help="Of the Postgres server.")] = HOME,
    as_json: Json = False,
) -> int:
    """Replay a recorded site history with the real crawler: how it spent its budget, and how stale its copies were.

    labs/replay/history.py describes what a history holds. Ratios are to visiting all pages in turn: below 1 is fresher.
    Beside them are those of the plain rule (labs/replay/rule.py), which knows all pages and what each visit finds. A
    figure that misses its bound is marked. With --json, one object a line for each replay.

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
    kind: Annotated[Literal["releases", "news"], typer.Argument(help="The kind of site.")],
    folder: Annotated[Path, typer.Argument(help="A folder that does not exist yet.")],
    days: Annotated[int, typer.Option(min=1, metavar="N", help="How long the history is.")] = 180,
    of: Annotated[
        Literal["pytest", "sqlalchemy"], typer.Option(metavar="pytest|sqlalchemy", help="Releases: of which project.")
    ] = "pytest",
    changelogs: Annotated[
        Path, typer.Option(metavar="FOLDER", help="News: holds PACKAGE/changelog*.gz, as Debian has them.")
    ] = Path("/usr/share/doc"),
    start: Annotated[datetime, typer.Option(formats=["%Y-%m-%d"], help="News: the first day.")] = datetime(2022, 7, 1),  # noqa: DTZ001  its day is in UTC
) -> int:
    """Make the history of a site for `labs replay`: events.json and blobs/ in a folder.

    releases: a documentation that is built again with each release. news: articles that appear and are corrected, lists
    of them, a feed, and pages that stay as they are.

    Examples:

        python -m labs history releases manual --of sqlalchemy
        python -m labs history news news --start 2022-07-01
    """
    from labs.histories import command

    return command.make_history(kind, folder, days=days, of=of, changelogs=changelogs, start=start)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command. Return its exit code: those of `recrawl`."""
    return run_command(arguments, app=app, program="python -m labs")


if __name__ == "__main__":
    sys.exit(main())
