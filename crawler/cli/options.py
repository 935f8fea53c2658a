"""Helpers that declare options and arguments, and the options that several commands share."""

from datetime import datetime
from typing import Annotated, Any

import typer

from crawler.cli import values

MAX_INT = 2**31 - 1
NO_DOMAIN = "No domain is registered. Run recrawl domains add URL"


def option(metavar: str, help_text: str, *names: str, **kwargs: Any) -> Any:
    """Declare an option with a value.

    metavar: the placeholder of the value in the help.  names: the option's names; by default that of the parameter.
    """
    return typer.Option(*names, metavar=metavar, help=help_text, **kwargs)


def flag(name: str, help_text: str, *, short: str | None = None) -> Any:
    """Declare an option without a value. name: the long form.  short: the short form, such as `-f`."""
    return typer.Option(*filter(None, (name, short)), help=help_text)


def span_option(help_text: str) -> Any:
    """Declare an option for a duration above 0."""
    return option("SPAN", help_text, parser=values.parse_interval_option)


def argument(metavar: str, help_text: str, **kwargs: Any) -> Any:
    """Declare an argument. metavar: its placeholder in the help."""
    return typer.Argument(metavar=metavar, help=help_text, **kwargs)


def time_option(help_text: str) -> Any:
    """Declare an option for a time."""
    return option("TIME", help_text, parser=values.parse_instant)


AT_HELP = "Act as if it were this time: ISO 8601, default time zone UTC. Not before the last visit."
At = Annotated[datetime | None, time_option(AT_HELP)]
Json = Annotated[bool, flag("--json", "Print one JSON document to stdout.")]

PageUrl = Annotated[str, argument("URL", "A page of a registered domain.")]

DomainName = Annotated[str, argument("DOMAIN", "A registered domain, or any URL of it.")]
DomainOrAll = Annotated[str | None, argument("DOMAIN", "One domain. Default: all domains.")]
DomainNames = Annotated[list[str], argument("DOMAIN", "Registered domains, or any URLs of them.")]
Top = Annotated[int, option("N", "Maximum number of rows.", min=1, max=1_000_000)]
KINDS = "added, changed, moved, gone, excluded, restored, template, deferred, resumed, hint, failing, recovered"
KINDS_HELP = (
    f"Kinds of changes, separated by commas: {KINDS}. template: a change of a block that nearly all pages of a site "
    "share; deferred, resumed: pages of a crawler trap; hint: a change signal that no visit has confirmed; failing, "
    "recovered: a page or a domain does not respond, or responds again."
)
Kinds = Annotated[str | None, option("KINDS", f"{KINDS_HELP} Default: all except added and hint.")]

Tag = Annotated[str | None, option("TAG", "Only domains with this tag.")]
Tags = Annotated[list[str] | None, option("TAG", "Give the domains this tag. Can be repeated.", "--tag")]
Offline = Annotated[
    bool, flag("--offline", "Register a new domain without checking it first (no request, no DNS lookup).")
]
