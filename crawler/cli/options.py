"""Helpers that declare options and arguments, and the options that several commands share."""

from datetime import datetime
from typing import Annotated, Any

import typer

from crawler.cli import values

MAX_INT = 2**31 - 1
NO_DOMAIN = "No domain is registered: recrawl domains add URL"


def declare_option(metavar: str, help_text: str, *names: str, **kwargs: Any) -> Any:
    """Declare an option with a value.

    metavar: the placeholder of the value in the help.  names: the option's names; by default the parameter's name.
    """
    return typer.Option(*names, metavar=metavar, help=help_text, **kwargs)


def declare_flag(name: str, help_text: str, *, short: str | None = None) -> Any:
    """Declare an option without a value. name: the long form.  short: the short form, such as `-f`."""
    return typer.Option(*filter(None, (name, short)), help=help_text)


def declare_argument(metavar: str, help_text: str, **kwargs: Any) -> Any:
    """Declare an argument. metavar: its placeholder in the help."""
    return typer.Argument(metavar=metavar, help=help_text, **kwargs)


At = Annotated[
    datetime | None,
    declare_option(
        "TIME",
        "Act as if it were this time: ISO 8601, default time zone UTC. Must not be earlier than the last visit.",
        parser=values.parse_instant,
    ),
]
Json = Annotated[bool, declare_flag("--json", "Print one JSON document to stdout.")]
Why = Annotated[
    bool,
    declare_flag(
        "--why", "Also show the numbers behind each result, such as change rate, value of a visit and importance."
    ),
]
PageUrl = Annotated[str, declare_argument("URL", "A page of a registered domain.")]

DomainName = Annotated[str, declare_argument("DOMAIN", "A registered domain, or any URL of it.")]
DomainOrAll = Annotated[str | None, declare_argument("DOMAIN", "One domain. Default: all domains.")]
DomainNames = Annotated[list[str], declare_argument("DOMAIN", "Registered domains, or any URLs of them.")]
Top = Annotated[int, declare_option("N", "Maximum number of rows.", min=1, max=1_000_000)]
Kinds = Annotated[
    str | None,
    declare_option(
        "KINDS",
        "Kinds of changes, separated by commas: added, changed, moved, gone, excluded, restored, template, deferred, "
        "resumed, hint. Default: all except added and hint.",
    ),
]

Offline = Annotated[bool, declare_flag("--offline", "Register without any network request, including DNS.")]
