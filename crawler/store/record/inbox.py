"""The inbox: what others left for the holder of a domain's lease, applied chunk by chunk."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from psycopg.rows import dict_row

from crawler.core.domain import Lease
from crawler.core.domain_settings import reads_alike
from crawler.core.freshness import TEST_COPY_AFTER, ChangeSignal, Defaults, Wanted
from crawler.core.http import Url, key_of
from crawler.core.opic import Ordering, head_start, seed_endowment
from crawler.core.visit.visit import State
from crawler.store.claim import fence
from crawler.store.database import Connection, Database
from crawler.store.domains import COLUMNS, domain_from
from crawler.store.learned import groups_of
from crawler.store.record import shared_schedules, signals

INBOX_CHUNK = 20  # rows
PAGES_CHUNK = 20_000  # pages changed in one transaction, so that the lease is renewed in between

# Orders of discovery come last: one that has to wait keeps nobody from being heard. New prices are read by `reprice`.
CHUNK = """
    SELECT id, kind, payload, arrived_at FROM inbox WHERE domain_id = %s AND kind <> 'reprice'
     ORDER BY kind = 'reorder', id LIMIT %s
"""
ADMIT_SEEDS = """
    WITH fresh AS (
        INSERT INTO page (domain_id, key, url, first_seen_at)
        SELECT %(domain_id)s, x.key, x.url, %(at)s
          FROM unnest(%(keys)s::bytea[], %(urls)s::text[]) AS x(key, url)
        ON CONFLICT DO NOTHING RETURNING key),
    waiting AS (
        INSERT INTO frontier (domain_id, key, state, wanted, favoured, url_score, depth)
        SELECT %(domain_id)s, fresh.key, 'new', %(wanted)s, %(favoured)s, x.score, %(depth)s
          FROM fresh JOIN unnest(%(keys)s::bytea[], %(scores)s::float8[]) AS x(key, score) ON x.key = fresh.key),
    dividend AS (
        UPDATE pool SET pages = pages + (SELECT count(*) FROM fresh)
         WHERE domain_id = %(domain_id)s AND pool = %(pool)s RETURNING dividend),
    endowment AS (
        SELECT least(%(endowment)s::bigint, s.dormant / greatest((SELECT count(*) FROM fresh), 1)) AS coins, s.clock
          FROM domain_state s WHERE s.domain_id = %(domain_id)s),
    awoken AS (
        UPDATE domain_state s SET dormant = s.dormant - (SELECT count(*) FROM fresh) * endowment.coins,
               tracked = s.tracked + (SELECT count(*) FROM fresh)
          FROM endowment WHERE s.domain_id = %(domain_id)s)
    INSERT INTO cash (domain_id, key, pool, net, history, clock)
    SELECT %(domain_id)s, fresh.key, %(pool)s, endowment.coins - dividend.dividend, -endowment.coins, endowment.clock
      FROM fresh, dividend, endowment
 RETURNING key, net, clock
"""
TRACKED = "SELECT tracked FROM domain_state WHERE domain_id = %s"
# The next record gives new pages of what is held back their days.
HOLD_BACK = "UPDATE prior SET is_moving = true WHERE domain_id = %s AND held_until IS NOT NULL AND NOT is_moving"
CALL_FOR = """
    UPDATE frontier SET due_at = CASE WHEN state <> 'new' THEN least(due_at, %(at)s) END, wanted = %(wanted)s
     WHERE domain_id = %(domain_id)s AND key = ANY(%(keys)s)
"""
AFTER_NAMED = "UPDATE frontier SET wanted = 0 WHERE domain_id = %(domain_id)s AND key = %(key)s AND state = 'new'"
RANK_SEEDS = """
    UPDATE frontier f SET rank = x.rank FROM unnest(%(keys)s::bytea[], %(ranks)s::int[]) AS x(key, rank)
     WHERE f.domain_id = %(domain_id)s AND f.key = x.key
"""
GROUP_SEEDS = """
    UPDATE page p SET prior_no = x.no FROM unnest(%(keys)s::bytea[], %(groups)s::smallint[]) AS x(key, no)
     WHERE p.domain_id = %(domain_id)s AND p.key = x.key AND p.visits = 0
"""
LOOK_AGAIN = """
    UPDATE frontier
       SET due_at = least(due_at, %(at)s), wanted = CASE WHEN wanted IN (1, 4, 5) THEN wanted ELSE %(wanted)s END
     WHERE domain_id = %(domain_id)s AND key = ANY(%(keys)s) AND state <> 'new'
"""
MAKE_DUE = """
    WITH chunk AS (
        SELECT f.key, starts_with(p.url, %(prefix)s) AS wanted
          FROM frontier f JOIN page p ON p.domain_id = %(domain_id)s AND p.key = f.key
         WHERE f.domain_id = %(domain_id)s AND f.key > %(after)s ORDER BY f.key LIMIT %(most)s),
    due AS (
        UPDATE frontier f SET due_at = least(f.due_at, %(at)s), wanted = 1 FROM chunk
         WHERE f.domain_id = %(domain_id)s AND f.key = chunk.key AND chunk.wanted AND f.state <> 'new'),
    forgotten AS (
        UPDATE page p SET etag = NULL, last_modified = NULL, body_digest = ''::bytea FROM chunk
         WHERE %(full)s AND p.domain_id = %(domain_id)s AND p.key = chunk.key AND chunk.wanted AND p.version > 0)
    SELECT key FROM chunk ORDER BY key DESC LIMIT 1
"""
# What a page received within the old window, as it would be within the new one; debts stay what they are.
REWINDOW = """
    WITH chunk AS (
        SELECT key FROM cash WHERE domain_id = %(domain_id)s AND key > %(after)s ORDER BY key LIMIT %(most)s),
    scaled AS (
        UPDATE cash c SET history = c.history * least(%(passes)s::float8 * (s.coins - s.dormant), c.clock)
                                              / least(s.window_passes * (s.coins - s.dormant), c.clock)
          FROM chunk, domain_state s
         WHERE s.domain_id = %(domain_id)s AND s.coins > s.dormant
           AND c.domain_id = %(domain_id)s AND c.key = chunk.key AND c.history > 0 AND c.clock > 0)
    SELECT key FROM chunk ORDER BY key DESC LIMIT 1
"""
KEEP_WINDOW = "UPDATE domain_state SET window_passes = %(passes)s WHERE domain_id = %(domain_id)s"
DIVIDENDS = "SELECT pool, dividend FROM pool WHERE domain_id = %s"
TO_REORDER = """
    SELECT f.key, p.url, f.state, f.depth, f.rank, c.pool, c.net, c.clock
      FROM frontier f JOIN page p ON p.domain_id = %s AND p.key = f.key
      LEFT JOIN cash c ON c.domain_id = %s AND c.key = f.key
     WHERE f.domain_id = %s AND f.key > %s ORDER BY f.key LIMIT %s
"""
REORDER = """
    UPDATE frontier f SET favoured = x.favoured, url_score = x.score, rank = x.rank
      FROM unnest(%(key)s::bytea[], %(favoured)s::bool[], %(score)s::float8[], %(rank)s::int[])
        AS x(key, favoured, score, rank)
     WHERE f.domain_id = %(domain_id)s AND f.key = x.key
       AND (f.favoured, f.url_score, f.rank) IS DISTINCT FROM (x.favoured, x.score, x.rank)
"""
REPOOL = """
    UPDATE cash c SET pool = x.pool, net = x.net
      FROM unnest(%(key)s::bytea[], %(pool)s::smallint[], %(net)s::bigint[]) AS x(key, pool, net)
     WHERE c.domain_id = %(domain_id)s AND c.key = x.key AND c.pool <> x.pool
"""


async def drain(
    db: Database, lease: Lease, *, at: datetime, defaults: Defaults | None = None, max_pages: int | None = None
) -> bool:
    """Apply a chunk of the domain's inbox, and say whether there was any. Raises LeaseLost.

    defaults: by which pages are weighed that signals mean, and new ones ordered; None: neither is.
    max_pages: of the domain; URLs of which signals tell are not admitted beyond it.
    A new order of discovery, and pages that are to be read again in full, wait for a lease with the settings of today.
    """
    async with db.transaction() as connection:
        await fence(connection, lease)
        rows = await _rows(connection, lease)
        for row in rows:
            if row["kind"] == "seed":
                await _admit_seeds(connection, lease, [Url(url) for url in row["payload"]["urls"]], at=at)
                if row["payload"].get("before_root"):
                    root = {"domain_id": lease.domain.id, "key": key_of(lease.domain.root)}
                    await connection.execute(AFTER_NAMED, root)
                is_done = True
            elif row["kind"] == "reorder":
                is_done = await _reorder(connection, lease, row, defaults.page_score if defaults else None)
            elif row["kind"] == "window":
                is_done = await _rewindow(connection, lease, row)
            elif row["kind"] == "audit":
                keys = [bytes.fromhex(key) for key in row["payload"]["keys"]]
                values = {"domain_id": lease.domain.id, "keys": keys, "at": at, "wanted": Wanted.BY_AUDIT}
                await connection.execute(LOOK_AGAIN, values)
                is_done = True
            elif row["kind"] == "signal":
                told = signals_in(row["payload"])
                unknown = await signals.take_in(connection, lease, told, at=at, defaults=defaults)
                await _admit_told(connection, lease, unknown, at=at, max_pages=max_pages)
                is_done = True
            elif row["kind"] == "share":
                await shared_schedules.begin(
                    connection,
                    lease.domain.id,
                    shared_schedules.pairs_in(row["payload"]),
                    copies_rest=_rest_of_copies(lease, defaults),
                )
                is_done = True
            else:
                is_done = await _make_due(connection, lease, row, at=at)
            if not is_done:
                return True
            await connection.execute("DELETE FROM inbox WHERE id = %s", (row["id"],))
        return bool(rows)


async def _rows(connection: Connection, lease: Lease) -> list[dict[str, Any]]:
    """What is to be applied now: what was asked under settings that the lease does not have yet is not.

    It would give pages their old ranks, or read them in full as the user does not want them any more.
    """
    async with connection.cursor(row_factory=dict_row) as cursor:
        await cursor.execute(CHUNK, (lease.domain.id, INBOX_CHUNK))
        rows = await cursor.fetchall()
        if any(row["kind"] == "reorder" or row["payload"].get("full") for row in rows):
            # Read after the inbox: whoever wrote there had written this, too.
            await cursor.execute(f"SELECT {COLUMNS} FROM domain d WHERE d.id = %s", (lease.domain.id,))  # noqa: S608  our list
            found = await cursor.fetchone()
            today, then = domain_from(found).settings if found else None, lease.domain.settings
            if today is None or today.ordering != then.ordering:
                rows = [row for row in rows if row["kind"] != "reorder"]
            if today is None or not reads_alike(today, then):
                rows = [row for row in rows if not row["payload"].get("full")]
        return rows


def _rest_of_copies(lease: Lease, defaults: Defaults | None) -> timedelta | None:
    """Return how long copies rest once they share a schedule; None where a user's rule bounds the interval."""
    if any(rule.most is not None for rule in lease.domain.settings.rules):
        return None
    return min(TEST_COPY_AFTER, defaults.most) if defaults else TEST_COPY_AFTER


def signals_in(payload: Mapping[str, Any]) -> list[ChangeSignal]:
    """The signals of one source that an inbox row holds."""
    return [
        ChangeSignal(url=Url(url), source=payload["source"], at=datetime.fromisoformat(at))
        for url, at in payload["signals"]
    ]


async def _admit_told(
    connection: Connection, lease: Lease, urls: Sequence[Url], *, at: datetime, max_pages: int | None
) -> None:
    """Admit URLs that nobody knew before a signal, as far as the domain has room: pages like others, none wanted."""
    tracked = await (await connection.execute(TRACKED, (lease.domain.id,))).fetchone()
    room = len(urls) if max_pages is None or tracked is None else max(max_pages - tracked[0], 0)
    if urls[:room]:
        await _admit_seeds(connection, lease, urls[:room], at=at, wanted=Wanted.NO)
        await connection.execute(HOLD_BACK, (lease.domain.id,))


async def _admit_seeds(
    connection: Connection, lease: Lease, urls: Sequence[Url], *, at: datetime, wanted: Wanted = Wanted.BY_NAME
) -> None:
    """Seeds bring their endowment like all new pages, and no history but that debt: nobody has linked to them yet.

    One that is known already becomes due: somebody wants it looked at. wanted: why; where it is NO, they are pages one
    link away from the root.
    """
    home = dict.fromkeys(lease.domain.scope(max_depth=0).home(url) for url in urls)
    ordering = lease.domain.settings.ordering
    tracked = await (await connection.execute(TRACKED, (lease.domain.id,))).fetchone()
    endowment = seed_endowment(len(home), is_first=tracked == (0,))
    for favoured in (False, True):
        chosen = [url for url in home if ordering.favours(url) is favoured]
        values: dict[str, Any] = {
            "domain_id": lease.domain.id,
            "keys": [key_of(url) for url in chosen],
            "urls": chosen,
            "scores": [ordering.score(url) for url in chosen],
            "favoured": favoured,
            "at": at,
            "pool": ordering.pool(known=False, favoured=favoured).value,
            "endowment": endowment,
            "wanted": wanted,
            "depth": 0 if wanted else 1,
        }
        fresh = await (await connection.execute(ADMIT_SEEDS, values)).fetchall()
        scores = dict(zip(values["keys"], values["scores"], strict=True))
        ranks = [
            ordering.first_rank(net, clock=clock, depth=values["depth"], url_score=scores[key])
            for key, net, clock in fresh
        ]
        groups = await groups_of(connection, lease.domain.id, chosen)
        await connection.execute(GROUP_SEEDS, values | {"groups": groups})
        await connection.execute(RANK_SEEDS, values | {"keys": [row[0] for row in fresh], "ranks": ranks})
        if wanted:
            await connection.execute(CALL_FOR, values)


async def _make_due(connection: Connection, lease: Lease, row: dict[str, Any], *, at: datetime) -> bool:
    """Make a chunk of a refresh due; whether it was the last one. Its inbox row says how far it came."""
    payload = row["payload"]
    values = {
        "domain_id": lease.domain.id,
        "prefix": payload["prefix"],
        "full": payload["full"],
        "after": bytes.fromhex(payload.get("after", "")),
        "at": at,
        "most": PAGES_CHUNK,
    }
    last = await (await connection.execute(MAKE_DUE, values)).fetchone()
    if last is None:
        return True
    await _go_on_after(connection, row, last[0])
    return False


async def _rewindow(connection: Connection, lease: Lease, row: dict[str, Any]) -> bool:
    """Bring the histories of a chunk of pages to another window of importance; whether it was the last one."""
    payload = row["payload"]
    values = {
        "domain_id": lease.domain.id,
        "passes": payload["passes"],
        "after": bytes.fromhex(payload.get("after", "")),
        "most": PAGES_CHUNK,
    }
    last = await (await connection.execute(REWINDOW, values)).fetchone()
    if last is None:
        await connection.execute(KEEP_WINDOW, values)
        return True
    await _go_on_after(connection, row, last[0])
    return False


async def _go_on_after(connection: Connection, row: dict[str, Any], key: bytes) -> None:
    await connection.execute(
        "UPDATE inbox SET payload = payload || jsonb_build_object('after', %s::text) WHERE id = %s",
        (key.hex(), row["id"]),
    )


async def _reorder(
    connection: Connection, lease: Lease, row: dict[str, Any], page_score: Callable[[Url], float] | None
) -> bool:
    """Give a chunk of pages the pools, scores and ranks of the domain's order today; whether it was the last one."""
    domain_id = lease.domain.id
    after = bytes.fromhex(row["payload"].get("after", ""))
    cursor = await connection.execute(TO_REORDER, (domain_id, domain_id, domain_id, after, PAGES_CHUNK), binary=True)
    pages = await cursor.fetchall()
    if not pages:
        return True
    pools = await (await connection.execute(DIVIDENDS, (domain_id,))).fetchall()
    keeps_places = row["payload"].get("keeps_places", False)
    reordered = Reordered(
        lease.domain.settings.ordering, dividends=dict(pools), keeps_places=keeps_places, page_score=page_score
    )
    for page in pages:
        reordered.add(page)
    columns = reordered.columns | {"domain_id": domain_id}
    await connection.execute(REORDER, columns, binary=True)
    await connection.execute(REPOOL, columns, binary=True)
    for pool, more in reordered.more.items():
        await connection.execute(
            "UPDATE pool SET pages = pages + %s WHERE domain_id = %s AND pool = %s", (more, domain_id, pool)
        )
    await _go_on_after(connection, row, pages[-1][0])
    return False


@dataclass(slots=True)
class Reordered:
    """Pages as an order of discovery wants them, column by column.

    keeps_places: it is the order that it was, and only what is favoured is another.  more: by how many pages each pool
    grows.
    """

    ordering: Ordering
    dividends: Mapping[int, int]
    keeps_places: bool = False
    columns: dict[str, list[Any]] = field(
        default_factory=lambda: {name: [] for name in ("key", "favoured", "score", "rank", "pool", "net")}
    )
    more: dict[int, int] = field(default_factory=dict)
    page_score: Callable[[Url], float] | None = None

    def add(self, page: tuple[Any, ...]) -> None:
        """A row of TO_REORDER; pool, net and clock are None outside the economy."""
        key, url, state, depth, rank, pool, net, clock = page
        favoured, score = self.ordering.favours(url), self.ordering.score(url)
        is_new = state == State.NEW
        if pool is not None:
            now = self.ordering.pool(known=not is_new, favoured=favoured).value
            net += self.dividends[pool] - self.dividends[now]  # who changes pool carries cash, never net
            self.more[pool] = self.more.get(pool, 0) - 1
            self.more[now] = self.more.get(now, 0) + 1
            pool = now
        if is_new and not (self.keeps_places and self.ordering.order.is_by_place):
            ahead = head_start(self.page_score(url)) if self.page_score is not None else 0
            rank = self.ordering.first_rank(net or 0, clock=clock or 0, depth=depth, url_score=score, ahead=ahead)
        for column, figure in zip(self.columns.values(), (key, favoured, score, rank, pool, net), strict=True):
            column.append(figure)
