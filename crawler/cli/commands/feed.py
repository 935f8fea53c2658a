"""recrawl feed: its options and its help."""

from typing import Annotated

import typer

from crawler.cli.options import Json
from crawler.errors import BadInput


def feed(
    what: Annotated[
        str | None, typer.Argument(metavar="DOMAIN|URL", help="A domain, or what its pages' URLs begin with; else all.")
    ] = None,
    kind: Annotated[
        str | None,
        typer.Option(
            metavar="KINDS",
            help="Of changed, gone, moved, back, new, site, held-back, let-go, with commas between; all but new.",
        ),
    ] = None,
    revoke: Annotated[
        bool, typer.Option("--revoke", help="Let nobody in any more by an address that was made before.")
    ] = False,
    as_json: Json = False,
) -> int:
    """Print the address of an Atom feed of changes, for a feed reader on this machine; `recrawl serve` answers it.

    The address lets whoever has it read that feed, and nothing else. For a file that can be put anywhere there is
    `recrawl changes --atom`.

    Examples:

        recrawl feed
        recrawl feed docs.example.com --kind new,gone
        recrawl feed https://docs.example.com/guide/
        recrawl feed --revoke
    """
    from crawler.cli.actions import feed as action

    if revoke and (what is not None or kind is not None):
        raise BadInput("--revoke ends all addresses, and goes alone")
    return action.revoke(as_json=as_json) if revoke else action.feed(what, kinds=kind, as_json=as_json)
