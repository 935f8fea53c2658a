"""How options and arguments are declared, each with its help text, and those that several commands share."""

from datetime import datetime
from typing import Annotated, Any

import typer

from crawler.cli import values

MAX_INT = 2**31 - 1
NO_DOMAIN = "No domain is registered: recrawl domains add URL"


def declare_option(metavar: str, help_text: str, *names: str, **kwargs: Any) -> Any:
    """Declare an option with a value. metavar: what stands for the value in the help text.  given: as typer has it.

    names: where there are none, the name of the parameter counts.
    """
    return typer.Option(*names, metavar=metavar, help=help_text, **kwargs)


def declare_flag(name: str, help_text: str, *, short: str | None = None) -> Any:
    """Declare an option without a value, as `--name` and, where there is one, as `-n`."""
    return typer.Option(*filter(None, (name, short)), help=help_text)


def declare_argument(metavar: str, help_text: str, **kwargs: Any) -> Any:
    """Declare an argument. metavar: what stands for it in the help text.  given: as typer has it."""
    return typer.Argument(metavar=metavar, help=help_text, **kwargs)


At = Annotated[
    datetime | None,
    declare_option(
        "INSTANT",
        "Act as if it were this instant: ISO 8601, UTC unless it says so, not before a domain's last visit.",
        parser=values.parse_instant,
    ),
]
Json = Annotated[bool, declare_flag("--json", "Print one JSON document on stdout, and nothing else there.")]
Why = Annotated[bool, declare_flag("--why", "With the figures behind it: beliefs, prices, coins.")]
PageUrl = Annotated[str, declare_argument("URL", "A page of a registered domain.")]

DomainName = Annotated[str, declare_argument("DOMAIN", "A registered name, or any URL of it.")]
DomainOrAll = Annotated[str | None, declare_argument("DOMAIN", "One domain; else all.")]
DomainNames = Annotated[list[str], declare_argument("DOMAIN", "Registered names, or URLs of them.")]
Top = Annotated[int, declare_option("N", "How many.", min=1, max=1_000_000)]
Kinds = Annotated[
    str | None,
    declare_option(
        "KINDS",
        "With commas: added, changed, moved, gone, excluded, restored, template, deferred, resumed, hint; "
        "without it all but added and hint.",
    ),
]

Offline = Annotated[bool, declare_flag("--offline", "Register without asking anybody, not even for an address.")]
