"""The list of all commands of `recrawl` and the root command. Each command is imported when it is first used."""

import logging
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from typing import Annotated, Any, NamedTuple

import typer
from typer.core import TyperGroup

from crawler import __version__


class CommandLocation(NamedTuple):
    """The module of a command below crawler.cli, its name there, and the help panel that lists it."""

    module: str
    attribute: str
    panel: str | None = None


INSPECT_PANEL, RUN_PANEL, SERVICES_PANEL = "Inspect", "Run", "Run in containers and as services"
COMMAND_LOCATIONS = {
    "crawl": CommandLocation("crawling.crawl", "crawl"),
    "refresh": CommandLocation("crawling.refresh", "refresh"),
    "hint": CommandLocation("crawling.refresh", "hint"),
    "pages": CommandLocation("pages.pages", "pages", INSPECT_PANEL),
    "report": CommandLocation("reports.reports", "report", INSPECT_PANEL),
    "traffic": CommandLocation("reports.reports", "traffic", INSPECT_PANEL),
    "plan": CommandLocation("reports.reports", "plan", INSPECT_PANEL),
    "audit": CommandLocation("reports.reports", "audit", INSPECT_PANEL),
    "changes": CommandLocation("reports.changes", "changes", INSPECT_PANEL),
    "diff": CommandLocation("pages.page", "diff", INSPECT_PANEL),
    "versions": CommandLocation("pages.page", "versions", INSPECT_PANEL),
    "show": CommandLocation("pages.page", "show", INSPECT_PANEL),
    "export": CommandLocation("delivery.export", "export", INSPECT_PANEL),
    "sync": CommandLocation("delivery.export", "sync", INSPECT_PANEL),
    "duplicates": CommandLocation("pages.pages", "duplicates", INSPECT_PANEL),
    "explain": CommandLocation("pages.page", "explain", INSPECT_PANEL),
    "try": CommandLocation("pages.page", "try_page", INSPECT_PANEL),
    "up": CommandLocation("running.stack", "up", RUN_PANEL),
    "down": CommandLocation("running.stack", "down", RUN_PANEL),
    "status": CommandLocation("running.stack", "status", RUN_PANEL),
    "ui": CommandLocation("running.stack", "ui", RUN_PANEL),
    "serve": CommandLocation("running.stack", "serve", RUN_PANEL),
    "mcp": CommandLocation("running.stack", "mcp", RUN_PANEL),
    "tokens": CommandLocation("delivery.access", "app", RUN_PANEL),
    "deploy": CommandLocation("running.service", "deploy", SERVICES_PANEL),
    "server": CommandLocation("running.service", "server", SERVICES_PANEL),
    "worker": CommandLocation("running.service", "worker", SERVICES_PANEL),
    "health": CommandLocation("running.service", "health", SERVICES_PANEL),
    "domains": CommandLocation("domains.domains", "app"),
    "rules": CommandLocation("domains.rules", "app"),
    "feed": CommandLocation("delivery.access", "feed", INSPECT_PANEL),
    "notify": CommandLocation("delivery.notify", "app"),
    "plugins": CommandLocation("running.plugins", "plugins", RUN_PANEL),
    "prune": CommandLocation("running.prune", "prune", RUN_PANEL),
    "db": CommandLocation("running.db", "app", RUN_PANEL),
}


@cache
def load_command(name: str) -> Any:
    """Import and return the command or command group of this name."""
    location, wrapper = COMMAND_LOCATIONS[name], typer.Typer()
    command = getattr(import_module(f"crawler.cli.{location.module}"), location.attribute)
    if isinstance(command, typer.Typer):
        wrapper.add_typer(command, name=name, rich_help_panel=location.panel)
    else:
        wrapper.command(name, rich_help_panel=location.panel)(command)
    return typer.main.get_group(wrapper).commands[name]


class LazyCommands(Mapping[str, Any]):
    """A mapping of all commands by name. Looking up a name imports the command."""

    def __getitem__(self, name: str) -> Any:
        return load_command(name)

    def __iter__(self) -> Iterator[str]:
        return iter(COMMAND_LOCATIONS)

    def __len__(self) -> int:
        return len(COMMAND_LOCATIONS)


class CommandGroup(TyperGroup):
    """The group of all commands."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.commands = LazyCommands()  # type: ignore[assignment]  # Click only reads it


app = typer.Typer(
    cls=CommandGroup,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["--help", "-h"]},
)


def _print_version(is_requested: bool) -> None:  # noqa: FBT001  typer calls it so
    if is_requested:
        typer.echo(f"recrawl {__version__}")
        raise typer.Exit


@app.callback()
def root(
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Log events to stderr.")] = False,
    version: Annotated[  # noqa: ARG001  its callback handles it before any command
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Keep a fresh copy of web domains in Postgres with as few requests as possible.

    Examples:

        recrawl crawl https://docs.example.com
        recrawl report
        recrawl changes --since 7d
        recrawl up

    Without RECRAWL_DATABASE_URL, recrawl stores everything in an embedded Postgres in the folder RECRAWL_HOME. The
    default is the folder .recrawl here or in a parent folder, else ~/.local/share/recrawl. `recrawl status` shows it.
    Exit codes: 0 success, 1 a problem was found, 2 invalid usage, 3 a cursor is too old.
    """
    from crawler.cli import logs

    logs.set_up(level=logging.INFO if verbose else logging.WARNING)
