"""recrawl tokens: their options and their help."""

from datetime import timedelta
from typing import Annotated

import typer

from crawler.cli import values
from crawler.cli.options import Json

app = typer.Typer(no_args_is_help=True, help="Let programs ask the HTTP API of recrawl serve, and no more.")

TokenName = Annotated[str, typer.Argument(metavar="NAME", help="Whose it is, such as search or nightly-report.")]


@app.command("add")
def add(
    name: TokenName,
    expires: Annotated[
        timedelta | None,
        typer.Option(parser=values.interval, metavar="SPAN", help="Good for so long, such as 30d; else until revoked."),
    ] = None,
    as_json: Json = False,
) -> int:
    """Make a token, and print it this once: only a hash of it is kept.

    Examples:

        recrawl tokens add search
        curl -H "Authorization: Bearer $TOKEN" http://127.0.0.1:4280/api/v1/domains
    """
    from crawler.cli.delivery import tokens_output

    return tokens_output.add(name, expires=expires, as_json=as_json)


@app.command("list")
def list_all(as_json: Json = False) -> int:
    """List the tokens that were given out.

    Examples:

        recrawl tokens list
    """
    from crawler.cli.delivery import tokens_output

    return tokens_output.list_all(as_json=as_json)


@app.command("revoke")
def revoke(name: TokenName, as_json: Json = False) -> int:
    """Let nobody in by a token any more; a server that runs knows at once.

    Examples:

        recrawl tokens revoke search
    """
    from crawler.cli.delivery import tokens_output

    return tokens_output.revoke(name, as_json=as_json)
