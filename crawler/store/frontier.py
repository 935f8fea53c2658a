"""Which page next: draining the inbox, and handing out the pages that are worth a fetch, best first."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from psycopg.rows import dict_row

from crawler.core.answer import Validators
from crawler.core.belief import PRIOR, Belief
from crawler.core.cash import ENDOWMENT, Pool, importance, window_of
from crawler.core.change import Version
from crawler.core.domain import Domain, Lease
from crawler.core.fingerprint import Fingerprint
from crawler.core.price import value
from crawler.core.urls import PageKey, Url, key_of
from crawler.core.visit import State, Target
from crawler.errors import LeaseLost
from crawler.store.database import Connection, Database
from crawler.store.leases import fence

INBOX_CHUNK = 20  # rows
REFRESH_CHUNK = 20_000  # pages made due in one transaction, so that the lease is renewed in between
WINDOW = 3  # of the head of an order, how many times what is wanted is weighed before the best are handed out

DUE_HEAD = """
    SELECT key, due_at FROM frontier
     WHERE domain_id = %(domain_id)s AND state <> 'new' AND due_at <= %(at)s AND key <> ALL(%(without)s)
     ORDER BY due_at, key LIMIT %(most)s
"""
NEW_HEAD = """
    SELECT key FROM frontier
     WHERE domain_id = %(domain_id)s AND state = 'new' AND key <> ALL(%(without)s)
     ORDER BY rank DESC, key LIMIT %(most)s
"""
LOAD = """
    SELECT p.key, p.url, f.depth, f.state, f.due_at, p.belief_a, p.belief_b, p.etag, p.last_modified,
           p.received_bytes, p.version, p.body_digest, p.text_digest, p.main_digest, p.shape_digest,
           p.fingerprint, p.status, p.failures, p.last_look_at, p.last_good_at, l.targets,
           c.net + q.dividend AS cash, c.history, c.clock
      FROM page p
      JOIN frontier f ON f.domain_id = %(domain_id)s AND f.key = p.key
      LEFT JOIN page_links l ON l.domain_id = %(domain_id)s AND l.key = p.key
      LEFT JOIN cash c ON c.domain_id = %(domain_id)s AND c.key = p.key
      LEFT JOIN pool q ON q.domain_id = %(domain_id)s AND q.pool = c.pool
     WHERE p.domain_id = %(domain_id)s AND p.key = ANY(%(keys)s)
"""
ECONOMY = """
    SELECT s.clock, s.coins - s.dormant AS circulating,
           (SELECT sum(pages) FROM pool WHERE domain_id = %(domain_id)s)::bigint AS pages
      FROM domain_state s WHERE s.domain_id = %(domain_id)s AND s.lease_token = %(token)s
"""
ECONOMY_AT_REST = ECONOMY.replace(" AND s.lease_token = %(token)s", "")
ADMIT_SEEDS = """
    WITH fresh AS (
        INSERT INTO page (domain_id, key, url, first_seen_at, belief_a, belief_b)
        SELECT %(domain_id)s, x.key, x.url, %(at)s, %(a)s, %(b)s
          FROM unnest(%(keys)s::bytea[], %(urls)s::text[]) AS x(key, url)
        ON CONFLICT DO NOTHING RETURNING key),
    waiting AS (
        INSERT INTO frontier (domain_id, key, state) SELECT %(domain_id)s, key, 'new' FROM fresh),
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
    SELECT %(domain_id)s, fresh.key, %(pool)s, endowment.coins - dividend.dividend, 0, endowment.clock
      FROM fresh, dividend, endowment
"""
LOOK_AGAIN = """
    UPDATE frontier SET due_at = %(at)s
     WHERE domain_id = %(domain_id)s AND key = ANY(%(keys)s) AND state <> 'new' AND due_at > %(at)s
"""
MAKE_DUE = """
    WITH chunk AS (
        SELECT f.key, starts_with(p.url, %(prefix)s) AS wanted
          FROM frontier f JOIN page p ON p.domain_id = %(domain_id)s AND p.key = f.key
         WHERE f.domain_id = %(domain_id)s AND f.key > %(after)s ORDER BY f.key LIMIT %(most)s),
    due AS (
        UPDATE frontier f SET due_at = %(at)s FROM chunk
         WHERE f.domain_id = %(domain_id)s AND f.key = chunk.key AND chunk.wanted
           AND f.state <> 'new' AND f.due_at > %(at)s),
    forgotten AS (
        UPDATE page p SET etag = NULL, last_modified = NULL, body_digest = ''::bytea FROM chunk
         WHERE %(full)s AND p.domain_id = %(domain_id)s AND p.key = chunk.key AND chunk.wanted AND p.version > 0)
    SELECT key FROM chunk ORDER BY key DESC LIMIT 1
"""


@dataclass(frozen=True, slots=True)
class Scale:
    """By what a domain's histories are measured: its clock and window, in coins, and how many pages take part."""

    clock: float
    window: float
    pages: int


async def drain(db: Database, lease: Lease, *, at: datetime) -> bool:
    """Apply a chunk of the domain's inbox, and say whether there was any. Raises LeaseLost."""
    async with db.transaction() as connection:
        await fence(connection, lease)
        async with connection.cursor(row_factory=dict_row) as cursor:
            await cursor.execute(
                "SELECT id, kind, payload, arrived_at FROM inbox WHERE domain_id = %s ORDER BY id LIMIT %s",
                (lease.domain.id, INBOX_CHUNK),
            )
            rows = await cursor.fetchall()
        for row in rows:
            if row["kind"] == "seed":
                await _admit_seeds(connection, lease, [Url(url) for url in row["payload"]["urls"]], at=at)
            elif not await _make_due(connection, lease, row, at=at):
                return True
            await connection.execute("DELETE FROM inbox WHERE id = %s", (row["id"],))
        return bool(rows)


async def _admit_seeds(connection: Connection, lease: Lease, urls: Sequence[Url], *, at: datetime) -> None:
    """Seeds bring their endowment like all new pages, and no history: nobody has linked to them yet.

    One that is known already becomes due: somebody wants it looked at.
    """
    home = list(dict.fromkeys(lease.domain.scope(max_depth=0).home(url) for url in urls))
    values = {
        "domain_id": lease.domain.id,
        "keys": [key_of(url) for url in home],
        "urls": home,
        "at": at,
        "a": PRIOR.a,
        "b": PRIOR.b,
        "pool": Pool.NEW.value,
        "endowment": ENDOWMENT,
    }
    await connection.execute(ADMIT_SEEDS, values)
    await connection.execute(LOOK_AGAIN, values)


async def _make_due(connection: Connection, lease: Lease, row: dict[str, Any], *, at: datetime) -> bool:
    """Make a chunk of a refresh due; whether it was the last one. How far it came stands in its inbox row."""
    payload = row["payload"]
    values = {
        "domain_id": lease.domain.id,
        "prefix": payload["prefix"],
        "full": payload["full"],
        "after": bytes.fromhex(payload.get("after", "")),
        "at": at,
        "most": REFRESH_CHUNK,
    }
    last = await (await connection.execute(MAKE_DUE, values)).fetchone()
    if last is None:
        return True
    await connection.execute(
        "UPDATE inbox SET payload = payload || jsonb_build_object('after', %s::text) WHERE id = %s",
        (last[0].hex(), row["id"]),
    )
    return False


async def hand_out(
    db: Database,
    lease: Lease,
    *,
    most: int,
    at: datetime,
    without: Collection[PageKey],
    discovery_share: float,
    refresh_share: float,
) -> list[Target]:
    """The pages worth a fetch now, best first: those due by value, those never fetched by cash.

    without: keys in flight.  discovery_share, refresh_share: of `most`, guaranteed while there is such work; the rest
    goes to discovery first, since a page that nobody has is staler than any.  Raises LeaseLost.
    """
    async with db.transaction() as connection:
        values = {"domain_id": lease.domain.id, "token": lease.token, "at": at, "without": list(without)}
        economy = await (await connection.execute(ECONOMY, values)).fetchone()
        if economy is None:
            raise LeaseLost(f"another worker has taken {lease.domain.authority}")
        return await _best(
            connection,
            values | {"most": most},
            scale=Scale(clock=economy[0], window=window_of(economy[1]), pages=int(economy[2] or 0)),
            discovery_share=discovery_share,
            refresh_share=refresh_share,
        )


async def preview(
    db: Database, domain: Domain, *, most: int, at: datetime, discovery_share: float, refresh_share: float
) -> list[Target]:
    """What `hand_out` would give first, to look at: without a lease, and without touching anything."""
    async with db.transaction() as connection:
        row = await (await connection.execute(ECONOMY_AT_REST, {"domain_id": domain.id})).fetchone()
        if row is None:
            return []
        return await _best(
            connection,
            {"domain_id": domain.id, "at": at, "without": [], "most": most},
            scale=Scale(clock=row[0], window=window_of(row[1]), pages=int(row[2] or 0)),
            discovery_share=discovery_share,
            refresh_share=refresh_share,
        )


async def _best(
    connection: Connection,
    values: dict[str, Any],
    *,
    scale: Scale,
    discovery_share: float,
    refresh_share: float,
) -> list[Target]:
    """Weigh the heads of both orders, and mix the best of them."""
    most = values["most"]
    window = values | {"most": most * WINDOW}
    due = [row[0] for row in await (await connection.execute(DUE_HEAD, window)).fetchall()]
    new = [row[0] for row in await (await connection.execute(NEW_HEAD, window)).fetchall()]
    targets = await _load(connection, values["domain_id"], [*due, *new], scale=scale)
    by_cash = sorted((t for t in targets if t.state is State.NEW), key=lambda t: -t.cash)
    by_value = sorted((t for t in targets if t.state is not State.NEW), key=lambda t: -_value(t, at=values["at"]))
    return _mixed(by_cash, by_value, most=most, discovery_share=discovery_share, refresh_share=refresh_share)


def _mixed(
    new: list[Target], due: list[Target], *, most: int, discovery_share: float, refresh_share: float
) -> list[Target]:
    """At least its share to each kind, the rest to discovery, in turns, so that a cut-off batch keeps the mix."""
    refresh = min(len(due), max(round(most * refresh_share), most - len(new)))
    refresh = min(refresh, most - min(len(new), round(most * discovery_share)))
    discovery = min(len(new), most - refresh)
    marked = [((n + 0.5) / discovery, t) for n, t in enumerate(new[:discovery])]
    marked += [((n + 0.5) / refresh, t) for n, t in enumerate(due[:refresh])]
    return [target for _, target in sorted(marked, key=lambda pair: pair[0])]


def _value(target: Target, *, at: datetime) -> float:
    if target.last_good_at is None:
        return float("inf")  # asked for before and never had
    return value(target.belief, importance=target.importance, unseen=at - target.last_good_at)


async def _load(connection: Connection, domain_id: int, keys: list[PageKey], *, scale: Scale) -> list[Target]:
    if not keys:
        return []
    async with connection.cursor(row_factory=dict_row, binary=True) as cursor:
        await cursor.execute(LOAD, {"domain_id": domain_id, "keys": keys})
        rows = {row["key"]: row for row in await cursor.fetchall()}
    return [_target(rows[key], scale) for key in keys]


def _target(row: dict[str, Any], scale: Scale) -> Target:
    takes_part = row["cash"] is not None
    return Target(
        key=PageKey(row["key"]),
        url=Url(row["url"]),
        depth=row["depth"],
        state=State(row["state"]),
        belief=Belief(row["belief_a"], row["belief_b"]),
        importance=importance(
            row["history"],
            row["cash"],
            clock_last=row["clock"],
            clock_now=scale.clock,
            pages=scale.pages,
            window=scale.window,
        )
        if takes_part
        else 1.0,
        cash=row["cash"] if takes_part else 0,
        validators=Validators(row["etag"], row["last_modified"]) if row["version"] else Validators(),
        received_bytes=row["received_bytes"],
        version=_version(row),
        outlinks=keys_in(row["targets"]),
        status=row["status"],
        failures=row["failures"],
        last_look_at=row["last_look_at"],
        last_good_at=row["last_good_at"],
    )


def _version(row: dict[str, Any]) -> Version | None:
    if not row["version"]:
        return None
    return Version(
        number=row["version"],
        body_digest=row["body_digest"],
        text_digest=row["text_digest"],
        main_digest=row["main_digest"],
        shape_digest=row["shape_digest"],
        fingerprint=from_signed(row["fingerprint"]),
    )


def keys_in(packed: bytes | None) -> tuple[PageKey, ...]:
    """The keys of a row of links, 16 bytes each."""
    return tuple(PageKey(packed[n : n + 16]) for n in range(0, len(packed), 16)) if packed else ()


def from_signed(number: int | None) -> Fingerprint | None:
    """A Fingerprint is unsigned everywhere but in a BIGINT column."""
    return None if number is None else Fingerprint(number & 0xFFFF_FFFF_FFFF_FFFF)


def to_signed(fingerprint: Fingerprint | None) -> int | None:
    """The same the other way round."""
    return None if fingerprint is None else fingerprint - (1 << 64) if fingerprint >= 1 << 63 else fingerprint
