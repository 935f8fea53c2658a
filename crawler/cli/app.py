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
    """The module of a command below crawler.cli, and the help panel that lists it."""

    module: str
    panel: str | None


INSPECT, RUN, SERVICES = "Inspect", "Run", "Run in containers and as services"
# The commands in the order in which --help lists them.
_ROWS = (
    ("crawling.crawl", None, "crawl"),
    ("crawling.refresh", None, "refresh hint"),
    ("pages.pages", INSPECT, "pages"),
    ("reports.reports", INSPECT, "report traffic plan audit"),
    ("reports.changes", INSPECT, "changes"),
    ("pages.page", INSPECT, "diff versions show"),
    ("delivery.export", INSPECT, "export sync"),
    ("pages.pages", INSPECT, "duplicates"),
    ("pages.page", INSPECT, "explain try"),
    ("running.stack", RUN, "up down status ui serve mcp"),
    ("delivery.access", RUN, "tokens"),
    ("running.service", SERVICES, "deploy server worker health"),
    ("domains.domains", None, "domains"),
    ("domains.rules", None, "rules"),
    ("delivery.access", INSPECT, "feed"),
    ("delivery.notify", None, "notify"),
    ("running.plugins", RUN, "plugins"),
    ("running.prune", RUN, "prune"),
    ("running.db", RUN, "db"),
)
COMMAND_LOCATIONS = {name: CommandLocation(module, panel) for module, panel, names in _ROWS for name in names.split()}
# The names in the modules, where they differ from the command: groups of commands, and a keyword of Python.
ATTRIBUTES = dict.fromkeys(("tokens", "domains", "rules", "notify", "db"), "app") | {"try": "try_page"}


@cache
def load_command(name: str) -> Any:
    """Import and return the command or command group of this name."""
    location, wrapper = COMMAND_LOCATIONS[name], typer.Typer()
    command = getattr(import_module(f"crawler.cli.{location.module}"), ATTRIBUTES.get(name, name))
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


HELP = {"help_option_names": ["--help", "-h"]}
app = typer.Typer(cls=CommandGroup, no_args_is_help=True, pretty_exceptions_enable=False, context_settings=HELP)


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
