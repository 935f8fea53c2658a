"""After the price or the rules have changed: a domain's known pages are scored again, slice by slice.

A claim reads no further in the due order than its windows yield. Where the price has fallen, or a rule asks for more,
the old order has pages that are worth a look now behind others that are not. No claim would reach
them before their old due times.
"""

from collections.abc import Sequence
from datetime import datetime

from psycopg.rows import dict_row

from crawler.core.domain import Domain, Lease
from crawler.core.domain_settings import weighs_alike
from crawler.core.freshness import Defaults, PricePolicy, due_again
from crawler.core.http import PageKey
from crawler.store.claim import fence
from crawler.store.database import BY_KEY, Connection, Database, fetch_one
from crawler.store.domain_inbox import go_on_after
from crawler.store.domain_rows import domain_numbered
from crawler.store.hand_out.candidates import BY_KEYS, SLICES, ScoredRows, score_pages
from crawler.store.hand_out.hand_out import PUT_OFF, due_in
from crawler.store.hand_out.scoring import scoring_context

SLICE = 10_000  # pages scored under one lease: about half a second, in which others wait for the domain's row

# Locked before the price is read: who writes another price then waits, and finds that this pass has begun.
WAITING = """
    SELECT id, payload FROM inbox WHERE domain_id = %s AND kind = 'reprice' ORDER BY id LIMIT 1 FOR UPDATE
"""
# This pass serves for all changes of the price before it begins.
BEGIN = "DELETE FROM inbox WHERE domain_id = %s AND kind = 'reprice' AND id <> %s AND NOT payload ? 'after'"
DONE = "DELETE FROM inbox WHERE id = %s"
# Where no price decides, each page has a time of its own.
LEAVE_ALL = "UPDATE page SET leader = NULL, is_copy = false WHERE domain_id = %s AND leader IS NOT NULL"


async def reprice(db: Database, lease: Lease, *, at: datetime, defaults: Defaults, most: int = SLICE) -> bool:
    """Give a slice of the domain's pages the due times of today's price, if that has moved; whether there was any.

    The inbox row says how far it came, which keeps the domain awake until all pages are at the new price. New rules,
    and settings by which pages are due, wait for a lease that was claimed with them.  Raises LeaseLost.
    """
    async with db.transaction() as connection:
        await fence(connection, lease)
        row = await fetch_one(connection, dict_row, WAITING, (lease.domain.id,))
        if row is None:
            return False
        after = bytes.fromhex(row["payload"].get("after", ""))
        if not after:
            await connection.execute(BEGIN, (lease.domain.id, row["id"]))
        wished = await domain_numbered(connection, lease.domain.id)
        context = await scoring_context(connection, lease.domain, at=at, defaults=defaults, token=lease.token)
        if wished is None or context is None or not weighs_alike(wished.settings, lease.domain.settings):
            return False
        if not after and not isinstance(context.revisit, PricePolicy):
            await connection.execute(LEAVE_ALL, (lease.domain.id,))
        await connection.execute(BY_KEY)
        values = {"domain_id": lease.domain.id, "after_key": after, "most": most, "at": at}
        pages = await score_pages(connection, SLICES, values, context)
        await _write(connection, lease.domain.id, pages, at=at)
        if len(pages.rows) < most:
            await connection.execute(DONE, (row["id"],))
        else:
            await go_on_after(connection, row["id"], pages.rows[-1].key)
        return True


async def reweigh(
    connection: Connection, domain: Domain, keys: Sequence[PageKey], *, at: datetime, defaults: Defaults
) -> None:
    """Give these pages the due times of today, since something was heard of them."""
    context = await scoring_context(connection, domain, at=at, defaults=defaults)
    if context is not None:
        values = {"domain_id": domain.id, "keys": list(keys), "at": at}
        pages = await score_pages(connection, BY_KEYS, values, context)
        await _write(connection, domain.id, pages, at=at)


async def _write(connection: Connection, domain_id: int, pages: ScoredRows, *, at: datetime) -> None:
    moved, days = due_again(pages.head)
    if not len(moved):
        return
    values = {
        "domain_id": domain_id,
        "keys": [pages.rows[n].key for n in moved],
        "due_at": [due_in(float(each), at=at) for each in days],
    }
    await connection.execute(PUT_OFF, values)
