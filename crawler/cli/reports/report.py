"""recrawl report: its options and its help."""

from pathlib import Path
from typing import Annotated

import typer

from crawler.cli.lazy import report_output
from crawler.cli.options import At, DomainOrAll, Json, option


def report(
    domain: DomainOrAll = None,
    days: Annotated[float, typer.Option(min=0.01, max=36_500, help="Sum looks and requests up over so long.")] = 30.0,
    html: Annotated[Path | None, option("DIR", "Write it as web pages to a folder.", "--html", file_okay=False)] = None,
    at: At = None,
    as_json: Json = False,
) -> None:
    """Say how fresh the copy is, how true that is, and what keeping it so costs.

    How true: as far as `recrawl audit` has found out, which the running stack asks for every day. With --html, what
    `recrawl serve` shows is written as files that need no server: the domains, the newest changes, and the pages that
    changed, fail or are to worry about.

    Examples:

        recrawl report
        recrawl report docs.example.com --days 7
        recrawl report --json
        recrawl report --html report
    """
    if html is not None:
        report_output.write_as_html(domain, html, at=at, as_json=as_json)
    else:
        report_output.report(domain, days=days, at=at, as_json=as_json)
