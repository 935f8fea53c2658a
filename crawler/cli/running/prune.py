"""recrawl prune: what goes, domain by domain, and what it frees."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated

import typer

from crawler.cli.lazy import maintenance
from crawler.cli.options import NO_DOMAIN, DomainOrAll, Json, declare_flag
from crawler.cli.output import print_listing, remark
from crawler.cli.session import DONE, PROBLEM, run_on_database
from crawler.format.values import format_bytes, format_count

NUMBERS = ("versions", "bodies", "frees", "looks packed", "visits", "changes", "left")


def prune(
    domain: DomainOrAll = None,
    dry_run: Annotated[bool, declare_flag("--dry-run", "Say what would go, and change nothing.")] = False,
    give_back: Annotated[
        bool,
        declare_flag(
            "--give-back", "Give the room to the system, not to what comes: tables are written anew, which waits."
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
    if dry_run and give_back:
        raise typer.BadParameter("a dry run gives nothing back")
    at = datetime.now(UTC)
    pruned, not_vacuumed = run_on_database(
        lambda db, _: maintenance.prune_history(db, domain, at=at, dry_run=dry_run, give_back=give_back)
    )
    document = {"dry_run": dry_run, "domains": pruned, "not_vacuumed": not_vacuumed}
    if print_listing(document, map(_format_row, pruned), right=NUMBERS, empty=NO_DOMAIN, as_json=as_json):
        _remark_pruned(pruned, dry_run=dry_run)
        if not_vacuumed:
            remark(f"Room was not made in {', '.join(not_vacuumed)}: others are using it, or it is not ours")
    return PROBLEM if any(each.excess_bytes for each in pruned) else DONE


def remark_quotas(pruned: "Sequence[maintenance.PruneStats]") -> None:
    """Say which versions were thinned out to keep the quotas of domains, and which domains exceed theirs."""
    for each in pruned:
        if each.versions:
            freed = format_bytes(each.freed_bytes)
            remark(f"{each.domain}: {format_count(each.versions, 'version')} thinned out to keep its quota, {freed}")
        if each.excess_bytes:
            remark(_format_excess(each))
        if each.excess_bytes and each.reader:
            remark(f"{each.domain}: {each.deferral_note}")


def format_storage(estimate: "maintenance.SizeEstimate") -> str:
    """What the versions of a domain take, and what pruning would free of it, as a person reads it."""
    about = "" if estimate.is_exact else "about "
    takes = f"{about}{format_bytes(round(estimate.stored_bytes))} of texts and bodies"
    if not round(estimate.freeable_bytes):
        return takes
    return f"{takes}, of which recrawl prune frees {about}{format_bytes(round(estimate.freeable_bytes))}"


def _format_excess(each: "maintenance.PruneStats") -> str:
    return (
        f"{each.domain}: the newest versions, and what is still to be read, take {format_bytes(each.excess_bytes)}"
        " more than the quota: nothing of them goes"
    )


def _remark_pruned(pruned: "Sequence[maintenance.PruneStats]", *, dry_run: bool) -> None:
    for each in pruned:
        if each.over_quota:
            how = "would go" if dry_run else "went"
            remark(f"{each.domain}: {format_count(each.over_quota, 'version')} more {how} to keep the quota")
        if each.excess_bytes:
            remark(_format_excess(each))
        if each.reader:
            remark(f"{each.domain}: {each.deferral_note}")
    if dry_run:
        remark("Nothing was changed; without --dry-run this goes. What is kept: recrawl domains set DOMAIN --help")


def _format_row(each: "maintenance.PruneStats") -> dict[str, str]:
    return {
        "domain": each.domain,
        "versions": f"{each.versions:,}",
        "bodies": f"{each.bodies:,}",
        "frees": format_bytes(each.freed_bytes),
        "looks packed": f"{each.packed:,}",
        "visits": f"{each.visits:,}",
        "changes": f"{each.changes:,}",
        "left": format_bytes(each.stored_bytes),
    }
