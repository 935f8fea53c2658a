"""recrawl prune: what goes, domain by domain, and what it frees."""

from collections.abc import Sequence
from datetime import UTC, datetime

from crawler.app.running.maintenance import Pruned, SizeEstimate
from crawler.app.running.maintenance import prune as prune_domains
from crawler.cli.exits import DONE, PROBLEM
from crawler.cli.output import print_json, remark, say, show
from crawler.cli.session import with_database
from crawler.format.values import format_bytes, format_count

COLUMNS = ("versions", "bodies", "frees", "looks packed", "looks", "changes", "left")


def prune(text: str | None, *, dry_run: bool, give_back: bool, as_json: bool) -> int:
    at = datetime.now(UTC)
    found, undone = with_database(lambda db, _: prune_domains(db, text, at=at, dry_run=dry_run, give_back=give_back))
    if as_json:
        print_json({"dry_run": dry_run, "domains": found, "not_vacuumed": undone})
    elif not found:
        say("No domain is registered: recrawl domains add URL")
    else:
        _show(found, dry_run=dry_run)
        if undone:
            remark(f"Room was not made in {', '.join(undone)}: others are using it, or it is not ours")
    return PROBLEM if any(each.exceeds for each in found) else DONE


def remark_quotas(found: Sequence[Pruned]) -> None:
    """Say which versions were thinned out to keep the quotas of domains, and which domains exceed theirs."""
    for done in found:
        if done.versions:
            freed = format_bytes(done.freed_bytes)
            remark(f"{done.domain}: {format_count(done.versions, 'version')} thinned out to keep its quota, {freed}")
        if done.exceeds:
            remark(_shown_excess(done))
        if done.exceeds and done.reader:
            remark(f"{done.domain}: {done.held_back}")


def shown_storage(found: SizeEstimate) -> str:
    """What the versions of a domain take, and what pruning would free of it, as a person reads it."""
    about = "" if found.is_exact else "about "
    takes = f"{about}{format_bytes(round(found.stored_bytes))} of texts and bodies"
    if not round(found.frees_bytes):
        return takes
    return f"{takes}, of which recrawl prune frees {about}{format_bytes(round(found.frees_bytes))}"


def _shown_excess(each: Pruned) -> str:
    return (
        f"{each.domain}: the newest versions, and what is still to be read, take {format_bytes(each.exceeds)}"
        " more than the quota: nothing of them goes"
    )


def _show(found: Sequence[Pruned], *, dry_run: bool) -> None:
    rows = [_row(each) for each in found]
    show(["domain", *COLUMNS], rows, right=COLUMNS)
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


def _row(each: Pruned) -> tuple[str, ...]:
    return (
        each.domain,
        *(f"{each.versions:,}", f"{each.bodies:,}", format_bytes(each.freed_bytes)),
        *(f"{each.packed:,}", f"{each.visits:,}", f"{each.changes:,}", format_bytes(each.stored_bytes)),
    )
