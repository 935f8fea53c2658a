"""The list of all commands of `recrawl` and the root command. Each command is imported when it is first used."""

import logging
import re
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from inspect import cleandoc
from typing import Annotated, Any, NamedTuple

import typer
from typer.core import TyperGroup

from crawler import __version__


class CommandLocation(NamedTuple):
    """The module of a command below crawler.cli, its name there, and the help panel that lists it."""

    module: str
    attribute: str
    panel: str | None = None


HELP_OPTIONS = ["--help", "-h"]
MIN_ABSURD = 1000  # the help does not show ranges that end here or above
READ_PANEL, EXPORT_PANEL, RUN_PANEL, MAINTAIN_PANEL = "Read", "Export", "Run", "Maintain"
SERVICES_PANEL = "Run in containers and as services"
COMMAND_LOCATIONS = {
    "crawl": CommandLocation("crawling.crawl", "crawl"),
    "refresh": CommandLocation("crawling.refresh", "refresh"),
    "hint": CommandLocation("crawling.refresh", "hint"),
    "pages": CommandLocation("pages.pages", "pages", READ_PANEL),
    "report": CommandLocation("reports.reports", "report", READ_PANEL),
    "traffic": CommandLocation("reports.reports", "traffic", READ_PANEL),
    "plan": CommandLocation("reports.reports", "plan", READ_PANEL),
    "audit": CommandLocation("reports.reports", "audit", READ_PANEL),
    "changes": CommandLocation("reports.changes", "changes", READ_PANEL),
    "diff": CommandLocation("pages.page", "diff", READ_PANEL),
    "versions": CommandLocation("pages.page", "versions", READ_PANEL),
    "show": CommandLocation("pages.page", "show", READ_PANEL),
    "export": CommandLocation("delivery.export", "export", EXPORT_PANEL),
    "sync": CommandLocation("delivery.export", "sync", EXPORT_PANEL),
    "duplicates": CommandLocation("pages.pages", "duplicates", READ_PANEL),
    "explain": CommandLocation("pages.page", "explain", READ_PANEL),
    "try": CommandLocation("pages.page", "try_page", READ_PANEL),
    "up": CommandLocation("running.stack", "up", RUN_PANEL),
    "down": CommandLocation("running.stack", "down", RUN_PANEL),
    "status": CommandLocation("running.stack", "status", RUN_PANEL),
    "ui": CommandLocation("running.stack", "ui", RUN_PANEL),
    "serve": CommandLocation("running.stack", "serve", RUN_PANEL),
    "mcp": CommandLocation("running.stack", "mcp", RUN_PANEL),
    "tokens": CommandLocation("delivery.access", "app", MAINTAIN_PANEL),
    "deploy": CommandLocation("running.service", "deploy", SERVICES_PANEL),
    "server": CommandLocation("running.service", "server", SERVICES_PANEL),
    "worker": CommandLocation("running.service", "worker", SERVICES_PANEL),
    "health": CommandLocation("running.service", "health", SERVICES_PANEL),
    "domains": CommandLocation("domains.domains", "app"),
    "rules": CommandLocation("domains.rules", "app"),
    "feed": CommandLocation("delivery.access", "feed", EXPORT_PANEL),
    "notify": CommandLocation("delivery.notify", "app"),
    "plugins": CommandLocation("running.plugins", "plugins", MAINTAIN_PANEL),
    "prune": CommandLocation("running.prune", "prune", MAINTAIN_PANEL),
    "db": CommandLocation("running.db", "app", MAINTAIN_PANEL),
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
    loaded = typer.main.get_group(wrapper).commands[name]
    _tidy_help(loaded)
    return loaded


def _tidy_help(command: Any) -> None:
    """Prepare the help of a command and its subcommands.

    Join the lines of each paragraph that is not indented, and escape what looks like Rich markup.
    """
    paragraphs = cleandoc(command.help or "").split("\n\n")
    joined = "\n\n".join(text if text.startswith((" ", "\b")) else text.replace("\n", " ") for text in paragraphs)
    command.help = re.sub(r"(?<!\\)\[(?=[a-z#/@])", r"\\[", joined) or None
    _tidy_options(command, typer.Context(command, help_option_names=HELP_OPTIONS))
    for subcommand in getattr(command, "commands", {}).values():
        _tidy_help(subcommand)


def _tidy_options(command: Any, context: typer.Context) -> None:
    """Hide the types of flags and arguments, and ranges that only exclude absurd values."""
    for parameter in command.get_params(context):
        if parameter.param_type_name == "argument" or parameter.is_flag:
            parameter.display_type_rich = lambda ctx: ""  # noqa: ARG005  Typer passes it by name
        if parameter.max is None or parameter.max >= MIN_ABSURD:
            parameter._get_number_range_help_str = lambda: None  # noqa: SLF001  Typer has no option for this


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
        _tidy_help(self)
        self.commands = LazyCommands()  # type: ignore[assignment]  # Click only reads it

    def format_help(self, ctx: Any, formatter: Any) -> None:
        _tidy_options(self, ctx)  # those for completion are added later than __init__
        super().format_help(ctx, formatter)


app = typer.Typer(
    cls=CommandGroup,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": HELP_OPTIONS},
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

    Without RECRAWL_DATABASE_URL, recrawl stores everything in an embedded Postgres in the folder RECRAWL_HOME.
    RECRAWL_HOME defaults to the folder .recrawl here or in a parent folder, otherwise to ~/.local/share/recrawl.
    `recrawl status` shows it.

    Exit codes: 0 success, 1 a problem was found, 2 invalid usage, 3 the cursor is too old, 130 interrupted.
    """
    from crawler.cli import logs

    logs.set_up(level=logging.INFO if verbose else logging.WARNING)
