"""recrawl duplicates: its options and its help."""

from typing import Annotated

import typer

from crawler.cli.options import Json


def duplicates(
    name: Annotated[
        str | None, typer.Argument(metavar="DOMAIN|URL", help="One domain, or one page of it; else all domains.")
    ] = None,
    bits: Annotated[
        int, typer.Option(min=0, max=3, metavar="N", help="In how many of 64 bits fingerprints may differ; 0: in none.")
    ] = 3,
    most: Annotated[
        int, typer.Option(min=1, max=1_000_000, metavar="N", help="How many groups; with a URL, how many pages.")
    ] = 20,
    as_json: Json = False,
) -> int:
    """List pages whose main texts are nearly the same, in groups around one of them, the largest groups first.

    With a URL that has a path: the pages that are nearly the same as this one. Each page is kept by itself; those whose
    main texts are the same, at three looks and more, share one schedule ("shared"). A page with less than 100 bytes of
    main text is not compared.

    Examples:

        recrawl duplicates docs.example.com
        recrawl duplicates docs.example.com --bits 0 --most 5
        recrawl duplicates https://docs.example.com/guide/install.html
        recrawl duplicates --json
    """
    from crawler.cli.pages import duplicates_output

    return duplicates_output.duplicates(name, bits=bits, most=most, as_json=as_json)
