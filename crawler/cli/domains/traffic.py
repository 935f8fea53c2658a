"""recrawl traffic: its options and its help."""

from typing import Annotated

import typer

from crawler.cli.options import At, Json


def traffic(
    domain: Annotated[str | None, typer.Argument(metavar="DOMAIN", help="One domain; else all.")] = None,
    hours: Annotated[int, typer.Option(min=1, max=10_000, metavar="N", help="Whole hours before this one.")] = 24,
    at: At = None,
    as_json: Json = False,
) -> int:
    """Show by the hour what was asked of domains, what came, and how long answers took; and which hour is off.

    Off is what is far from the domain's own usual of two weeks: errors that chance does not explain, or answers that
    take twice as long and longer than they ever vary. The running stack looks every hour, says so in the log of its
    plan and emits the event recrawl.traffic.off.

    Examples:

        recrawl traffic docs.example.com
        recrawl traffic docs.example.com --hours 168
        recrawl traffic --json
    """
    from crawler.cli.domains import traffic_output

    return traffic_output.traffic(domain, hours=hours, at=at, as_json=as_json)
