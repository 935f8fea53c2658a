"""The options that several commands share, each declared once."""

from datetime import datetime
from typing import Annotated

import typer

from crawler.cli import values

MOST = 2**31 - 1
NO_DOMAIN = "No domain is registered: recrawl domains add URL"

At = Annotated[
    datetime | None,
    typer.Option(
        parser=values.instant,
        metavar="INSTANT",
        help="Act as if it were this instant: ISO 8601, UTC unless it says so, not before a domain's last visit.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document on stdout, and nothing else there.")]
Why = Annotated[bool, typer.Option("--why", help="With the figures behind it: beliefs, prices, coins.")]
PageUrl = Annotated[str, typer.Argument(metavar="URL", help="A page of a registered domain.")]

DomainName = Annotated[str, typer.Argument(metavar="DOMAIN", help="A registered name, or any URL of it.")]
DomainOrAll = Annotated[str | None, typer.Argument(metavar="DOMAIN", help="One domain; else all.")]
DomainNames = Annotated[list[str], typer.Argument(metavar="DOMAIN", help="Registered names, or URLs of them.")]
Top = Annotated[int, typer.Option(min=1, max=1_000_000, metavar="N", help="How many.")]
Kinds = Annotated[
    str | None,
    typer.Option(
        metavar="KINDS",
        help="With commas: changed, gone, refused, moved, back, new, site, held-back, let-go, hint; "
        "else all but new, hint.",
    ),
]

Offline = Annotated[bool, typer.Option("--offline", help="Register without asking anybody, not even for an address.")]
