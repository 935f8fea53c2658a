"""Which page next: handing out the pages that are worth a fetch, best first."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from psycopg.rows import dict_row

from crawler.core.answer import Validators
from crawler.core.belief import Belief
from crawler.core.cash import importance, window_of
from crawler.core.change import Version
from crawler.core.domain import Domain, Lease
from crawler.core.fingerprint import Fingerprint
from crawler.core.order import Ordering
from crawler.core.price import value
from crawler.core.urls import PageKey, Url
from crawler.core.visit import State, Target
from crawler.errors import LeaseLost
from crawler.store.database import Connection, Database

WINDOW = 3  # of the head of an order, how many times what is wanted is weighed before the best are handed out

DUE_HEAD = """
    SELECT key, due_at FROM frontier
     WHERE domain_id = %(domain_id)s AND state <> 'new' AND due_at <= %(at)s AND key <> ALL(%(without)s)
     ORDER BY due_at, key LIMIT %(most)s
"""
# Favoured pages are in a pool of their own, so that their ranks compare with each other only.
NEW_HEADS = """
    (SELECT key FROM frontier
      WHERE domain_id = %(domain_id)s AND state = 'new' AND NOT favoured AND key <> ALL(%(without)s)
      ORDER BY rank DESC, key LIMIT %(most)s)
    UNION ALL
    (SELECT key FROM frontier
      WHERE domain_id = %(domain_id)s AND state = 'new' AND favoured AND key <> ALL(%(without)s)
      ORDER BY rank DESC, key LIMIT %(most)s)
"""
LOAD = """
    SELECT p.key, p.url, f.depth, f.state, f.due_at, f.url_score, p.belief_a, p.belief_b, p.etag, p.last_modified,
           p.received_bytes, p.version, p.body_digest, p.text_digest, p.main_digest, p.shape_digest,
           p.fingerprint, p.status, p.failures, p.last_look_at, p.last_good_at, l.targets, l.elsewhere,
           l.elsewhere_links,
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


@dataclass(frozen=True, slots=True)
class Scale:
    """By what a domain's histories are measured: its clock and window, in coins, and how many pages take part.

    ordering: what its user wants first.
    """

    clock: float
    window: float
    pages: int
    ordering: Ordering


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
    """The pages worth a fetch now, best first: those due by value, those never fetched in the domain's order.

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
            scale=_scale(economy, lease.domain),
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
            scale=_scale(row, domain),
            discovery_share=discovery_share,
            refresh_share=refresh_share,
        )


def _scale(economy: Sequence[Any], domain: Domain) -> Scale:
    clock, circulating, pages = economy
    return Scale(clock, window_of(circulating), int(pages or 0), domain.wishes.ordering)


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
    new = [row[0] for row in await (await connection.execute(NEW_HEADS, window)).fetchall()]
    targets = await _load(connection, values["domain_id"], [*due, *new], scale=scale)
    ordering = scale.ordering
    by_rank = sorted(
        (t for t in targets if t.state is State.NEW),
        key=lambda t: (-ordering.rank(t.cash, depth=t.depth, url_score=ordering.score(t.url)), -t.cash),
    )
    by_value = sorted((t for t in targets if t.state is not State.NEW), key=lambda t: -_value(t, at=values["at"]))
    return _mixed(by_rank, by_value, most=most, discovery_share=discovery_share, refresh_share=refresh_share)


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
        importance=_importance(row, scale) if takes_part else 1.0,
        cash=row["cash"] if takes_part else 0,
        validators=Validators(row["etag"], row["last_modified"]) if row["version"] else Validators(),
        received_bytes=row["received_bytes"],
        version=_version(row),
        outlinks=keys_in(row["targets"]),
        elsewhere=tuple(zip(row["elsewhere"] or (), row["elsewhere_links"] or (), strict=True)),
        status=row["status"],
        failures=row["failures"],
        last_look_at=row["last_look_at"],
        last_good_at=row["last_good_at"],
    )


def _importance(row: dict[str, Any], scale: Scale) -> float:
    popularity = importance(
        row["history"],
        row["cash"],
        clock_last=row["clock"],
        clock_now=scale.clock,
        pages=scale.pages,
        window=scale.window,
    )
    return scale.ordering.importance(popularity, row["url_score"])


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
