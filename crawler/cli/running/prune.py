"""recrawl prune: what goes, domain by domain, and what it frees."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated

import typer

from crawler.cli.lazy import maintenance
from crawler.cli.options import NO_DOMAIN, DomainOrAll, Json, flag
from crawler.cli.output import print_found, remark
from crawler.cli.session import DONE, PROBLEM, with_database
from crawler.format.values import format_bytes, format_count

NUMBERS = ("versions", "bodies", "frees", "looks packed", "looks", "changes", "left")


def prune(
    domain: DomainOrAll = None,
    dry_run: Annotated[bool, flag("--dry-run", "Say what would go, and change nothing.")] = False,
    give_back: Annotated[
        bool,
        flag("--give-back", "Give the room to the system, not to what comes: tables are written anew, which waits."),
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
    found, undone = with_database(
        lambda db, _: maintenance.prune(db, domain, at=at, dry_run=dry_run, give_back=give_back)
    )
    document = {"dry_run": dry_run, "domains": found, "not_vacuumed": undone}
    if print_found(document, map(_row, found), right=NUMBERS, empty=NO_DOMAIN, as_json=as_json):
        _remark_found(found, dry_run=dry_run)
        if undone:
            remark(f"Room was not made in {', '.join(undone)}: others are using it, or it is not ours")
    return PROBLEM if any(each.exceeds for each in found) else DONE


def remark_quotas(found: "Sequence[maintenance.Pruned]") -> None:
    """Say which versions were thinned out to keep the quotas of domains, and which domains exceed theirs."""
    for done in found:
        if done.versions:
            freed = format_bytes(done.freed_bytes)
            remark(f"{done.domain}: {format_count(done.versions, 'version')} thinned out to keep its quota, {freed}")
        if done.exceeds:
            remark(_shown_excess(done))
        if done.exceeds and done.reader:
            remark(f"{done.domain}: {done.held_back}")


def shown_storage(found: "maintenance.SizeEstimate") -> str:
    """What the versions of a domain take, and what pruning would free of it, as a person reads it."""
    about = "" if found.is_exact else "about "
    takes = f"{about}{format_bytes(round(found.stored_bytes))} of texts and bodies"
    if not round(found.frees_bytes):
        return takes
    return f"{takes}, of which recrawl prune frees {about}{format_bytes(round(found.frees_bytes))}"


def _shown_excess(each: "maintenance.Pruned") -> str:
    return (
        f"{each.domain}: the newest versions, and what is still to be read, take {format_bytes(each.exceeds)}"
        " more than the quota: nothing of them goes"
    )


def _remark_found(found: "Sequence[maintenance.Pruned]", *, dry_run: bool) -> None:
    for each in found:
        if each.over_quota:
            how = "would go" if dry_run else "went"
            remark(f"{each.domain}: {format_count(each.over_quota, 'version')} more {how} to keep the quota")
        if each.exceeds:
            remark(_shown_excess(each))
        if each.reader:
            remark(f"{each.domain}: {each.held_back}")
    if dry_run:
        remark("Nothing was changed; without --dry-run this goes. What is kept: recrawl domains set DOMAIN --help")


def _row(each: "maintenance.Pruned") -> dict[str, str]:
    return {
        "domain": each.domain,
        "versions": f"{each.versions:,}",
        "bodies": f"{each.bodies:,}",
        "frees": format_bytes(each.freed_bytes),
        "looks packed": f"{each.packed:,}",
        "looks": f"{each.visits:,}",
        "changes": f"{each.changes:,}",
        "left": format_bytes(each.stored_bytes),
    }
