"""recrawl changes: its options and its help."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Annotated

from crawler.cli import values
from crawler.cli.lazy import changes as app
from crawler.cli.lazy import changes_output, kinds
from crawler.cli.options import At, Json, Why, declare_argument, declare_flag, declare_option
from crawler.cli.session import DONE
from crawler.errors import BadInput


def changes(
    what: Annotated[str | None, declare_argument("DOMAIN|URL", "A domain, a page, or what pages lie beneath.")] = None,
    since: Annotated[
        str | None,
        declare_option(
            "SPAN|DAY|CURSOR", "In the last 30m, 12h or 7d, since yesterday or 2026-11-22, or after a cursor."
        ),
    ] = None,
    kind: Annotated[
        str | None,
        declare_option(
            "KINDS",
            "With commas: added, changed, moved, gone, excluded, restored, template, deferred, resumed, hint.",
        ),
    ] = None,
    domain: Annotated[str | None, declare_option("DOMAIN", "Of one domain only.")] = None,
    limit: Annotated[int | None, declare_option("N", "How many: 20, with --json 1000.", min=1, max=1_000_000)] = None,
    diff: Annotated[
        bool, declare_flag("--diff", "With all blocks that changed (of each page the first 50), and more of each.")
    ] = False,
    follow: Annotated[
        bool, declare_flag("--follow", "Go on: show what is found as it is found, until Ctrl-C.", short="-f")
    ] = False,
    atom: Annotated[bool, declare_flag("--atom", "As an Atom feed, for a file for feed readers.")] = False,
    why: Why = False,
    at: At = None,
    as_json: Json = False,
) -> int:
    """Show what changed, the newest first, with the words that differ.

    What went stands in red or as [-old-], what came in green or as {+new+}. Pages that were seen for the first time are
    counted, and listed with --kind added. What a site changed on all its pages alike is one change of kind template.
    With --json all kinds come in the order in which they were found, with the cursor from which to go on. With --follow
    changes come in that order, from now or from --since on; with --json each is a line, and its position the cursor.
    Exit code 3, and with --json a document with the remedy, where changes after the cursor are not kept any more.

    Examples:

        recrawl changes --since 7d
        recrawl changes docs.example.com --since yesterday --kind changed,gone
        recrawl changes https://docs.example.com/guide/ --diff
        recrawl changes --since 4711 --json
        recrawl changes docs.example.com --atom > /srv/www/docs.atom
        recrawl changes --follow --json | while read -r line; do ...; done
    """
    after = values.parse_since(since, now=at or datetime.now(UTC)) if since else None
    if follow and (at is not None or limit is not None):
        raise BadInput("--follow has no end, and goes by the time that it is: neither --at nor --limit")
    if atom and (as_json or follow):
        raise BadInput("--atom is a form of its own: neither --json nor --follow")
    if what is not None and domain is not None:
        raise BadInput("a domain is named twice: once is enough")
    if what in values.DAYS_BACK:
        raise BadInput(f"{what} is no domain: recrawl changes --since {what}")
    query = app.ChangesQuery(what, domain, after, kinds.parse_kinds(kind) if kind is not None else None)
    if follow:
        query = replace(query, kinds=query.kinds or (app.ALL_KINDS if as_json else kinds.NEWS))
        return changes_output.follow_changes(query, from_now=since is None, as_json=as_json, diff=diff, why=why)
    if atom:
        changes_output.print_atom_feed(query, top=limit, at=at)
    elif as_json:
        changes_output.print_changes_json(query, top=limit, at=at, diff=diff)
    else:
        changes_output.show_newest_changes(query, top=limit, at=at, diff=diff, why=why)
    return DONE
