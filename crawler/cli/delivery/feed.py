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
            help="With commas: changed, gone, refused, moved, back, new, site, held-back, let-go, hint; "
            "else all but new, hint.",
        ),
    ] = None,
    name: Annotated[
        str | None, typer.Option(metavar="NAME", help="Whose it is, such as phone; else it is called as the feed is.")
    ] = None,
    list_all: Annotated[bool, typer.Option("--list", help="List the addresses that were given out.")] = False,
    revoke: Annotated[
        str | None, typer.Option(metavar="NAME", help="Let nobody in any more by the address of that name.")
    ] = None,
    revoke_all: Annotated[bool, typer.Option("--revoke-all", help="Let nobody in any more by any of them.")] = False,
    as_json: Json = False,
) -> int:
    """Print the address of an Atom feed of changes, for a feed reader on this machine; `recrawl serve` answers it.

    The address lets whoever has it read that feed, and nothing else. Each has a name, and can be revoked by it; asked
    for again it is the same. Those that the pages link to go by the name `pages` together. For a file that can be put
    anywhere there is `recrawl changes --atom`.

    Examples:

        recrawl feed
        recrawl feed docs.example.com --kind new,gone
        recrawl feed https://docs.example.com/guide/
        recrawl feed docs.example.com --name phone
        recrawl feed --list
        recrawl feed --revoke phone
    """
    from crawler.cli.delivery import feed_output

    if list_all + (revoke is not None) + revoke_all > (what is None and kind is None and name is None):
        raise BadInput("--list, --revoke and --revoke-all go alone")
    if list_all:
        return feed_output.list_all(as_json=as_json)
    if revoke is not None:
        return feed_output.revoke(revoke, as_json=as_json)
    return (
        feed_output.revoke_all(as_json=as_json)
        if revoke_all
        else feed_output.feed(what, kinds=kind, name=name, as_json=as_json)
    )
