"""The list of all commands of `recrawl` and the root command. Each command is imported when it is first used."""

import logging
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from importlib import import_module
from inspect import cleandoc
from types import SimpleNamespace
from typing import Annotated, Any, NamedTuple

import typer
from typer.core import TyperCommand, TyperGroup

from crawler import __version__


class CommandLocation(NamedTuple):
    """The module of a command below crawler.cli, and the help panel that lists it."""

    module: str
    panel: str | None


HELP_OPTIONS = ["--help", "-h"]
MIN_HIDDEN_MAX = 1000  # the help does not show ranges that end here or above, or have no upper limit
READ, EXPORT, RUN, MAINTAIN = "Read", "Export", "Run", "Maintain"
SERVICES = "Run in containers and as services"
# The commands in the order in which --help lists them.
_ROWS = (
    ("crawling.crawl", None, "crawl"),
    ("crawling.refresh", None, "refresh hint"),
    ("pages.pages", READ, "pages"),
    ("reports.reports", READ, "report traffic plan audit"),
    ("reports.changes", READ, "changes"),
    ("pages.page", READ, "diff versions show values"),
    ("delivery.export", EXPORT, "export sync"),
    ("pages.pages", READ, "duplicates"),
    ("pages.page", READ, "explain try"),
    ("running.stack", RUN, "up down status ui serve mcp"),
    ("delivery.access", MAINTAIN, "tokens"),
    ("delivery.users", MAINTAIN, "users actions"),
    ("running.service", SERVICES, "deploy server worker health"),
    ("domains.domains", None, "domains"),
    ("domains.rules", None, "rules"),
    ("domains.tags", None, "tags"),
    ("delivery.access", EXPORT, "feed"),
    ("delivery.notify", None, "notify"),
    ("running.plugins", MAINTAIN, "plugins"),
    ("running.prune", MAINTAIN, "prune"),
    ("running.db", MAINTAIN, "db"),
)
COMMAND_LOCATIONS = {name: CommandLocation(module, panel) for module, panel, names in _ROWS for name in names.split()}
# Names in the modules that differ from the command's name: groups are called `app`, and `try` is a Python keyword.
ATTRIBUTES = dict.fromkeys(("tokens", "users", "domains", "rules", "tags", "notify", "db"), "app") | {
    "try": "try_page",
    "values": "page_values",
}
# Typer imports these classes to show help and never uses them: no help is Markdown. They take a third of its time.
UNUSED_CLASSES = {"rich.markdown": "Markdown", "rich.traceback": "Traceback"}


@cache
def load_command(name: str) -> Any:
    """Import and return the command or command group of this name."""
    location, wrapper, command = COMMAND_LOCATIONS[name], typer.Typer(), _import_command(name)
    if isinstance(command, typer.Typer):
        wrapper.add_typer(command, name=name, rich_help_panel=location.panel)
    else:
        wrapper.command(name, rich_help_panel=location.panel)(command)
    loaded = typer.main.get_group(wrapper).commands[name]
    _tidy_help(loaded)
    return loaded


def summarize_command(name: str) -> Any:
    """Return a command that has only what the list of all commands shows: its name, panel and help."""
    command = _import_command(name)
    text = command.info.help if isinstance(command, typer.Typer) else command.__doc__
    return TyperCommand(name, help=_tidy_text(text), rich_help_panel=COMMAND_LOCATIONS[name].panel)


def _import_command(name: str) -> Any:
    """Import the module of a command; return its function, or the app of a command group."""
    module = import_module(f"crawler.cli.{COMMAND_LOCATIONS[name].module}")
    return getattr(module, ATTRIBUTES.get(name, name))


def _tidy_text(text: str | None) -> str | None:
    """Join the lines of unindented paragraphs, and escape Rich markup."""
    paragraphs = cleandoc(text or "").split("\n\n")
    joined = "\n\n".join(text if text.startswith((" ", "\b")) else text.replace("\n", " ") for text in paragraphs)
    return re.sub(r"(?<!\\)\[(?=[a-z#/@])", r"\\[", joined) or None


def _tidy_help(command: Any) -> None:
    """Prepare the help of a command and its subcommands."""
    command.help = _tidy_text(command.help)
    _tidy_options(command, typer.Context(command, help_option_names=HELP_OPTIONS))
    for subcommand in getattr(command, "commands", {}).values():
        _tidy_help(subcommand)


def _tidy_options(command: Any, context: typer.Context) -> None:
    """Hide the types of flags and arguments, and ranges without an upper limit below MIN_HIDDEN_MAX."""
    for parameter in command.get_params(context):
        if parameter.param_type_name == "argument" or parameter.is_flag:
            parameter.display_type_rich = lambda ctx: ""  # noqa: ARG005  Typer passes it by name
        if parameter.max is None or parameter.max >= MIN_HIDDEN_MAX:
            parameter._get_number_range_help_str = lambda: None  # noqa: SLF001  Typer has no option for this


class LazyCommands(Mapping[str, Any]):
    """A mapping of all commands by name. Looking up a name imports the command. load: builds it."""

    def __init__(self, load: Callable[[str], Any]) -> None:
        self._load = load

    def __getitem__(self, name: str) -> Any:
        return self._load(name)

    def __iter__(self) -> Iterator[str]:
        return iter(COMMAND_LOCATIONS)

    def __len__(self) -> int:
        return len(COMMAND_LOCATIONS)


class CommandGroup(TyperGroup):
    """The group of all commands."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        _tidy_help(self)
        self.commands = LazyCommands(load_command)  # type: ignore[assignment]  # Click only reads it

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002  Click passes it; Typer would load each command
        return list(COMMAND_LOCATIONS)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        _tidy_options(self, ctx)  # Typer adds the completion options after __init__
        self.commands = LazyCommands(summarize_command)  # type: ignore[assignment]
        _import_help_formatter()
        super().format_help(ctx, formatter)


def _import_help_formatter() -> None:
    """Import typer.rich_utils without the modules of UNUSED_CLASSES."""
    absent = {
        name: SimpleNamespace(**{part: object}) for name, part in UNUSED_CLASSES.items() if name not in sys.modules
    }
    sys.modules.update(absent)  # type: ignore[arg-type]  # a namespace is enough
    import_module("typer.rich_utils")
    for name in absent:
        del sys.modules[name]


HELP = {"help_option_names": HELP_OPTIONS}
app = typer.Typer(cls=CommandGroup, no_args_is_help=True, pretty_exceptions_enable=False, context_settings=HELP)


def _print_version(is_requested: bool) -> None:  # noqa: FBT001  typer calls it so
    if is_requested:
        from crawler.cli.lazy import page_reader

        typer.echo(f"recrawl {__version__}\npage reader: {page_reader.describe_page_reader()}")
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
    `recrawl status` shows the folder in use.

    Exit codes: 0 success, 1 a problem was found, 2 invalid usage, 3 the cursor is too old, 130 interrupted.
    """
    from crawler.cli import logs

    logs.set_up(level=logging.INFO if verbose else logging.WARNING)
