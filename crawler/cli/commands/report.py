"""recrawl report: its options and its help."""

from typing import Annotated

import typer

from crawler.cli.options import At, Json


def report(
    domain: Annotated[str | None, typer.Argument(metavar="DOMAIN", help="One domain; else all.")] = None,
    days: Annotated[float, typer.Option(min=0.01, max=36_500, help="Sum looks and requests up over so long.")] = 30.0,
    at: At = None,
    as_json: Json = False,
) -> int:
    """Say how fresh the copy is, how true that is, and what keeping it so costs.

    How true: as far as `recrawl audit` has found out, which the running stack asks for every day.

    Examples:

        recrawl report
        recrawl report docs.example.com --days 7
        recrawl report --json
    """
    from crawler.cli.actions import report

    return report.report(domain, days=days, at=at, as_json=as_json)
