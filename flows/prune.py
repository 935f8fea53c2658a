"""prune: the past of all domains, thinned out as their settings say."""

from collections.abc import Sequence
from datetime import UTC, datetime

from prefect import flow, get_run_logger
from prefect.artifacts import acreate_markdown_artifact

from crawler.app.database import open_database_of
from crawler.app.running.maintenance import Pruned
from crawler.app.running.maintenance import prune as prune_domains
from crawler.format.values import format_bytes
from crawler.settings import settings
from flows.ending import says_why
from flows.lease import if_heard

COLUMNS = ("domain", "versions thinned out", "freed", "looks packed", "looks forgotten", "changes forgotten", "left")
SHOWN = 100  # domains in the artifact, those that freed most first


@flow(name="prune", flow_run_name="prune", persist_result=False)
@says_why
async def prune(domain: str = "", dry_run: bool = False) -> dict[str, int]:  # noqa: FBT001, FBT002  a form asks for it
    """Thin out old versions, pack old looks, forget old changes. Prefect's own runs its server forgets by itself.

    Args:
        domain: Only this domain, such as docs.example.com; empty for all that are registered.
        dry_run: Say what would go, and change nothing.

    """
    async with open_database_of(settings()) as db:
        found, _ = await prune_domains(db, domain or None, at=datetime.now(UTC), dry_run=dry_run)
    for each in found:
        if each.exceeds:
            get_run_logger().warning("%s: %s above its quota", each.domain, format_bytes(each.exceeds))
        if each.reader:
            get_run_logger().warning("%s: %s", each.domain, each.held_back)
    shown = markdown(found, dry_run=dry_run)
    await if_heard(acreate_markdown_artifact(shown, key="prune-result", description="What was pruned"))
    return {each.domain: each.freed_bytes for each in found}


def markdown(found: Sequence[Pruned], *, dry_run: bool) -> str:
    """What went by domain, as a person reads it."""
    rows = sorted(found, key=lambda each: (-each.freed_bytes, each.domain))
    lines = [f"| {' | '.join(COLUMNS)} |", "|---|" + "---:|" * (len(COLUMNS) - 1)]
    lines += [f"| {' | '.join(_row(each))} |" for each in rows[:SHOWN]]
    lines += [f"\n{each.domain} is {format_bytes(each.exceeds)} above its quota." for each in rows if each.exceeds]
    lines += [f"\n{each.domain}: {each.held_back}." for each in rows if each.reader][:SHOWN]
    if dry_run:
        lines.append("\nA dry run: nothing was changed.")
    return "\n".join(lines)


def _row(each: Pruned) -> tuple[str, ...]:
    return (
        each.domain,
        f"{each.versions:,}",
        format_bytes(each.freed_bytes),
        f"{each.packed:,}",
        f"{each.visits:,}",
        f"{each.changes:,}",
        format_bytes(each.stored_bytes),
    )
