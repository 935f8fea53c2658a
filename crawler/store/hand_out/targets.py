"""Targets of the pages that were selected: with all that is known of each, and the request that it gets."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from struct import unpack
from typing import NamedTuple, cast

from crawler.core.freshness import Amounts, Belief, Wanted
from crawler.core.http import NO_VALIDATORS, Authority, PageKey
from crawler.core.page import Version
from crawler.core.validators import (
    WHOLE_DOMAIN,
    Trust,
    Validator,
    head_validators,
    is_challenge_due,
    validators_to_send,
)
from crawler.core.visit.visit import KnownList, State, Target
from crawler.store.columns import from_signed
from crawler.store.database import Connection
from crawler.store.hand_out.candidates import CandidateRow, ScoredRows, held_of
from crawler.store.hand_out.scoring import ScoringContext

STATES = {state.value: state for state in State}  # which are looked up for every page
WANTED = {wanted.value: wanted for wanted in Wanted}
# Of those handed out only: it is most of what is known of a page.
DETAILS = """
    SELECT p.key, l.targets, coalesce(l.external_domains, '{}'), coalesce(l.external_link_counts, '{}'), p.body_digest,
           p.text_digest, p.main_digest, p.shape_digest, p.fingerprint, p.status, p.reason, p.failures, p.soft_errors,
           p.withheld_since, p.last_look_at, p.last_good_at, p.missing_since, p.is_rendered, u.kind, u.worth, u.reads,
           u.told,
           u.hints_checked, u.hints_true, u.hints_expected
      FROM page p
      LEFT JOIN page_links l ON l.domain_id = %(domain_id)s AND l.key = p.key
      LEFT JOIN url_list u ON u.domain_id = %(domain_id)s AND u.key = p.key
     WHERE p.domain_id = %(domain_id)s AND p.key = ANY(%(keys)b)
"""


class Details(NamedTuple):
    """A row of DETAILS without its key. The defaults are those of a page that was never looked at."""

    links: bytes | None = None
    external_domains: Sequence[Authority] = ()
    external_link_counts: Sequence[int] = ()
    body_digest: bytes = b""
    text_digest: bytes = b""
    main_digest: bytes = b""
    shape_digest: bytes = b""
    fingerprint: int | None = None
    status: int | None = None
    reason: str = ""
    failures: int = 0
    soft_errors: int = 0
    withheld_since: datetime | None = None
    last_look_at: datetime | None = None
    last_good_at: datetime | None = None
    missing_since: datetime | None = None
    is_rendered: bool = False
    list_kind: str | None = None
    list_worth: float = 1.0
    list_reads: int = 0
    list_told: int = 0
    hints_checked: int = 0
    hints_true: int = 0
    hints_expected: float = 0.0


UNSEEN = Details()


@dataclass(slots=True)
class GroupTrust:
    """Pages that are trusted alike, or all of them. revisits: handed out so far, of which some are challenges."""

    trust: Trust
    trusts_modified: bool
    revisits: int


async def targets_of(
    connection: Connection, domain_id: int, pages: ScoredRows, chosen: Sequence[int], context: ScoringContext
) -> list[Target]:
    """Targets of the candidates at these indices, in this order."""
    rows = [pages.rows[n] for n in chosen]
    keys = [row.key for row in rows if row.visits or row.state != State.NEW]
    async with connection.cursor(binary=True) as cursor:
        await cursor.execute(DETAILS, {"domain_id": domain_id, "keys": keys})
        details = {row[0]: Details(*row[1:]) for row in await cursor.fetchall()}
    groups = {no: _group(context.trust(no)) for no in {WHOLE_DOMAIN, *(row.prior_no for row in rows)}}
    return [_target(pages, n, details.get(pages.rows[n].key, UNSEEN), groups, context) for n in chosen]


def _group(trust: Trust) -> GroupTrust:
    return GroupTrust(trust, trusts_modified=trust.of(Validator.DATE).is_proven, revisits=trust.revisits)


def is_revisit(target: Target) -> bool:
    """Whether validators or a HEAD could spare the body, so that the look counts towards the next challenge."""
    return bool(target.held) or target.by_head is not None


def _target(
    pages: ScoredRows, n: int, details: Details, groups: dict[int, GroupTrust], context: ScoringContext
) -> Target:
    """The target of one candidate.

    A challenge uses neither validators nor a HEAD. Where HEADs have been of no use, one is tried in its place.
    """
    row = pages.rows[n]
    group, whole = groups[row.prior_no], groups[WHOLE_DOMAIN]
    held = held_of(row)
    by_head = head_validators(held, group.trust) if _can_be_told(row, details) else None
    is_slot = asks_head = False  # whether it is this look's turn to be a challenge
    if held or by_head is not None:
        is_slot = is_challenge_due(group.trust, group.revisits, whole.revisits)
        group.revisits += 1
        whole.revisits += 1
    if by_head is not None:
        asks_head = context.is_head_worth_it(row.prior_no, body_bytes=row.received_bytes) != is_slot
    return Target(
        key=row.key,
        url=row.url,
        depth=row.depth,
        state=STATES[row.state],
        belief=Belief(row.a, row.b),
        terms=pages.terms[n],
        importance=pages.importance[n],
        amounts=Amounts(row.amount_total, row.amount_changes),
        wanted=WANTED[row.wanted],
        cash=row.cash,
        group=row.prior_no,
        validators=NO_VALIDATORS if is_slot else validators_to_send(held, group.trust),
        held=held,
        challenge=is_slot and not asks_head,
        by_head=by_head,
        asks_head=asks_head,
        trusts_modified=group.trusts_modified,
        received_bytes=row.received_bytes,
        version=_version(row.version, details),
        outlinks=keys_in(details.links),
        external_links=tuple(zip(details.external_domains, details.external_link_counts, strict=True)),
        known_list=_known_list(row, details),
        status=details.status,
        reason=details.reason,
        looks=row.visits,
        failures=details.failures,
        soft_errors=details.soft_errors,
        withheld_since=details.withheld_since,
        last_look_at=details.last_look_at,
        last_good_at=details.last_good_at,
        missing_since=details.missing_since,
        due_at=row.due_at,
        activity_ahead=row.activity_ahead,
        signals=tuple(row.signals),
        redirects=row.redirects,
    )


def _known_list(row: CandidateRow, details: Details) -> KnownList | None:
    if not row.is_list:
        return None
    return KnownList(
        kind=details.list_kind or "",
        worth=details.list_worth,
        reads=details.list_reads,
        told=details.list_told,
        hints_checked=details.hints_checked,
        hints_true=details.hints_true,
        hints_expected=details.hints_expected,
    )


def _can_be_told(row: CandidateRow, details: Details) -> bool:
    """Whether a HEAD may decide: not for a page that is gone, is to be read anew, or is of an audit's sample.

    Nor for a list, whose length may stay while a date in it moves.
    """
    return (
        not row.is_list
        and bool(row.state == State.KNOWN and details.body_digest and row.received_bytes)
        and row.wanted != Wanted.BY_AUDIT
    )


def _version(number: int, details: Details) -> Version | None:
    if not number:
        return None
    return Version(
        number=number,
        body_digest=details.body_digest,
        text_digest=details.text_digest,
        main_digest=details.main_digest,
        shape_digest=details.shape_digest,
        fingerprint=from_signed(details.fingerprint),
        is_rendered=details.is_rendered,
    )


def keys_in(packed: bytes | None) -> tuple[PageKey, ...]:
    """The keys of a row of links, 16 bytes each."""
    return cast("tuple[PageKey, ...]", unpack("16s" * (len(packed) // 16), packed)) if packed else ()
