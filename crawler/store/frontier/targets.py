"""Targets of the selected pages: everything known about each page, and the request to send."""

from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from struct import unpack
from typing import Any, NamedTuple, cast

from crawler.core.freshness.estimates import ChangeMagnitudes, RateEstimate
from crawler.core.freshness.visit_terms import RequestReason
from crawler.core.http.response import NO_VALIDATORS
from crawler.core.http.urls import Authority, PageKey
from crawler.core.page.snapshot import Version
from crawler.core.validator_trust import (
    WHOLE_DOMAIN,
    Validator,
    choose_head_validators,
    choose_validators,
    is_validator_check_due,
)
from crawler.core.visit.state import State
from crawler.core.visit.visit import ListStats, Target
from crawler.store.database import Connection
from crawler.store.frontier.candidate_query import CandidateRow, ScoredRows, get_page_validators
from crawler.store.frontier.scoring import ScoringContext
from crawler.store.learned.credibility import Trusts
from crawler.store.rows import decode_fingerprint, fetch_rows

STATES = {state.value: state for state in State}  # faster than State(value)
BY_AUDIT = RequestReason.BY_AUDIT
REQUESTS_BY_VALUE = {reason.value: reason for reason in RequestReason}
# Read only for selected pages, because these are most of a page's columns.
DETAILS = """
    SELECT p.key, l.targets, coalesce(l.external_domains, '{}'), coalesce(l.external_link_counts, '{}'), p.status,
           p.reason, p.failures, p.soft_errors, p.withheld_since, p.last_visit_at, p.last_good_at, p.missing_since,
           p.version, p.body_digest, p.text_digest, p.main_digest, p.shape_digest, p.fingerprint, p.is_rendered,
           coalesce(u.kind, ''), u.value, u.reads, u.informative_reads, u.hints_checked, u.hints_true, u.hints_expected
      FROM page p
      LEFT JOIN page_links l ON l.domain_id = %(domain_id)s AND l.key = p.key
      LEFT JOIN url_list u ON u.domain_id = %(domain_id)s AND u.key = p.key
     WHERE p.domain_id = %(domain_id)s AND p.key = ANY(%(keys)b)
"""


class TargetDetails(NamedTuple):
    """The fields of a Target in a row of DETAILS. The defaults are those of an unfetched page."""

    outlinks: tuple[PageKey, ...] = ()
    external_links: tuple[tuple[Authority, int], ...] = ()
    version: Version | None = None
    list_stats: ListStats | None = None
    status: int | None = None
    reason: str = ""
    failures: int = 0
    soft_errors: int = 0
    withheld_since: datetime | None = None
    last_visit_at: datetime | None = None
    last_good_at: datetime | None = None
    missing_since: datetime | None = None


NO_DETAILS = TargetDetails()


def _build_details(row: Sequence[Any]) -> TargetDetails:
    _, links, external_domains, external_link_counts = row[:4]
    number, body, text, main, shape, fingerprint, is_rendered = row[12:19]
    version = Version(number, body, text, main, shape, decode_fingerprint(fingerprint), is_rendered) if number else None
    list_stats = ListStats(*row[19:]) if row[20] is not None else None  # only URL lists have a value
    external_links = tuple(zip(external_domains, external_link_counts, strict=True))
    return TargetDetails(unpack_keys(links), external_links, version, list_stats, *row[4:12])


async def read_targets(
    connection: Connection, domain_id: int, pages: ScoredRows, chosen: Sequence[int], context: ScoringContext
) -> list[Target]:
    """Return the targets of the candidates at these indices, in this order."""
    rows = [pages.rows[n] for n in chosen]
    keys = [row.key for row in rows if row.visits or row.state != State.UNFETCHED or row.is_list]
    detail_rows = await fetch_rows(connection, DETAILS, {"domain_id": domain_id, "keys": keys}, binary=True)
    details = {row[0]: _build_details(row) for row in detail_rows}
    trusts = {no: context.get_trust(no) for no in {WHOLE_DOMAIN, *(row.prior_no for row in rows)}}
    # The revisits of each group so far, including validator checks.
    revisits = Counter({no: trust.revisits for no, trust in trusts.items()})
    found = [(n, details.get(pages.rows[n].key, NO_DETAILS)) for n in chosen]
    return [_build_target(pages, n, each, trusts, revisits, context=context) for n, each in found]


def is_revisit(target: Target) -> bool:
    """Return whether validators or a HEAD could save the body: such visits count toward the next validator check."""
    return bool(target.stored_validators) or target.expected_head is not None


def _build_target(
    pages: ScoredRows, n: int, facts: TargetDetails, trusts: Trusts, revisits: Counter[int], *, context: ScoringContext
) -> Target:
    """Return the target of one candidate. n: its index in `pages`.  revisits: counts by group, updated here.

    A validator check uses neither validators nor a HEAD. If HEADs are possible but not in use, one is tried instead.
    """
    row = pages.rows[n]
    group, trust = row.prior_no, trusts[row.prior_no]
    stored_validators = get_page_validators(row)
    by_head = choose_head_validators(stored_validators, trust) if _can_head_decide(row, facts) else None
    is_check_due = sends_head = False  # is_check_due: this visit is a validator check
    if stored_validators or by_head is not None:
        is_check_due = is_validator_check_due(trust, revisits[group], revisits[WHOLE_DOMAIN])
        revisits[group] += 1
        revisits[WHOLE_DOMAIN] += 1
    if by_head is not None:
        sends_head = context.should_send_head(group, body_bytes=row.received_bytes) != is_check_due
    return Target(
        key=row.key,
        url=row.url,
        depth=row.depth,
        cash=row.cash,
        received_bytes=row.received_bytes,
        visits=row.visits,
        due_at=row.due_at,
        activity_ahead=row.activity_ahead,
        redirects=row.redirects,
        state=STATES[row.state],
        rate_estimate=RateEstimate(row.a, row.b),
        terms=pages.terms[n],
        importance=pages.importance[n],
        magnitudes=ChangeMagnitudes(row.magnitude_total, row.magnitude_changes),
        requested=REQUESTS_BY_VALUE[row.request_reason],
        group=group,
        validators=NO_VALIDATORS if is_check_due else choose_validators(stored_validators, trust),
        stored_validators=stored_validators,
        is_validator_check=is_check_due and not sends_head,
        expected_head=by_head,
        sends_head=sends_head,
        trusts_modified=trust.get_stats(Validator.DATE).is_proven,
        signals=tuple(row.signals),
        **facts._asdict(),
    )


def _can_head_decide(row: CandidateRow, details: TargetDetails) -> bool:
    """Return whether a HEAD may decide whether the page has changed.

    It may not for a page in another state than fetched, a soft error to be confirmed, a full recrawl, a page of an
    audit's sample, or a URL list, whose length may stay the same while a date in it changes.
    """
    if details.version is None or details.soft_errors or row.is_list:
        return False
    has_body = bool(details.version.body_digest and row.received_bytes)
    return has_body and row.state == State.FETCHED and row.request_reason != BY_AUDIT


def unpack_keys(packed: bytes | None) -> tuple[PageKey, ...]:
    """Return the keys in column page_links.targets, 16 bytes each."""
    return cast("tuple[PageKey, ...]", unpack("16s" * (len(packed) // 16), packed)) if packed else ()
