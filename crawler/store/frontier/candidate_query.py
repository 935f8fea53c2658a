"""Candidates for selection: the first pages of the discovery order and the due order, read in one query and scored."""

from collections.abc import Sequence
from datetime import datetime
from operator import attrgetter
from typing import Any, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from crawler.core.budget.cost import RequestKind
from crawler.core.freshness.estimates import DAY, ChangeWeight, RateEstimate, compute_magnitude_factors
from crawler.core.freshness.policies import ValuePolicy
from crawler.core.freshness.selection import CandidateColumns, Candidates, build_candidates, join_candidates
from crawler.core.freshness.visit_terms import PRIORITY_REQUESTS, VisitTerms
from crawler.core.freshness.visit_value import compute_phase
from crawler.core.http.response import NO_VALIDATORS, Validators
from crawler.core.http.urls import PageKey, Url
from crawler.core.opic.order import Order, age_cash, compute_head_start
from crawler.core.soft_errors import MAX_WITHHELD
from crawler.core.visit.lifecycle import FAILURES_UNTIL_LEAF
from crawler.core.visit.state import State
from crawler.store.database import Connection
from crawler.store.frontier.scoring import ScoringContext
from crawler.store.rows import fetch_rows


class CandidateRow(NamedTuple):
    """A candidate with everything that its score depends on.

    a, b: its change-rate estimate.  magnitude_total, magnitude_changes: the sum and the number of the magnitudes of its
    changes.  group_magnitude: the expected magnitude of a change in its group.  unseen: days since the last successful
    visit.  due_in: days until it is due, negative if it is overdue.  clock: the clock of the domain, in cash, at the
    last visit or discovery of the page.  signals: counts since the last successful visit, by source number.
    activity_ahead: days by which the site activity has run ahead of the calendar since that visit.  importance: of a
    visit (SQL function visit_importance), without the factors of rules.
    is_timed: the page is due by its stored time regardless of its value; meaningless for unfetched pages.
    is_dead: it is gone or has moved, or it never was a page: its last visit found a redirect, or several in a row
    failed.  is_duplicate: it shares the schedule of a canonical page.  redirects: how many in a row led to it.
    """

    key: PageKey
    url: Url
    state: str
    rank: int
    depth: int
    due_at: datetime | None
    request_reason: int
    url_score: float
    a: float
    b: float
    prior_a: float
    prior_b: float
    magnitude_total: float
    magnitude_changes: float
    group_magnitude: float
    cash: int
    clock: float
    importance: float
    unseen: float
    due_in: float
    is_timed: bool
    is_dead: bool
    is_duplicate: bool
    prior_no: int
    etag: str | None
    last_modified: str | None
    received_bytes: int
    version: int
    visits: int
    is_rendered: bool
    is_list: bool
    activity_ahead: float
    signals: Sequence[int]
    redirects: int


# Reads fetched pages whether due or not: due times only define the order, and the current price decides.
# Unfetched pages of deferred templates are skipped unless they are boosted or their due time has come.
# Boosted pages have their own pool, so their ranks are comparable only among themselves.
# The limit of unfetched pages is reduced by the due fetched pages that are sure of a slot, and that of fetched pages by
# the unfetched pages that are sure of one.
# Pages requested by a user (request_reason 1, or 4 if the URL was named) and 404s to be confirmed now (5) have their
# own index and come first.
FRONTIER = """
    WITH dispatched AS MATERIALIZED (SELECT unnest(%(without)b::bytea[])), due AS MATERIALIZED (
        SELECT FROM frontier
         WHERE domain_id = %(domain_id)s AND state <> 'unfetched' AND due_at <= %(at)s
           AND request_reason NOT IN (1, 4, 5) AND key NOT IN (TABLE dispatched)
         ORDER BY due_at, key LIMIT %(share_fetched)s
    ), max_new AS MATERIALIZED (SELECT greatest(%(most_new)s - count(*), 0) AS pages FROM due), new AS MATERIALIZED (
        (SELECT * FROM frontier
          WHERE domain_id = %(domain_id)s AND state = 'unfetched' AND due_at IS NULL AND NOT boosted
            AND request_reason NOT IN (1, 4, 5) AND section <> ALL(%(deferred)b) AND key NOT IN (TABLE dispatched)
          ORDER BY rank DESC, key LIMIT (SELECT pages FROM max_new))
        UNION ALL
        (SELECT * FROM frontier
          WHERE domain_id = %(domain_id)s AND state = 'unfetched' AND due_at IS NULL AND boosted
            AND request_reason NOT IN (1, 4, 5) AND key NOT IN (TABLE dispatched)
          ORDER BY rank DESC, key LIMIT (SELECT pages FROM max_new))
        UNION ALL
        (SELECT * FROM frontier
          WHERE domain_id = %(domain_id)s AND state = 'unfetched' AND due_at <= %(at)s
            AND request_reason NOT IN (1, 4, 5) AND key NOT IN (TABLE dispatched)
          ORDER BY due_at, key LIMIT (SELECT pages FROM max_new)))
    (SELECT * FROM frontier
      WHERE domain_id = %(domain_id)s AND request_reason IN (1, 4, 5) AND (request_reason <> 5 OR due_at <= %(at)s)
        AND key NOT IN (TABLE dispatched)
      ORDER BY request_reason DESC, key LIMIT %(most_new)s)
    UNION ALL
    SELECT * FROM new
    UNION ALL
    (SELECT * FROM frontier
      WHERE domain_id = %(domain_id)s AND state <> 'unfetched' AND (due_at, key) > (%(after_at)s, %(after_key)s)
        AND request_reason NOT IN (1, 4, 5) AND key NOT IN (TABLE dispatched)
      ORDER BY due_at, key LIMIT greatest(%(most)s - least((SELECT count(*) FROM new), %(share_new)s), 0))
"""
# A range of all pages in key order.
SLICE = "SELECT * FROM frontier WHERE domain_id = %(domain_id)s AND key > %(after_key)s ORDER BY key LIMIT %(most)s"
PAGES_BY_KEY = "SELECT * FROM frontier WHERE domain_id = %(domain_id)s AND key = ANY(%(keys)s::bytea[])"
# The fields of CandidateRow for rows of the frontier. request_reason 7: BY_DEADLINE.
CANDIDATE_ROWS = """
    SELECT p.key, p.url, f.state, f.rank, f.depth, f.due_at,
           CASE WHEN f.request_reason = 0 AND p.withheld_since <= %(withheld_before)s THEN 7 ELSE f.request_reason END
           AS request_reason, f.url_score, g.a + p.rate_a AS a, g.b + p.rate_b AS b, g.a AS prior_a, g.b AS prior_b,
           p.magnitude_total, p.magnitude_changes, g.magnitude AS group_magnitude,
           coalesce(c.net + q.dividend, 0) AS cash,
           coalesce(c.clock, 0) AS clock, visit_importance(coalesce(u.value, 1 - %(mix)s::float8 + %(mix)s::float8 * (
                    (1 - %(url_weight)s::float8) * page_importance(c.history, c.net + q.dividend, %(circulating)s,
                                                                  c.clock, %(clock)s, %(pages)s, %(passes)s)
                    + %(url_weight)s::float8 * f.url_score), 1),
                    f.state = 'unfetched', p.announces, g.first_visits, g.novelty) AS importance,
           coalesce(date_part('epoch', %(at)s - p.last_good_at) / 86400, 0) AS unseen,
           coalesce(date_part('epoch', f.due_at - %(at)s) / 86400, 0) AS due_in,
           f.state <> 'fetched' OR p.version = 0 OR p.failures > 0 OR p.last_good_at IS NULL OR p.canonical IS NOT NULL
               AS is_timed,
           f.state IN ('gone', 'moved') OR (f.state = 'fetched' AND p.version = 0 AND u.key IS NULL
               AND (p.status BETWEEN 300 AND 399 OR p.failures >= %(many_failures)s)) AS is_dead,
           p.canonical IS NOT NULL AS is_duplicate,
           p.prior_no, p.etag, p.last_modified, p.received_bytes, p.version, p.visits, p.is_rendered,
           u.key IS NOT NULL AS is_list,
           activity_ahead(%(activity_at)s, %(activity_ahead)s, p.last_good_at) AS activity_ahead,
           p.signals AS signals, p.redirects
      FROM ({}) f
      JOIN page p ON p.domain_id = %(domain_id)s AND p.key = f.key
      JOIN prior g ON g.domain_id = %(domain_id)s AND g.no = p.prior_no
      LEFT JOIN cash c ON c.domain_id = %(domain_id)s AND c.key = f.key
      LEFT JOIN pool q ON q.domain_id = %(domain_id)s AND q.pool = c.pool
      LEFT JOIN url_list u ON u.domain_id = %(domain_id)s AND u.key = f.key
"""


def _build_array_query(pages: str) -> str:
    """Return a statement that reads candidates as one row with an array per field, which is faster than many rows."""
    columns = ", ".join(f"array_agg(x.{name})" for name in CandidateRow._fields)
    return f"SELECT {columns} FROM ({CANDIDATE_ROWS.format(pages)}) x"  # noqa: S608  only our own columns are inserted


COPIED_COLUMNS = (  # fields of CandidateColumns with the same name
    *("a", "b", "unseen", "due_in", "request_reason", "is_timed", "is_dead", "is_duplicate", "activity_ahead"),
    "signals",
)
HEAD_ROWS, SLICE_ROWS, KEY_ROWS = map(_build_array_query, (FRONTIER, SLICE, PAGES_BY_KEY))


class ScoredRows(Struct, frozen=True):
    """Candidates with the terms of their visits.

    terms, importance: by index of the row; importance includes the factors of rules and scores.  head: the candidates
    as the selection needs them.  end: the last place read in the due order; None if nothing follows.
    """

    rows: list[CandidateRow]
    terms: list[VisitTerms]
    importance: list[float]
    head: Candidates
    end: tuple[datetime, PageKey] | None = None

    def __add__(self, other: "ScoredRows") -> "ScoredRows":
        return ScoredRows(
            self.rows + other.rows,
            self.terms + other.terms,
            self.importance + other.importance,
            join_candidates(self.head, other.head),
            other.end,
        )


async def score_head(connection: Connection, values: dict[str, Any], context: ScoringContext) -> ScoredRows:
    """Read and score the candidates: unfetched pages in discovery order, then fetched ones in due order.

    values: domain_id; at; without: keys being fetched; most_new: limit of unfetched pages in each pool, minus the due
    fetched pages (up to share_fetched); most: limit of fetched pages after (after_at, after_key) in the due order,
    minus the unfetched pages found (up to share_new).
    """
    unfetched, fetched = _split_by_state(await _read_rows(connection, HEAD_ROWS, values, context))
    scored = _score_rows(_sort_unfetched(unfetched, context) + fetched, context)
    others = (row for row in fetched if row.request_reason not in PRIORITY_REQUESTS)
    ends = [(row.due_at, row.key) for row in others if row.due_at is not None]
    if not ends or len(ends) < values["most"] - min(len(unfetched), values["share_new"]):
        return scored
    return replace(scored, end=max(ends))


async def add_unfetched_pages(
    connection: Connection, values: dict[str, Any], context: ScoringContext, scored: ScoredRows
) -> ScoredRows:
    """Add up to most_new more unfetched pages of each pool to the candidates, in discovery order."""
    unfetched, fetched = _split_by_state(scored.rows)
    seen = unfetched + [row for row in fetched if row.request_reason in PRIORITY_REQUESTS]
    values = values | {"most": 0, "share_fetched": 0, "without": [*values["without"], *(row.key for row in seen)]}
    more = await _read_rows(connection, HEAD_ROWS, values, context)
    both = _score_rows(_sort_unfetched(unfetched + more, context) + fetched, context)
    return replace(both, end=scored.end) if more else scored


async def score_pages(
    connection: Connection, pages: str, values: dict[str, Any], context: ScoringContext
) -> ScoredRows:
    """Read and score pages of any state in key order.

    pages: SLICE_ROWS for the next `most` pages after `after_key`, or KEY_ROWS for the pages with these `keys`.
    values: the parameters of that statement, domain_id and at.
    """
    return _score_rows(sorted(await _read_rows(connection, pages, values, context)), context)


def _split_by_state(rows: list[CandidateRow]) -> tuple[list[CandidateRow], list[CandidateRow]]:
    """Return the unfetched pages and the others."""
    unfetched = [row for row in rows if row.state == State.UNFETCHED]
    return unfetched, [row for row in rows if row.state != State.UNFETCHED]


async def _read_rows(
    connection: Connection, pages: str, values: dict[str, Any], context: ScoringContext
) -> list[CandidateRow]:
    ordering = context.settings.ordering
    context_params = {
        "deferred": list(context.deferred),
        "many_failures": FAILURES_UNTIL_LEAF,
        "withheld_before": values["at"] - MAX_WITHHELD,
        "circulating": context.circulating,
        "passes": context.window_passes,
        "clock": context.clock,
        "pages": context.pages,
        "activity_at": list(context.activity.at),
        "activity_ahead": list(context.activity.ahead),
        "mix": context.settings.importance_mix,
        "url_weight": ordering.url_weight if ordering.order is Order.MIXED else 0.0,
    }
    # All columns are NULL if there is no page.
    (columns,) = await fetch_rows(connection, pages, values | context_params, binary=True)
    return list(map(CandidateRow._make, zip(*columns, strict=True))) if columns[0] else []


def _sort_unfetched(unfetched: list[CandidateRow], context: ScoringContext) -> list[CandidateRow]:
    """Sort unfetched pages in discovery order; if the order is by cash, pages of equal rank by cash."""
    ordering = context.settings.ordering
    if ordering.order.is_by_position:
        return sorted(unfetched, key=lambda row: (-row.rank, row.key))

    def compute_order(row: CandidateRow) -> tuple[int, int]:
        boost = ordering.boost_factor if ordering.boost and ordering.is_boosted(row.url) else 1.0
        score = ordering.score_url(row.url) if ordering.order is Order.MIXED else 1.0  # other orders ignore it
        cash = age_cash(row.cash, clock=row.clock) + compute_head_start(context.rules.compute_score(row.url))
        return -ordering.compute_rank(cash, url_score=score, boost=boost), -cash

    return sorted(unfetched, key=compute_order)


def _score_rows(rows: list[CandidateRow], context: ScoringContext) -> ScoredRows:
    terms = _build_terms(rows, context)
    importance = [row.importance for row in rows]
    if context.rules.rules or context.rules.page_score:
        importance = [row.importance * context.rules.compute_weight(row.url) for row in rows]
    is_by_value = isinstance(context.revisit_policy, ValuePolicy)
    head = build_candidates(
        CandidateColumns(
            terms,
            importance=importance,
            magnitude_factor=_compute_magnitude_factors(rows, context),
            gap=[float("nan") if is_by_value or row.is_timed else _compute_gap(row, context) for row in rows],
            is_unfetched=[row.state == State.UNFETCHED for row in rows],
            has_version=[row.version > 0 for row in rows],
            phase=[_compute_phase(row) for row in rows],
            **{name: list(map(attrgetter(name), rows)) for name in COPIED_COLUMNS},
        )
    )
    return ScoredRows(rows, terms, importance, head)


def _compute_magnitude_factors(rows: list[CandidateRow], context: ScoringContext) -> list[float]:
    """Return the factor on each page's importance from the magnitude of its changes; 1 without a version."""
    if context.settings.change_weight == ChangeWeight.EQUAL:
        return [1.0] * len(rows)
    magnitudes = [(row.magnitude_total, row.magnitude_changes, row.group_magnitude) for row in rows]
    factors = compute_magnitude_factors(magnitudes, mean=context.mean_magnitude).tolist()
    return [factor if row.version else 1.0 for row, factor in zip(rows, factors, strict=True)]


def _compute_gap(row: CandidateRow, context: ScoringContext) -> float:
    """Return the interval in days after the last successful visit under a policy that is not by value.

    The stored interval after a first visit was shortened by the phase, which is undone here.
    """
    fixed_interval = context.revisit_policy.fixed_interval
    return (row.unseen + row.due_in) / _compute_phase(row) if fixed_interval is None else fixed_interval / DAY


def _compute_phase(row: CandidateRow) -> float:
    return compute_phase(row.key) if row.visits == 1 else 1.0


def get_page_validators(row: CandidateRow) -> Validators:
    """Return the validators of the page's last successful visit; none for a page without a version."""
    return Validators(row.etag, row.last_modified) if row.version else NO_VALIDATORS


def _build_terms(rows: list[CandidateRow], context: ScoringContext) -> list[VisitTerms]:
    """Return the terms of each page's next visit. Pages with the same terms share one object."""
    terms_by_key: dict[tuple[object, ...], VisitTerms] = {}  # by everything that they depend on
    kinds: dict[tuple[int, bool, bool], tuple[RequestKind, RequestKind]] = {}  # for pages that are not rendered
    has_rules = bool(context.rules.rules)  # without rules, nearly all pages have the same terms
    all_terms = []
    for row in rows:
        kind = RequestKind.CONDITIONAL if row.version and (row.etag or row.last_modified) else RequestKind.FULL
        if row.is_rendered:
            kind = RequestKind.RENDER
        elif context.trusts and row.version:
            kind_key = (row.prior_no, bool(row.etag), bool(row.last_modified))
            if kind_key not in kinds:
                kinds[kind_key] = context.list_request_kinds(get_page_validators(row), row.prior_no)
            kind, otherwise = kinds[kind_key]
            if kind is RequestKind.HEAD and not context.should_send_head(row.prior_no, body_bytes=row.received_bytes):
                kind = otherwise
        is_list = row.is_list and row.version > 0
        terms_key = (row.prior_no, kind, is_list, has_rules and row.url)
        terms = terms_by_key.get(terms_key)
        if terms is None:
            prior = RateEstimate(row.prior_a, row.prior_b)
            magnitude = row.group_magnitude
            terms = context.build_terms(row.url, prior=prior, magnitude=magnitude, kind=kind, is_list=is_list)
            terms_by_key[terms_key] = terms
        all_terms.append(terms)
    return all_terms
