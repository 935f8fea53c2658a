"""recrawl pages: its options and its help."""

from datetime import datetime
from typing import Annotated

import typer

from crawler.cli import values
from crawler.cli.options import Json, Top, Why


def pages(
    domain: Annotated[str | None, typer.Argument(metavar="DOMAIN", help="A registered name, or any URL of it.")] = None,
    state: Annotated[
        str | None,
        typer.Option(metavar="STATE", help="Only these: new, known, gone, dead_link, moved, refused, failed."),
    ] = None,
    top: Top = 20,
    why: Why = False,
    at: Annotated[
        datetime | None,
        typer.Option(
            parser=values.instant,
            metavar="INSTANT",
            help="The site as it was at this instant; after the last visit: as if it were then. ISO 8601, else UTC.",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """List a domain's pages, the most important first; with --at the site as it was.

    Of all domains with --state: failed are pages of which the newest look brought no good answer.

    Examples:

        recrawl pages docs.example.com
        recrawl pages docs.example.com --at 2026-11-22 --top 1000
        recrawl pages --state failed
        recrawl pages docs.example.com --top 1000 --json
    """
    from crawler.cli.pages import pages_output

    pages_output.pages(domain, state=state, top=top, why=why, at=at, as_json=as_json)
