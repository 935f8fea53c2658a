"""recrawl plan: its options and its help."""

from typing import Annotated

import typer

from crawler.cli.exits import DONE
from crawler.cli.lazy import plan_output
from crawler.cli.options import At, Json, argument, option


def plan(
    domain: Annotated[str | None, argument("DOMAIN", "What this one may expect; else plan.")] = None,
    only: Annotated[
        str | None, option("DOMAIN", "Plan for one domain as if there were no other, such as one of another time.")
    ] = None,
    at: At = None,
    as_json: Json = False,
) -> int:
    """Spread the looks of all domains anew by their budgets; or say what more and fewer requests would buy in one.

    Without a DOMAIN it sets what a request must be worth from now on, and so when pages are due, as a running stack
    does every hour. With a DOMAIN nothing is changed: freshness and age are shown for a tenth to ten times today's
    budget, of which robots.txt and audits take their part and the rest are requests for pages.

    Examples:

        recrawl plan
        recrawl plan docs.example.com
        recrawl plan docs.example.com --json
        recrawl plan --only docs.example.com --at 2027-01-31
    """
    if domain is not None and only is not None:
        raise typer.BadParameter("give a domain to look at or --only to plan for one, not both")
    if domain is not None:
        return plan_output.plan_one(domain, at=at, as_json=as_json)
    plan_output.plan(only=only, at=at, as_json=as_json)
    return DONE
