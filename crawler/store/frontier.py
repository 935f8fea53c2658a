"""Which page next: handing out the pages that are worth a fetch, best first."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from psycopg.rows import dict_row

from crawler.core.answer import NO_VALIDATORS, Validators
from crawler.core.belief import DAY, Belief
from crawler.core.cash import importance
from crawler.core.change import Version
from crawler.core.domain import Domain, Lease
from crawler.core.fingerprint import Fingerprint
from crawler.core.order import Order, Ordering
from crawler.core.price import weight_of
from crawler.core.selection import Head, Selection, head_in, select
from crawler.core.urls import Authority, PageKey, Url
from crawler.core.visit import State, Target, Terms, Wanted
from crawler.errors import LeaseLost
from crawler.store.database import Connection, Database
from crawler.store.standards import Standards, Usual, standards_of

BEGINNING = datetime(1, 1, 1, tzinfo=UTC)
WINDOW = 3  # of the head of an order, how many times what is wanted is weighed before the best are handed out,
MOST_BESIDE = 100  # but no more than so many pages beside what is wanted: weighing costs as much as handing out

# All that is known of the pages of a head but their links, found by key from the head's rows.
SEEN = """
    f.key, f.due_at, f.state, f.depth, f.wanted, f.url_score, p.url, p.evidence_a, p.evidence_b, g.a AS prior_a,
    g.b AS prior_b, p.etag, p.last_modified, p.received_bytes, p.version, p.body_digest, p.text_digest, p.main_digest,
    p.shape_digest, p.fingerprint, p.status, p.failures, p.last_look_at, p.last_good_at, c.net + q.dividend AS cash,
    c.history, c.clock
"""
BESIDE = """
      JOIN page p ON p.domain_id = %(domain_id)s AND p.key = f.key
      JOIN prior g ON g.domain_id = %(domain_id)s AND g.no = p.prior_no
      LEFT JOIN cash c ON c.domain_id = %(domain_id)s AND c.key = f.key
      LEFT JOIN pool q ON q.domain_id = %(domain_id)s AND q.pool = c.pool
"""
# Whether due or not: stored due times are only a place in this order, what decides is today's price.
DUE_HEAD = f"""
    SELECT {SEEN}
      FROM (SELECT * FROM frontier
             WHERE domain_id = %(domain_id)s AND state <> 'new' AND (due_at, key) > (%(after_at)s, %(after_key)s)
               AND key <> ALL(%(without)b)
             ORDER BY due_at, key LIMIT %(most)s) f {BESIDE}
"""  # noqa: S608  only our own columns are put in
# Favoured pages are in a pool of their own, so that their ranks compare with each other only.
NEW_HEADS = f"""
    SELECT {SEEN}
      FROM ((SELECT * FROM frontier
              WHERE domain_id = %(domain_id)s AND state = 'new' AND NOT favoured AND key <> ALL(%(without)b)
              ORDER BY rank DESC, key LIMIT %(most)s)
            UNION ALL
            (SELECT * FROM frontier
              WHERE domain_id = %(domain_id)s AND state = 'new' AND favoured AND key <> ALL(%(without)b)
              ORDER BY rank DESC, key LIMIT %(most)s)) f {BESIDE}
"""  # noqa: S608  only our own columns are put in
# Of those handed out only: links are most of what is known of a page.
LINKS = """
    SELECT key, targets, elsewhere, elsewhere_links FROM page_links
     WHERE domain_id = %(domain_id)s AND key = ANY(%(keys)b)
"""
# For many keys the planner would rather read a whole partition than find them. In this transaction alone.
BY_KEY = """
    SELECT set_config('enable_seqscan', 'off', true), set_config('enable_hashjoin', 'off', true),
           set_config('enable_mergejoin', 'off', true)
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
        await connection.execute(BY_KEY)
        weighed, selection = await _best(connection, values | {"most": most}, standards=standards, usual=usual)
        if len(selection.later):
            due = [at + timedelta(days=float(days)) for days in selection.due_in]
            keys = [weighed[n].key for n in selection.later]
            await connection.execute(PUT_OFF, values | {"keys": keys, "due_at": due})
        if selection.floor:
            await connection.execute(SPEND_FLOOR, values | {"floor": selection.floor})
        targets = await _targets(connection, lease.domain.id, [weighed[n] for n in selection.chosen])
        return Handed(targets, standards.trusts_modified)


async def preview(db: Database, domain: Domain, *, most: int, at: datetime, usual: Usual) -> list[Target]:
    """What `hand_out` would give first, to look at: without a lease, and without touching anything."""
    async with db.transaction() as connection:
        values = {"domain_id": domain.id, "at": at, "without": [], "most": most}
        standards = await standards_of(connection, domain, at=at, usual=usual)
        if standards is None:
            return []
        await connection.execute(BY_KEY)
        weighed, selection = await _best(connection, values, standards=standards, usual=usual)
        return await _targets(connection, domain.id, [weighed[n] for n in selection.chosen])


@dataclass(frozen=True, slots=True)
class _Weighed:
    """A page at the head of an order: what is stored of it, but for its links, and what it is measured by today."""

    row: dict[str, Any]
    belief: Belief
    terms: Terms
    importance: float

    @property
    def key(self) -> PageKey:
        return PageKey(self.row["key"])


async def _best(
    connection: Connection, values: dict[str, Any], *, standards: Standards, usual: Usual
) -> tuple[list[_Weighed], Selection]:
    """Weigh the heads of both orders, window by window of the due order while that yields."""
    at, most = values["at"], values["most"]
    window = values | {"most": min(most * WINDOW, most + MOST_BESIDE)}
    pages = _in_order(await _weigh(connection, NEW_HEADS, window, standards), standards.wishes.ordering)
    after: tuple[datetime, bytes] = (BEGINNING, b"")
    for _ in range(MOST_WINDOWS):
        head = await _weigh(connection, DUE_HEAD, window | {"after_at": after[0], "after_key": after[1]}, standards)
        pages += head
        selection = select(
            _head(pages, at=at),
            slots=most,
            discovery_share=usual.discovery_share,
            refresh_share=usual.refresh_share,
            floor_left=standards.floor_left,
        )
        if len(head) < window["most"] or not selection.further:
            break
        after = max((page.row["due_at"], page.row["key"]) for page in head)
    return pages, selection


def _in_order(new: list[_Weighed], ordering: Ordering) -> list[_Weighed]:
    """New pages in the domain's order of discovery; of one rank the richest first."""

    def place(page: _Weighed) -> tuple[int, int]:
        url, cash = page.row["url"], page.row["cash"] or 0
        favour = ordering.favour_by if ordering.favour and ordering.favours(url) else 1.0
        score = ordering.score(url) if ordering.order is Order.MIXED else 1.0  # no other order looks at it
        return -ordering.rank(cash, depth=page.row["depth"], url_score=score, favour=favour), -cash

    return sorted(new, key=place)


def _head(pages: Sequence[_Weighed], *, at: datetime) -> Head:
    """Pages as the selection weighs them; the new ones first, in the order of discovery."""
    rows, terms = [page.row for page in pages], [page.terms for page in pages]
    return head_in(
        {
            "a": [page.belief.a for page in pages],
            "b": [page.belief.b / page.terms.activity for page in pages],
            "weight": [weight_of(page.importance) for page in pages],
            "price": [each.price for each in terms],
            "least": [each.least / DAY for each in terms],
            "most": [each.most / DAY for each in terms],
            "unseen": [(at - (row["last_good_at"] or at)) / DAY for row in rows],
            "due_in": [((row["due_at"] or at) - at) / DAY for row in rows],
            "is_new": [row["state"] == State.NEW for row in rows],
            "is_wanted": [row["wanted"] != Wanted.NO for row in rows],
            "is_timed": [_is_timed(page) for page in pages],
            "is_ruled": [each.is_ruled for each in terms],
            "cash": range(0, -len(pages), -1),
        }
    )


def _is_timed(page: _Weighed) -> bool:
    """Whether a page is due by a clock of its own: what it would be worth does not count."""
    row = page.row
    has_version = row["state"] == State.KNOWN and row["version"] > 0 and row["last_good_at"] is not None
    return row["state"] != State.NEW and (not has_version or row["failures"] > 0 or page.terms.once)


async def _weigh(connection: Connection, head: str, values: dict[str, Any], standards: Standards) -> list[_Weighed]:
    known: dict[tuple[Any, ...], Terms] = {}  # without rules they are the same for almost all
    async with connection.cursor(row_factory=dict_row, binary=True) as cursor:
        await cursor.execute(head.encode(), values)
        return [_weighed(row, standards, known) for row in await cursor.fetchall()]


def _weighed(row: dict[str, Any], standards: Standards, known: dict[tuple[Any, ...], Terms]) -> _Weighed:
    """known: terms by all that they depend on."""
    url, a, b = Url(row["url"]), row["prior_a"], row["prior_b"]
    is_conditional = row["version"] > 0 and bool(row["etag"] or row["last_modified"])
    same = (a, b, is_conditional, url if standards.rules.rules else None)
    terms = known.get(same) or standards.terms(url, prior=Belief(a, b), conditional=is_conditional)
    known[same] = terms
    popularity = _importance(row, standards) if row["cash"] is not None else 1.0
    return _Weighed(
        row,
        belief=Belief(a + row["evidence_a"], b + row["evidence_b"]),
        terms=terms,
        importance=popularity * standards.rules.terms(url).weight,
    )


async def _targets(connection: Connection, domain_id: int, pages: Sequence[_Weighed]) -> list[Target]:
    """The same pages, with their links, as they are handed out."""
    async with connection.cursor(binary=True) as cursor:
        await cursor.execute(LINKS, {"domain_id": domain_id, "keys": [page.key for page in pages]})
        links = {row[0]: row[1:] for row in await cursor.fetchall()}
    return [_target(page, *links.get(page.key, (b"", (), ()))) for page in pages]


def _target(page: _Weighed, targets: bytes, elsewhere: Sequence[Authority], elsewhere_links: Sequence[int]) -> Target:
    row = page.row
    return Target(
        key=page.key,
        url=Url(row["url"]),
        depth=row["depth"],
        state=State(row["state"]),
        belief=page.belief,
        terms=page.terms,
        importance=page.importance,
        wanted=Wanted(row["wanted"]),
        cash=row["cash"] or 0,
        validators=_validators(row),
        received_bytes=row["received_bytes"],
        version=_version(row),
        outlinks=keys_in(targets),
        elsewhere=tuple(zip(elsewhere, elsewhere_links, strict=True)),
        status=row["status"],
        failures=row["failures"],
        last_look_at=row["last_look_at"],
        last_good_at=row["last_good_at"],
    )


def _validators(row: dict[str, Any]) -> Validators:
    return Validators(row["etag"], row["last_modified"]) if row["version"] else NO_VALIDATORS


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
