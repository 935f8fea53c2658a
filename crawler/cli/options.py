"""How options and arguments are declared, each with its help text, and those that several commands share."""

from datetime import datetime
from typing import Annotated, Any

import typer

from crawler.cli import values

MOST = 2**31 - 1
NO_DOMAIN = "No domain is registered: recrawl domains add URL"


def option(metavar: str, meaning: str, *names: str, **given: Any) -> Any:
    """Declare an option with a value. metavar: what stands for the value in the help text.  given: as typer has it.

    names: where there are none, the name of the parameter counts.
    """
    return typer.Option(*names, metavar=metavar, help=meaning, **given)


def flag(name: str, meaning: str, *, short: str | None = None) -> Any:
    """Declare an option without a value, as `--name` and, where there is one, as `-n`."""
    return typer.Option(*filter(None, (name, short)), help=meaning)


def argument(metavar: str, meaning: str, **given: Any) -> Any:
    """Declare an argument. metavar: what stands for it in the help text.  given: as typer has it."""
    return typer.Argument(metavar=metavar, help=meaning, **given)


At = Annotated[
    datetime | None,
    option(
        "INSTANT",
        "Act as if it were this instant: ISO 8601, UTC unless it says so, not before a domain's last visit.",
        parser=values.instant,
    ),
]
Json = Annotated[bool, flag("--json", "Print one JSON document on stdout, and nothing else there.")]
Why = Annotated[bool, flag("--why", "With the figures behind it: beliefs, prices, coins.")]
PageUrl = Annotated[str, argument("URL", "A page of a registered domain.")]

DomainName = Annotated[str, argument("DOMAIN", "A registered name, or any URL of it.")]
DomainOrAll = Annotated[str | None, argument("DOMAIN", "One domain; else all.")]
DomainNames = Annotated[list[str], argument("DOMAIN", "Registered names, or URLs of them.")]
Top = Annotated[int, option("N", "How many.", min=1, max=1_000_000)]
Kinds = Annotated[
    str | None,
    option(
        "KINDS",
        "With commas: changed, gone, refused, moved, back, new, site, held-back, let-go, hint; else all but new, hint.",
    ),
]

Offline = Annotated[bool, flag("--offline", "Register without asking anybody, not even for an address.")]
