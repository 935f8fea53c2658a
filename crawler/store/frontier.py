"""Which page next: handing out the pages that are worth a fetch, best first."""

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import chain
from math import isinf
from struct import iter_unpack
from typing import Any, NamedTuple

from crawler.core.answer import NO_VALIDATORS
from crawler.core.belief import Belief
from crawler.core.change import Version
from crawler.core.domain import Domain, Lease
from crawler.core.fingerprint import Fingerprint
from crawler.core.head import told_by_head
from crawler.core.selection import Selection, select
from crawler.core.trust import Kind, Trust, is_challenge, sendable
from crawler.core.urls import Authority, PageKey
from crawler.core.visit import NEVER, State, Target, Terms, Wanted
from crawler.errors import LeaseLost
from crawler.store import trusts
from crawler.store.database import Connection, Database
from crawler.store.heads import Row, Weighed, held_of, weigh
from crawler.store.standards import Standards, Usual, standards_of

STATES = {state.value: state for state in State}  # which are looked up for every page of a hand-out
WANTED = {wanted.value: wanted for wanted in Wanted}
BEGINNING = datetime(1, 1, 1, tzinfo=UTC)
WINDOW = 3  # of the head of the due order, how many times what is wanted is weighed before the best are handed out,
MOST_BESIDE = 100  # but no more than so many pages beside what is wanted: weighing costs as much as handing out

# Of those handed out only: links are most of what is known of a page.
LINKS = """
    SELECT key, targets, elsewhere, elsewhere_links FROM page_links
     WHERE domain_id = %(domain_id)s AND key = ANY(%(keys)b)
"""
# In this transaction alone. For many keys the planner would rather read a whole partition than find them. And nothing
# that it writes needs to outlive a crash: a due time is worked out again, what counts is debited before.
BY_KEY = """
    SELECT set_config('enable_seqscan', 'off', true), set_config('enable_hashjoin', 'off', true),
           set_config('enable_mergejoin', 'off', true), set_config('synchronous_commit', 'off', true)
"""
PUT_OFF = """
    UPDATE frontier f SET due_at = x.due_at, wanted = 0
      FROM unnest(%(keys)b::bytea[], %(due_at)b::timestamptz[]) AS x(key, due_at)
     WHERE f.domain_id = %(domain_id)s AND f.key = x.key AND f.state <> 'new' AND f.wanted <> 1
"""
SPEND_FLOOR = "UPDATE domain_state SET spent_floor = spent_floor + %(floor)s WHERE domain_id = %(domain_id)s"
MOST_WINDOWS = 16  # of the due order, read for one hand-out


class Links(NamedTuple):
    """A row of LINKS, but for its key."""

    targets: bytes = b""
    elsewhere: Sequence[Authority] = ()
    elsewhere_links: Sequence[int] = ()


NO_LINKS = Links()


async def hand_out(
    db: Database, lease: Lease, *, most: int, at: datetime, without: Collection[PageKey], usual: Usual
) -> list[Target]:
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
            due = [due_in(float(days), at=at) for days in selection.due_in]
            keys = [weighed.rows[n].key for n in selection.later]
            await connection.execute(PUT_OFF, values | {"keys": keys, "due_at": due})
        if selection.floor:
            await connection.execute(SPEND_FLOOR, values | {"floor": selection.floor})
        targets = await _targets(connection, lease.domain.id, weighed, selection.chosen.tolist(), standards)
        await trusts.count_revisits(connection, lease.domain.id, [each.group for each in targets if is_revisit(each)])
        return targets


async def preview(db: Database, domain: Domain, *, most: int, at: datetime, usual: Usual) -> list[Target]:
    """What `hand_out` would give first, to look at: without a lease, and without touching anything."""
    async with db.transaction() as connection:
        values = {"domain_id": domain.id, "at": at, "without": [], "most": most}
        standards = await standards_of(connection, domain, at=at, usual=usual)
        if standards is None:
            return []
        await connection.execute(BY_KEY)
        weighed, selection = await _best(connection, values, standards=standards, usual=usual)
        return await _targets(connection, domain.id, weighed, selection.chosen.tolist(), standards)


async def _best(
    connection: Connection, values: dict[str, Any], *, standards: Standards, usual: Usual
) -> tuple[Weighed, Selection]:
    """Weigh the heads of both orders, then window by window of the due order while that yields."""
    slots = values["most"]
    window = {
        "most": min(slots * WINDOW, slots + MOST_BESIDE),
        "most_new": slots,  # they are read in the order in which they are handed out
        "share_new": round(slots * usual.discovery_share),
        "after_at": BEGINNING,
        "after_key": b"",
    }
    weighed = await weigh(connection, values | window, standards)
    for left in reversed(range(MOST_WINDOWS)):
        selection = select(
            weighed.head,
            slots=slots,
            discovery_share=usual.discovery_share,
            refresh_share=usual.refresh_share,
            turn=max(standards.turn - slots, 0),  # these slots have been granted before
            floor_left=standards.floor_left,
        )
        if not left or weighed.end is None or not selection.further:
            break
        window |= {"most_new": 0, "after_at": weighed.end[0], "after_key": weighed.end[1]}
        weighed += await weigh(connection, values | window, standards)
    return weighed, selection


async def _targets(
    connection: Connection, domain_id: int, pages: Weighed, chosen: Sequence[int], standards: Standards
) -> list[Target]:
    """The chosen ones, with their links, as they are handed out."""
    keys = [pages.rows[n].key for n in chosen if pages.rows[n].state != State.NEW]
    async with connection.cursor(binary=True) as cursor:
        await cursor.execute(LINKS, {"domain_id": domain_id, "keys": keys})
        links = {row[0]: Links(*row[1:]) for row in await cursor.fetchall()}
    targets, revisits = [], Counter[int]()
    for n in chosen:
        row = pages.rows[n]
        trust = standards.trust(row.prior_no)
        revisit = trust.revisits + revisits[row.prior_no]
        known_links = links.get(row.key, NO_LINKS)
        target = _target(row, pages.terms[n], pages.importance[n], known_links, trust, is_slot=is_challenge(revisit))
        if target.by_head is not None:
            is_worth_it = standards.is_head_worth_it(row.prior_no, body_bytes=row.received_bytes)
            target = _asked_by_head(target, is_worth_it=is_worth_it, is_slot=is_challenge(revisit))
        revisits[row.prior_no] += is_revisit(target)
        targets.append(target)
    return targets


def _asked_by_head(target: Target, *, is_worth_it: bool, is_slot: bool) -> Target:
    """With a HEAD first; a challenge believes it no more than validators. Where it was of no use, it is tried then."""
    if is_worth_it == is_slot:
        validators = NO_VALIDATORS if is_slot else target.validators
        return replace(target, challenge=is_slot, validators=validators)
    return replace(target, asks_head=True, challenge=False)


def is_revisit(target: Target) -> bool:
    """Whether something is believed of the page, so that the look is one of those of which some are challenges."""
    return bool(target.held) or target.by_head is not None


def _target(row: Row, terms: Terms, importance: float, links: Links, trust: Trust, *, is_slot: bool) -> Target:
    """is_slot: it is this look's turn to be a challenge."""
    held = held_of(row)
    challenge = bool(held) and is_slot
    # Not where a full look is wanted: of a page that is gone, to be read anew, or one of a random sample.
    can_be_told = row.state == State.KNOWN and row.body_digest and row.received_bytes and row.wanted != Wanted.BY_AUDIT
    return Target(
        key=row.key,
        url=row.url,
        depth=row.depth,
        state=STATES[row.state],
        belief=Belief(row.a, row.b),
        terms=terms,
        importance=importance,
        wanted=WANTED[row.wanted],
        cash=row.cash,
        group=row.prior_no,
        validators=NO_VALIDATORS if challenge else sendable(held, trust),
        held=held,
        challenge=challenge,
        by_head=told_by_head(held, trust) if can_be_told else None,
        trusts_modified=trust.of(Kind.DATE).is_proven,
        received_bytes=row.received_bytes,
        version=_version(row),
        outlinks=keys_in(links.targets),
        elsewhere=tuple(zip(links.elsewhere, links.elsewhere_links, strict=True)),
        status=row.status,
        reason=row.reason,
        failures=row.failures,
        walled=row.walled,
        last_look_at=row.last_look_at,
        last_good_at=row.last_good_at,
    )


def _version(row: Row) -> Version | None:
    if not row.version:
        return None
    return Version(
        number=row.version,
        body_digest=row.body_digest,
        text_digest=row.text_digest,
        main_digest=row.main_digest,
        shape_digest=row.shape_digest,
        fingerprint=from_signed(row.fingerprint),
    )


def due_in(days: float, *, at: datetime) -> datetime:
    """The instant so many days from now; inf is never."""
    return NEVER if isinf(days) else at + timedelta(days=days)


def keys_in(packed: bytes | None) -> tuple[PageKey, ...]:
    """The keys of a row of links, 16 bytes each."""
    return tuple(map(PageKey, chain.from_iterable(iter_unpack("16s", packed)))) if packed else ()


def from_signed(number: int | None) -> Fingerprint | None:
    """A Fingerprint is unsigned everywhere but in a BIGINT column."""
    return None if number is None else Fingerprint(number & 0xFFFF_FFFF_FFFF_FFFF)


def to_signed(fingerprint: Fingerprint | None) -> int | None:
    """The same the other way round."""
    return None if fingerprint is None else fingerprint - (1 << 64) if fingerprint >= 1 << 63 else fingerprint
