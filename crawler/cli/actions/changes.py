"""recrawl changes: what changed, in the order in which it was found."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from crawler.cli.exits import DONE
from crawler.cli.output import print_json, remark, say, show, shown_edit
from crawler.cli.session import Interrupts, with_database
from crawler.cli.values import counted, shown_instant, shown_share
from crawler.core.freshness import template_of
from crawler.register import domain_named, require_not_before_last_visit
from crawler.store import domains, report
from crawler.store.database import Database
from crawler.store.report import ChangeFilter, EventKind, FeedItem


def changes(
    *, since: int | timedelta | datetime, domain: str | None, top: int, diff: bool, at: datetime | None, as_json: bool
) -> int:
    async def work(db: Database, _: Interrupts) -> tuple[list[FeedItem], bool]:
        only = await domain_named(db, domain) if domain is not None else None
        if at is not None:
            wanted = [only] if only is not None else [listed.domain for listed in await domains.every(db)]
            await require_not_before_last_visit(db, wanted, at)
        instant = at or datetime.now(UTC)
        await report.stamp_feed(db, at=instant)
        items = await report.read_feed(
            db,
            ChangeFilter(
                after=since if isinstance(since, int) else 0,
                since=None if isinstance(since, int) else since if isinstance(since, datetime) else instant - since,
                domain_id=only.id if only is not None else None,
            ),
            most=top + 1,
            blocks=diff,
        )
        return items[:top], len(items) > top

    found, more = with_database(work)
    cursor = found[-1].position if found else (since if isinstance(since, int) else None)
    if as_json:
        print_json({"changes": found, "next": cursor, "more": more})
        return DONE
    if not found:
        say("Nothing changed")
    else:
        _show_changes(found, diff=diff)
    if cursor is not None:
        remark(f"{'There is more' if more else 'Go on'}: recrawl changes --since {cursor}")
    return DONE


def _shown_reach(item: FeedItem) -> str:
    """What an event is about that is not of one page alone."""
    if item.pages is not None:
        return f" (on {counted(item.pages, 'page')})"
    return f" (pages like {template_of(item.url)})" if item.change in {EventKind.HELD_BACK, EventKind.LET_GO} else ""


def _show_changes(found: Sequence[FeedItem], *, diff: bool) -> None:
    for items in [[item] for item in found] if diff else [found]:
        show(
            ["found", "change", "of", "version", "amount", "url"],
            [
                (
                    shown_instant(item.at),
                    item.change.value.replace("_", " "),
                    ", ".join(item.parts),
                    str(item.version) if item.version else "",
                    "" if item.amount is None else shown_share(item.amount),
                    item.url + _shown_reach(item),
                )
                for item in items
            ],
            right=["version", "amount"],
        )
        for edit in (edit for item in items for edit in item.blocks):
            say(shown_edit(edit))
