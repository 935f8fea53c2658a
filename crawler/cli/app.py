"""The command `recrawl`: which commands there are, and where each stands. They are imported when they are asked for."""

import logging
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from typing import Annotated, Any, NamedTuple

import typer
from typer.core import TyperGroup

from crawler import __version__


class Place(NamedTuple):
    """Where a command stands below crawler.cli, and the panel of the help in which it is listed."""

    module: str
    attribute: str
    panel: str | None = None


LOOK, RUN, SERVE = "Look", "Run", "Run in containers and as services"
PLACES = {
    "crawl": Place("crawling.crawl", "crawl"),
    "refresh": Place("crawling.refresh", "refresh"),
    "hint": Place("crawling.refresh", "hint"),
    "pages": Place("pages.pages", "pages", LOOK),
    "report": Place("reports.reports", "report", LOOK),
    "traffic": Place("reports.reports", "traffic", LOOK),
    "plan": Place("reports.reports", "plan", LOOK),
    "audit": Place("reports.reports", "audit", LOOK),
    "changes": Place("reports.changes", "changes", LOOK),
    "diff": Place("pages.page", "diff", LOOK),
    "versions": Place("pages.page", "versions", LOOK),
    "show": Place("pages.page", "show", LOOK),
    "export": Place("delivery.export", "export", LOOK),
    "sync": Place("delivery.export", "sync", LOOK),
    "duplicates": Place("pages.pages", "duplicates", LOOK),
    "explain": Place("pages.page", "explain", LOOK),
    "try": Place("pages.page", "try_page", LOOK),
    "up": Place("running.stack", "up", RUN),
    "down": Place("running.stack", "down", RUN),
    "status": Place("running.stack", "status", RUN),
    "ui": Place("running.stack", "ui", RUN),
    "serve": Place("running.stack", "serve", RUN),
    "mcp": Place("running.stack", "mcp", RUN),
    "tokens": Place("delivery.access", "app", RUN),
    "deploy": Place("running.service", "deploy", SERVE),
    "server": Place("running.service", "server", SERVE),
    "worker": Place("running.service", "worker", SERVE),
    "health": Place("running.service", "health", SERVE),
    "domains": Place("domains.domains", "app"),
    "rules": Place("domains.rules", "app"),
    "feed": Place("delivery.access", "feed", LOOK),
    "notify": Place("delivery.notify", "app"),
    "plugins": Place("running.plugins", "plugins", RUN),
    "prune": Place("running.prune", "prune", RUN),
    "db": Place("running.db", "app", RUN),
}


@cache
def command_named(name: str) -> Any:
    """The command, or the group of commands, that is typed so."""
    place, alone = PLACES[name], typer.Typer()
    found = getattr(import_module(f"crawler.cli.{place.module}"), place.attribute)
    if isinstance(found, typer.Typer):
        alone.add_typer(found, name=name, rich_help_panel=place.panel)
    else:
        alone.command(name, rich_help_panel=place.panel)(found)
    return typer.main.get_group(alone).commands[name]


class Commands(Mapping[str, Any]):
    """All commands by name, each imported when it is looked up."""

    def __getitem__(self, name: str) -> Any:
        return command_named(name)

    def __iter__(self) -> Iterator[str]:
        return iter(PLACES)

    def __len__(self) -> int:
        return len(PLACES)


class Group(TyperGroup):
    """The group of all commands."""

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        self.commands = Commands()  # type: ignore[assignment]  # it is only read


app = typer.Typer(
    cls=Group,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["--help", "-h"]},
)


def _tell_version(asked: bool) -> None:  # noqa: FBT001  typer calls it so
    if asked:
        typer.echo(f"recrawl {__version__}")
        raise typer.Exit


@app.callback()
def root(
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Tell on stderr what happens, event by event.")
    ] = False,
    version: Annotated[  # noqa: ARG001  answered by its callback, before any command
        bool, typer.Option("--version", callback=_tell_version, is_eager=True, help="Tell the version, and stop.")
    ] = False,
) -> None:
    """Keep a copy of chosen web domains fresh in Postgres, with as few requests as it can.

    Examples:

        recrawl crawl https://docs.example.com
        recrawl report
        recrawl changes --since 7d
        recrawl up

    Without RECRAWL_DATABASE_URL everything is kept in the folder RECRAWL_HOME, in a Postgres of its own: the .recrawl
    of this folder or of one above, else ~/.local/share/recrawl. `recrawl status` tells which.
    Exit codes: 0 done, 1 a problem was found, 2 it cannot be asked for like this, 3 a cursor is too old.
    """
    from crawler.cli import logs

    logs.set_up(level=logging.INFO if verbose else logging.WARNING)
