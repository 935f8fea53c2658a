"""Which page next: handing out the pages that are worth a fetch, best first."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from psycopg.rows import dict_row

from crawler.core.answer import Validators
from crawler.core.belief import DAY, Belief
from crawler.core.cash import importance
from crawler.core.change import Version
from crawler.core.domain import Domain, Lease
from crawler.core.fingerprint import Fingerprint
from crawler.core.order import Ordering
from crawler.core.price import weight_of
from crawler.core.selection import Candidate, Selection, head_of, select
from crawler.core.urls import PageKey, Url
from crawler.core.visit import State, Target, Wanted
from crawler.errors import LeaseLost
from crawler.store.database import Connection, Database
from crawler.store.standards import Standards, Usual, standards_of

BEGINNING = datetime(1, 1, 1, tzinfo=UTC)
WINDOW = 3  # of the head of an order, how many times what is wanted is weighed before the best are handed out

# Whether due or not: stored due times are only a place in this order, what decides is today's price.
DUE_HEAD = """
    SELECT key, due_at FROM frontier
     WHERE domain_id = %(domain_id)s AND state <> 'new' AND (due_at, key) > (%(after_at)s, %(after_key)s)
       AND key <> ALL(%(without)s)
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
    SELECT p.key, p.url, f.depth, f.state, f.due_at, f.wanted, f.url_score, p.evidence_a, p.evidence_b, g.a AS prior_a,
           g.b AS prior_b, p.etag, p.last_modified,
           p.received_bytes, p.version, p.body_digest, p.text_digest, p.main_digest, p.shape_digest,
           p.fingerprint, p.status, p.failures, p.last_look_at, p.last_good_at, l.targets, l.elsewhere,
           l.elsewhere_links,
           c.net + q.dividend AS cash, c.history, c.clock
      FROM page p
      JOIN frontier f ON f.domain_id = %(domain_id)s AND f.key = p.key
      JOIN prior g ON g.domain_id = %(domain_id)s AND g.no = p.prior_no
      LEFT JOIN page_links l ON l.domain_id = %(domain_id)s AND l.key = p.key
      LEFT JOIN cash c ON c.domain_id = %(domain_id)s AND c.key = p.key
      LEFT JOIN pool q ON q.domain_id = %(domain_id)s AND q.pool = c.pool
     WHERE p.domain_id = %(domain_id)s AND p.key = ANY(%(keys)s)
"""
PUT_OFF = """
    UPDATE frontier f SET due_at = x.due_at
      FROM unnest(%(keys)s::bytea[], %(due_at)s::timestamptz[]) AS x(key, due_at)
     WHERE f.domain_id = %(domain_id)s AND f.key = x.key AND f.state <> 'new' AND f.wanted = 0
"""
SPEND_FLOOR = "UPDATE domain_state SET spent_floor = spent_floor + %(floor)s WHERE domain_id = %(domain_id)s"
MOST_WINDOWS = 16  # of the due order, read for one hand-out


@dataclass(frozen=True, slots=True)
class Handed:
    """Pages to look at, best first, and whether the domain's Last-Modified may be believed meanwhile."""

    targets: list[Target]
    trusts_modified: bool


async def hand_out(
    db: Database, lease: Lease, *, most: int, at: datetime, without: Collection[PageKey], usual: Usual
) -> Handed:
    """The pages worth a fetch now: known ones by value over price, those never fetched in the domain's order.

    without: keys in flight.  Pages that turn out not to be worth their price yet get a new due time.  Raises LeaseLost.
    """
    async with db.transaction() as connection:
        values = {"domain_id": lease.domain.id, "at": at, "without": list(without)}
        standards = await standards_of(connection, lease.domain, at=at, usual=usual, token=lease.token)
        if standards is None:
            raise LeaseLost(f"another worker has taken {lease.domain.authority}")
        targets, selection = await _best(connection, values | {"most": most}, standards=standards, usual=usual)
        if len(selection.later):
            due = [at + timedelta(days=float(days)) for days in selection.due_in]
            keys = [targets[n].key for n in selection.later]
            await connection.execute(PUT_OFF, values | {"keys": keys, "due_at": due})
        if selection.floor:
            await connection.execute(SPEND_FLOOR, values | {"floor": selection.floor})
        return Handed([targets[n] for n in selection.chosen], standards.trusts_modified)


async def preview(db: Database, domain: Domain, *, most: int, at: datetime, usual: Usual) -> list[Target]:
    """What `hand_out` would give first, to look at: without a lease, and without touching anything."""
    async with db.transaction() as connection:
        values = {"domain_id": domain.id, "at": at, "without": [], "most": most}
        standards = await standards_of(connection, domain, at=at, usual=usual)
        if standards is None:
            return []
        targets, selection = await _best(connection, values, standards=standards, usual=usual)
        return [targets[n] for n in selection.chosen]


async def _best(
    connection: Connection, values: dict[str, Any], *, standards: Standards, usual: Usual
) -> tuple[list[Target], Selection]:
    """Weigh the heads of both orders, window by window of the due order while that yields."""
    at, most, domain_id = values["at"], values["most"], values["domain_id"]
    window = values | {"most": most * WINDOW}
    new = [row[0] for row in await (await connection.execute(NEW_HEADS, window)).fetchall()]
    targets = _in_order(await _load(connection, domain_id, new, standards=standards), standards.wishes.ordering)
    places = {target.key: n for n, target in enumerate(targets)}
    due_at: dict[PageKey, datetime] = {}
    after: tuple[datetime, bytes] = (BEGINNING, b"")
    for _ in range(MOST_WINDOWS):
        rows = await (
            await connection.execute(DUE_HEAD, window | {"after_at": after[0], "after_key": after[1]})
        ).fetchall()
        due_at |= {PageKey(key): due for key, due in rows}
        targets += await _load(connection, domain_id, [key for key, _ in rows], standards=standards)
        selection = select(
            head_of([_candidate(t, due_at.get(t.key), place=places.get(t.key), at=at) for t in targets]),
            slots=most,
            discovery_share=usual.discovery_share,
            refresh_share=usual.refresh_share,
            floor_left=standards.floor_left,
        )
        if len(rows) < window["most"] or not selection.further:
            break
        after = rows[-1][1], rows[-1][0]
    return targets, selection


def _in_order(new: list[Target], ordering: Ordering) -> list[Target]:
    """New pages in the domain's order of discovery; of one rank the richest first."""

    def place(target: Target) -> tuple[int, int]:
        favour = ordering.favour_by if ordering.favours(target.url) else 1.0
        score = ordering.score(target.url)
        return -ordering.rank(target.cash, depth=target.depth, url_score=score, favour=favour), -target.cash

    return sorted(new, key=place)


def _candidate(target: Target, due_at: datetime | None, *, place: int | None, at: datetime) -> Candidate:
    """A page as the selection weighs it. place: of a new one, in the order of discovery."""
    terms = target.terms
    is_new = target.state is State.NEW
    has_version = target.state is State.KNOWN and target.version is not None and target.last_good_at is not None
    return Candidate(
        a=target.belief.a,
        b=target.belief.b / terms.activity,
        weight=weight_of(target.importance),
        price=terms.price,
        least=terms.least / DAY,
        most=terms.most / DAY,
        unseen=(at - target.last_good_at) / DAY if target.last_good_at is not None else 0.0,
        due_in=(due_at - at) / DAY if due_at is not None else 0.0,
        is_new=is_new,
        is_wanted=target.wanted is not Wanted.NO,
        is_timed=not is_new and (not has_version or target.failures > 0 or terms.once),
        cash=-float(place or 0),
    )


async def _load(
    connection: Connection, domain_id: int, keys: Sequence[PageKey], *, standards: Standards
) -> list[Target]:
    if not keys:
        return []
    async with connection.cursor(row_factory=dict_row, binary=True) as cursor:
        await cursor.execute(LOAD, {"domain_id": domain_id, "keys": list(keys)})
        rows = {row["key"]: row for row in await cursor.fetchall()}
    return [_target(rows[key], standards) for key in keys]


def _target(row: dict[str, Any], standards: Standards) -> Target:
    takes_part = row["cash"] is not None
    prior = Belief(row["prior_a"], row["prior_b"])
    validators = Validators(row["etag"], row["last_modified"]) if row["version"] else Validators()
    popularity = _importance(row, standards) if takes_part else 1.0
    return Target(
        key=PageKey(row["key"]),
        url=Url(row["url"]),
        depth=row["depth"],
        state=State(row["state"]),
        belief=Belief(prior.a + row["evidence_a"], prior.b + row["evidence_b"]),
        terms=standards.terms(Url(row["url"]), prior=prior, conditional=bool(validators)),
        importance=popularity * standards.rules.terms(Url(row["url"])).weight,
        wanted=Wanted(row["wanted"]),
        cash=row["cash"] if takes_part else 0,
        validators=validators,
        received_bytes=row["received_bytes"],
        version=_version(row),
        outlinks=keys_in(row["targets"]),
        elsewhere=tuple(zip(row["elsewhere"] or (), row["elsewhere_links"] or (), strict=True)),
        status=row["status"],
        failures=row["failures"],
        last_look_at=row["last_look_at"],
        last_good_at=row["last_good_at"],
    )


def _importance(row: dict[str, Any], standards: Standards) -> float:
    popularity = importance(
        row["history"],
        row["cash"],
        clock_last=row["clock"],
        clock_now=standards.clock,
        pages=standards.pages,
        window=standards.window,
    )
    return standards.wishes.ordering.importance(popularity, row["url_score"])


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
