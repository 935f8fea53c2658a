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
    """Where a command stands, and the panel of the help in which it is listed."""

    module: str
    attribute: str
    panel: str | None = None


LOOK, RUN, SERVE = "Look", "Run", "Run in containers and as services"
STACK = "crawler.cli.commands.stack"
SERVICE = "crawler.cli.commands.service"
PLACES = {
    "crawl": Place("crawler.cli.commands.crawl", "crawl"),
    "refresh": Place("crawler.cli.commands.refresh", "refresh"),
    "hint": Place("crawler.cli.commands.hint", "hint"),
    "pages": Place("crawler.cli.commands.pages", "pages", LOOK),
    "report": Place("crawler.cli.commands.report", "report", LOOK),
    "traffic": Place("crawler.cli.commands.traffic", "traffic", LOOK),
    "plan": Place("crawler.cli.commands.plan", "plan", LOOK),
    "audit": Place("crawler.cli.commands.audit", "audit", LOOK),
    "changes": Place("crawler.cli.commands.changes", "changes", LOOK),
    "diff": Place("crawler.cli.commands.versions", "diff", LOOK),
    "versions": Place("crawler.cli.commands.versions", "versions", LOOK),
    "show": Place("crawler.cli.commands.versions", "show", LOOK),
    "export": Place("crawler.cli.commands.export", "export", LOOK),
    "sync": Place("crawler.cli.commands.export", "sync", LOOK),
    "duplicates": Place("crawler.cli.commands.duplicates", "duplicates", LOOK),
    "explain": Place("crawler.cli.commands.explain", "explain", LOOK),
    "try": Place("crawler.cli.commands.try_page", "try_page", LOOK),
    "up": Place(STACK, "up", RUN),
    "down": Place(STACK, "down", RUN),
    "status": Place(STACK, "status", RUN),
    "ui": Place(STACK, "ui", RUN),
    "serve": Place("crawler.cli.commands.serve", "serve", RUN),
    "mcp": Place("crawler.cli.commands.mcp", "mcp", RUN),
    "tokens": Place("crawler.cli.commands.tokens", "app", RUN),
    "deploy": Place(SERVICE, "deploy", SERVE),
    "server": Place(SERVICE, "server", SERVE),
    "worker": Place(SERVICE, "worker", SERVE),
    "health": Place(SERVICE, "health", SERVE),
    "domains": Place("crawler.cli.commands.domains", "app"),
    "rules": Place("crawler.cli.commands.rules", "app"),
    "feed": Place("crawler.cli.commands.feed", "feed", LOOK),
    "notify": Place("crawler.cli.commands.notify", "app"),
    "plugins": Place("crawler.cli.commands.plugins", "plugins", RUN),
    "prune": Place("crawler.cli.commands.prune", "prune", RUN),
    "db": Place("crawler.cli.commands.db", "app", RUN),
}


@cache
def command_named(name: str) -> Any:
    """The command, or the group of commands, that is typed so."""
    place, alone = PLACES[name], typer.Typer()
    found = getattr(import_module(place.module), place.attribute)
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
