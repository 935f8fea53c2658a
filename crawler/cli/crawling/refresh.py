"""recrawl refresh: its options and its help."""

from typing import Annotated

import typer

from crawler.cli.options import At, DomainName, Json


def refresh(
    domain: DomainName,
    prefix: Annotated[
        str | None, typer.Option(metavar="URL", help="Only pages whose URL begins so; a path will do.")
    ] = None,
    at: At = None,
    as_json: Json = False,
) -> int:
    """Make every page of a domain due now, or the page that a URL names. A running stack begins at once, else the
    next crawl does.

    Examples:

        recrawl refresh docs.example.com
        recrawl refresh docs.example.com --prefix /guide/
        recrawl refresh https://docs.example.com/guide/intro
    """
    from crawler.cli.crawling import refresh_output

    return refresh_output.refresh(domain, prefix=prefix or "", at=at, as_json=as_json)
