"""recrawl explain: its options and its help."""

from typing import Annotated

import typer

from crawler.cli.options import At, Json


def explain(
    url: Annotated[str, typer.Argument(metavar="URL", help="Any URL, tracked or not.")],
    at: At = None,
    as_json: Json = False,
) -> int:
    """Say everything about one URL: what it is worth, when it is due and why; or why it is not crawled.

    Examples:

        recrawl explain https://docs.example.com/guide/install.html
    """
    from crawler.cli.actions import explain

    return explain.explain(url, at=at, as_json=as_json)
