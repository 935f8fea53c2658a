"""recrawl tokens: who may ask the HTTP API."""

from datetime import UTC, datetime, timedelta
from typing import Annotated

import typer

from crawler.cli import values
from crawler.cli.lazy import tokens
from crawler.cli.options import Json, argument, option
from crawler.cli.output import pick, print_found, print_outcome, remark
from crawler.cli.session import settings
from crawler.format.values import format_instant

app = typer.Typer(no_args_is_help=True, help="Let programs ask the HTTP API of recrawl serve, and no more.")

TokenName = Annotated[str, argument("NAME", "Whose it is, such as search or nightly-report.")]


@app.command("add")
def add(
    name: TokenName,
    expires: Annotated[
        timedelta | None, option("SPAN", "Good for so long, such as 30d; else until revoked.", parser=values.interval)
    ] = None,
    as_json: Json = False,
) -> None:
    """Make a token, and print it this once: only a hash of it is kept.

    Examples:

        recrawl tokens add search
        curl -H "Authorization: Bearer $TOKEN" http://127.0.0.1:4280/api/v1/domains
    """
    token = tokens.add_token(settings(), name, expires=expires, at=datetime.now(UTC))
    print_outcome({"name": name, "token": token}, token, as_json=as_json)
    if not as_json:
        remark("It is not shown again. The server is: recrawl serve")


@app.command("list")
def list_all(as_json: Json = False) -> None:
    """List the tokens that were given out.

    Examples:

        recrawl tokens list
    """
    found = tokens.list_tokens(settings())
    rows = (
        {
            "name": each.name,
            "made": format_instant(each.made_at),
            "expires": format_instant(each.expires_at) if each.expires_at else "never",
        }
        for each in found
    )
    document = {"tokens": [pick(each, "name", "made_at", "expires_at") for each in found]}
    print_found(document, rows, empty="No token was given out: recrawl tokens add NAME", as_json=as_json)


@app.command("revoke")
def revoke(name: TokenName, as_json: Json = False) -> None:
    """Let nobody in by a token any more; a server that runs knows at once.

    Examples:

        recrawl tokens revoke search
    """
    tokens.remove_token(settings(), name)
    print_outcome({"revoked": name}, f"Nobody gets in by {name} any more", as_json=as_json)
