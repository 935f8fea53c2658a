"""recrawl prune: its options and its help."""

from typing import Annotated

import typer

from crawler.cli.options import DomainOrAll, Json


def prune(
    domain: DomainOrAll = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would go, and change nothing.")] = False,
    give_back: Annotated[
        bool,
        typer.Option(
            "--give-back", help="Give the room to the system, not to what comes: tables are written anew, which waits."
        ),
    ] = False,
    as_json: Json = False,
) -> int:
    """Thin out the past as the settings of each domain say (`recrawl domains set DOMAIN --keep-versions 20 ...`).

    Of versions beyond the newest ones the texts and bodies go, but for one a day, a week, a month; when each was seen
    and what changed stays. Looks of more than a week ago are packed to a quarter of their size. A running stack prunes
    every night. Ages count by the domain's last look, so that what nobody crawls loses nothing; the newest version of
    a page never goes. It runs beside a crawl, and may be ended at any time.

    Examples:

        recrawl prune --dry-run
        recrawl prune docs.example.com
        recrawl prune --give-back
    """
    from crawler.cli.running import prune_output

    if dry_run and give_back:
        raise typer.BadParameter("a dry run gives nothing back")
    return prune_output.prune(domain, dry_run=dry_run, give_back=give_back, as_json=as_json)
