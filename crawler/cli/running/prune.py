"""recrawl prune: delete old versions, visits and changes according to the retention settings of each domain."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated

import typer

from crawler.cli.lazy import maintenance
from crawler.cli.options import NO_DOMAIN, DomainOrAll, Json, flag
from crawler.cli.output import print_listing, remark
from crawler.cli.session import DONE, PROBLEM, run_on_database
from crawler.format.values import format_bytes, format_count

NUMBERS = ("versions", "bodies", "freed", "visits packed", "visits", "changes", "remaining")


def prune(
    domain: DomainOrAll = None,
    dry_run: Annotated[bool, flag("--dry-run", "Show what would be deleted, without deleting it.")] = False,
    give_back: Annotated[
        bool,
        flag(
            "--give-back",
            "Return freed disk space to the system. This rewrites each table (VACUUM FULL), which is locked meanwhile.",
        ),
    ] = False,
    as_json: Json = False,
) -> int:
    """Delete the contents of old versions, and old visits and changes, by the retention settings of each domain.

    Set the retention with `recrawl domains set DOMAIN --keep-versions 20 ...`. The newest versions of a page stay
    whole, as many as --keep-versions. Of older ones, one per day, week and month stays whole, up to the age in
    --keep-daily, --keep-weekly and --keep-monthly. The others lose text, headers and body, and are still listed. Visits
    older than eight days are packed to a quarter of their size.

    Ages are measured from the domain's last visit, so a domain that is not crawled loses nothing. The local stack
    prunes every night. You can run this during a crawl, and interrupt it at any time.

    Examples:

        recrawl prune --dry-run
        recrawl prune docs.example.com
        recrawl prune --give-back
    """
    if dry_run and give_back:
        raise typer.BadParameter("--dry-run and --give-back cannot be combined")
    at = datetime.now(UTC)
    pruned, not_vacuumed = run_on_database(
        lambda db, _: maintenance.prune_history(db, domain, at=at, dry_run=dry_run, give_back=give_back)
    )
    document = {"dry_run": dry_run, "domains": pruned, "not_vacuumed": not_vacuumed}
    if print_listing(document, map(_format_row, pruned), right=NUMBERS, empty=NO_DOMAIN, as_json=as_json):
        _remark_pruned(pruned, dry_run=dry_run)
        if not_vacuumed:
            reason = "other sessions use these tables, the database user does not own them, or the disk is full"
            remark(f"No space was freed in {', '.join(not_vacuumed)}: {reason}")
    return PROBLEM if any(each.excess_bytes for each in pruned) else DONE


def remark_quotas(pruned: "Sequence[maintenance.PruneStats]") -> None:
    """Print which versions were deleted to keep the storage quotas, and which domains exceed theirs."""
    for each in pruned:
        if each.versions:
            versions, freed = format_count(each.versions, "version"), format_bytes(each.freed_bytes)
            remark(f"{each.domain}: {versions} deleted to keep its storage quota, {freed} freed")
        if each.excess_bytes:
            remark(_format_excess(each))
        if each.excess_bytes and each.reader:
            remark(f"{each.domain}: {each.deferral_note}")


def format_storage(estimate: "maintenance.SizeEstimate") -> str:
    """Describe the storage that a domain's versions take, and how much of it pruning would free."""
    about = "" if estimate.is_exact else "about "
    takes = f"{about}{format_bytes(round(estimate.stored_bytes))} of texts and bodies"
    if not round(estimate.freeable_bytes):
        return takes
    return f"{takes}; recrawl prune would free {about}{format_bytes(round(estimate.freeable_bytes))}"


def _format_excess(each: "maintenance.PruneStats") -> str:
    return (
        f"{each.domain}: the storage quota is exceeded by {format_bytes(each.excess_bytes)}: "
        "the newest versions, and versions that are still to be delivered, are never deleted"
    )


def _remark_pruned(pruned: "Sequence[maintenance.PruneStats]", *, dry_run: bool) -> None:
    for each in pruned:
        if each.over_quota:
            how = "would be" if dry_run else "were"
            remark(f"{each.domain}: {format_count(each.over_quota, 'more version')} {how} deleted to keep the quota")
        if each.excess_bytes:
            remark(_format_excess(each))
        if each.reader:
            remark(f"{each.domain}: {each.deferral_note}")
    if dry_run:
        remark("Nothing was deleted. Run without --dry-run to delete. Settings: recrawl domains set DOMAIN --help")


def _format_row(each: "maintenance.PruneStats") -> dict[str, str]:
    return {
        "domain": each.domain,
        "versions": f"{each.versions:,}",
        "bodies": f"{each.bodies:,}",
        "freed": format_bytes(each.freed_bytes),
        "visits packed": f"{each.packed:,}",
        "visits": f"{each.visits:,}",
        "changes": f"{each.changes:,}",
        "remaining": format_bytes(each.stored_bytes),
    }
