"""recrawl changes."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Annotated

from crawler.cli import values
from crawler.cli.lazy import changes as app
from crawler.cli.lazy import changes_output, kinds
from crawler.cli.options import KINDS_HELP, At, Json, Tag, argument, flag, option
from crawler.cli.session import DONE
from crawler.errors import BadInput


def changes(
    what: Annotated[str | None, argument("DOMAIN|URL", "A domain, a page, or a URL prefix. Default: all.")] = None,
    since: Annotated[
        str | None,
        option(
            "SPAN|DAY|CURSOR", "Only changes since then: a span (7d), a day (yesterday, 2026-11-22) or a cursor (4711)."
        ),
    ] = None,
    kind: Annotated[
        str | None, option("KINDS", f"{KINDS_HELP} Default: all except added and hint; with --json, all.")
    ] = None,
    domain: Annotated[str | None, option("DOMAIN", "Only changes of this domain, like the argument DOMAIN.")] = None,
    tag: Tag = None,
    limit: Annotated[
        int | None, option("N", "Maximum number of changes. Default: 20, or 1000 with --json.", min=1, max=1_000_000)
    ] = None,
    diff: Annotated[bool, flag("--diff", "Show up to 50 changed blocks per change, with more of their text.")] = False,
    follow: Annotated[
        bool, flag("--follow", "Keep running and print changes as they are found, until Ctrl-C.", short="-f")
    ] = False,
    atom: Annotated[bool, flag("--atom", "Print an Atom feed, to be saved to a file.")] = False,
    why: Annotated[
        bool,
        flag(
            "--why",
            "Also show the cursor, the version, the share of the page that changed, and what showed the change.",
        ),
    ] = False,
    at: At = None,
    as_json: Json = False,
) -> int:
    """Show changes, newest first, with the words that changed.

    Removed words are red or [-marked-], new words are green or {+marked+}. Added pages are only counted; --kind added
    lists them.

    --json is for programs that catch up: it starts at --since, or at the first stored change, and lists changes in the
    order in which they were found. Its key `next` is the cursor for the next call. --follow prints in the same order,
    from now on or from --since. With --follow --json, each line is one JSON document; its key `position` is the cursor.

    Exit code 3 if changes after the cursor were already deleted. With --json, the output also says what to do.

    Examples:

        recrawl changes --since 7d
        recrawl changes docs.example.com --since yesterday --kind changed,gone
        recrawl changes https://docs.example.com/guide/ --diff
        recrawl changes --tag news --since yesterday
        recrawl changes --since 4711 --json
        recrawl changes docs.example.com --atom > /srv/www/docs.atom
        recrawl changes --follow --json | while read -r line; do ...; done
    """
    after = values.parse_since(since, now=at or datetime.now(UTC)) if since else None
    if follow and (at is not None or limit is not None):
        raise BadInput("--follow cannot be combined with --at or --limit")
    if atom and (as_json or follow):
        raise BadInput("--atom cannot be combined with --json or --follow")
    if what is not None and domain is not None:
        raise BadInput("two domains are given: use either DOMAIN or --domain")
    if what in values.DAYS_BACK:
        raise BadInput(f"{what} is not a domain; did you mean recrawl changes --since {what}?")
    query = app.ChangesQuery(what, domain, after, kinds.parse_kinds(kind) if kind is not None else None, tag)
    if follow:
        query = replace(query, kinds=query.kinds or (app.ALL_KINDS if as_json else kinds.NEWS))
        return changes_output.follow_changes(query, from_now=since is None, as_json=as_json, diff=diff, why=why)
    if atom:
        changes_output.print_atom_feed(query, top=limit, at=at)
    elif as_json:
        changes_output.print_changes_json(query, top=limit, at=at, diff=diff)
    else:
        changes_output.show_newest(query, top=limit, at=at, diff=diff, why=why)
    return DONE
