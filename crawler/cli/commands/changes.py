"""recrawl changes: its options and its help."""

from datetime import UTC, datetime
from typing import Annotated

import typer

from crawler.cli import values
from crawler.cli.options import At, Json, Top


def changes(
    since: Annotated[
        str | None,
        typer.Option(
            metavar="CURSOR|SPAN|DAY",
            help="After this cursor, in the last 30m, 12h or 7d, since yesterday or 2026-11-22.",
        ),
    ] = None,
    domain: Annotated[str | None, typer.Option(metavar="DOMAIN", help="Of one domain only.")] = None,
    top: Top = 1000,
    diff: Annotated[bool, typer.Option("--diff", help="With the blocks that went and came, the first 50.")] = False,
    at: At = None,
    as_json: Json = False,
) -> int:
    """List what changed, in the order in which it was found, with the cursor from which to go on.

    Of each change it is told what of the page it was: text, link, image, title or meta. What a site changed on all its
    pages alike is one change of the kind boilerplate, and none of any page.

    Examples:

        recrawl changes --since 7d
        recrawl changes --since yesterday --diff
        recrawl changes --since 4711 --json
    """
    from crawler.cli.actions import changes

    after = values.since(since, now=at or datetime.now(UTC)) if since else 0
    return changes.changes(since=after, domain=domain, top=top, diff=diff, at=at, as_json=as_json)
