"""Candidates of a hand-out: the first pages of the discovery order and of the due order, read at once and scored."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from operator import attrgetter
from typing import Any, NamedTuple

from crawler.core.budget.cost import RequestKind
from crawler.core.freshness.estimates import DAY, Belief, ChangeValue, factors_of
from crawler.core.freshness.policies import PricePolicy
from crawler.core.freshness.selection import CandidateColumns, Candidates, candidates_of, joined
from crawler.core.freshness.terms import COME_FIRST, Terms
from crawler.core.freshness.value import phase_of
from crawler.core.http.response import NO_VALIDATORS, Validators
from crawler.core.http.urls import PageKey, Url
from crawler.core.opic.order import Order, aged, head_start
from crawler.core.soft_errors import MAX_WITHHELD
from crawler.core.visit.lifecycle import LOOKS_BEFORE_A_FAILING_PAGE_PAYS
from crawler.core.visit.visit import State
from crawler.store.database import Connection
from crawler.store.hand_out.scoring import ScoringContext
from crawler.store.rows import fetch_rows


class CandidateRow(NamedTuple):
    """A candidate as the store reads it: all that its score depends on. Times in days.

    a, b: of today's belief.  amount_total, amount_changes: of the changes found on it.  group_amount: of its group.
    clock: of the domain, in coins, at the last visit or when the page was found.
    signals: since the last good look, by the number of their source.
    activity_ahead: days by which the site's activity has gone ahead of the calendar since then.
    importance: mixed with an equal share by the domain's mix; the mean is 1; rules say more.  is_timed: of a page that
    is not new, due by a clock of its own, so that what it would be worth does not count.  is_dead: it is gone, has
    moved, or never was a page though it was asked for several times.  is_follower: by another page's schedule.
    redirects: that led to it one after another.
    """

    key: PageKey
    url: Url
    state: str
    rank: int
    depth: int
    due_at: datetime | None
    wanted: int
    url_score: float
    a: float
    b: float
    prior_a: float
    prior_b: float
    amount_total: float
    amount_changes: float
    group_amount: float
    cash: int
    clock: float
    importance: float
    unseen: float
    due_in: float
    is_timed: bool
    is_dead: bool
    is_follower: bool
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


# Known pages whether due or not: stored due times are only a place in this order, what decides is today's price.
# New pages of a template that has brought nothing of late are held back: they have a time, or will get one.
# Favoured pages are in a pool of their own, so that their ranks compare with each other only.
# Of either kind fewer, where the other will have its share: known pages that are due, and any new ones.
# Pages that a user has requested (wanted = 1, or 4 where the very page was named), and those whose 404 is to be
# confirmed now (5), have an index of their own, and come with the first new ones.
FRONTIER = """
    WITH flying AS MATERIALIZED (SELECT unnest(%(without)b::bytea[])), due AS MATERIALIZED (
        SELECT FROM frontier
         WHERE domain_id = %(domain_id)s AND state <> 'new' AND due_at <= %(at)s AND wanted NOT IN (1, 4, 5)
           AND key NOT IN (TABLE flying)
         ORDER BY due_at, key LIMIT %(share_known)s
    ), room AS MATERIALIZED (SELECT greatest(%(most_new)s - count(*), 0) AS new FROM due), new AS MATERIALIZED (
        (SELECT * FROM frontier
          WHERE domain_id = %(domain_id)s AND state = 'new' AND due_at IS NULL AND NOT favoured
            AND wanted NOT IN (1, 4, 5) AND section <> ALL(%(held)b) AND key NOT IN (TABLE flying)
          ORDER BY rank DESC, key LIMIT (SELECT new FROM room))
        UNION ALL
        (SELECT * FROM frontier
          WHERE domain_id = %(domain_id)s AND state = 'new' AND due_at IS NULL AND favoured AND wanted NOT IN (1, 4, 5)
            AND key NOT IN (TABLE flying)
          ORDER BY rank DESC, key LIMIT (SELECT new FROM room))
        UNION ALL
        (SELECT * FROM frontier
          WHERE domain_id = %(domain_id)s AND state = 'new' AND due_at <= %(at)s AND wanted NOT IN (1, 4, 5)
            AND key NOT IN (TABLE flying)
          ORDER BY due_at, key LIMIT (SELECT new FROM room)))
    (SELECT * FROM frontier
      WHERE domain_id = %(domain_id)s AND wanted IN (1, 4, 5) AND (wanted <> 5 OR due_at <= %(at)s)
        AND key NOT IN (TABLE flying)
      ORDER BY wanted DESC, key LIMIT %(most_new)s)
    UNION ALL
    SELECT * FROM new
    UNION ALL
    (SELECT * FROM frontier
      WHERE domain_id = %(domain_id)s AND state <> 'new' AND (due_at, key) > (%(after_at)s, %(after_key)s)
        AND wanted NOT IN (1, 4, 5) AND key NOT IN (TABLE flying)
      ORDER BY due_at, key LIMIT greatest(%(most)s - least((SELECT count(*) FROM new), %(share_new)s), 0))
"""
# A part of all pages, in the order of their keys.
SLICE = """
    SELECT * FROM frontier WHERE domain_id = %(domain_id)s AND key > %(after_key)s ORDER BY key LIMIT %(most)s
"""
CHOSEN = "SELECT * FROM frontier WHERE domain_id = %(domain_id)s AND key = ANY(%(keys)s::bytea[])"
# The fields of CandidateRow for such rows of the frontier, found by key.
KNOWN = """
    SELECT p.key, p.url, f.state, f.rank, f.depth, f.due_at,
           CASE WHEN f.wanted = 0 AND p.withheld_since <= %(withheld_before)s THEN 7 ELSE f.wanted END AS wanted,
           f.url_score, g.a + p.evidence_a AS a,
           g.b + p.evidence_b AS b, g.a AS prior_a, g.b AS prior_b,
           p.amount_total, p.amount_changes, g.amount AS group_amount, coalesce(c.net + q.dividend, 0) AS cash,
           coalesce(c.clock, 0) AS clock,
           look_importance(coalesce(u.worth, 1 - %(mix)s::float8 + %(mix)s::float8 * (
                    (1 - %(url_share)s::float8) * page_importance(c.history, c.net + q.dividend, %(circulating)s,
                                                                  c.clock, %(clock)s, %(pages)s, %(passes)s)
                    + %(url_share)s::float8 * f.url_score), 1),
                    f.state = 'new', p.announces, g.first_looks, g.novelty) AS importance,
           coalesce(date_part('epoch', %(at)s - p.last_good_at) / 86400, 0) AS unseen,
           coalesce(date_part('epoch', f.due_at - %(at)s) / 86400, 0) AS due_in,
           f.state <> 'known' OR p.version = 0 OR p.failures > 0 OR p.last_good_at IS NULL OR p.leader IS NOT NULL
               AS is_timed,
           f.state IN ('gone', 'moved') OR (f.state = 'known' AND p.version = 0 AND u.key IS NULL
               AND (p.status BETWEEN 300 AND 399 OR p.failures >= %(many_failures)s)) AS is_dead,
           p.leader IS NOT NULL AS is_follower,
           p.prior_no, p.etag, p.last_modified, p.received_bytes, p.version, p.visits, p.is_rendered,
           u.key IS NOT NULL AS is_list,
           activity_ahead(%(activity_at)s, %(activity_ahead)s, p.last_good_at) AS activity_ahead,
           p.signals AS signals, p.redirects
      FROM ({}) f
      JOIN page p ON p.domain_id = %(domain_id)s AND p.key = f.key
      JOIN prior g ON g.domain_id = %(domain_id)s AND g.no = p.prior_no
      LEFT JOIN cash c ON c.domain_id = %(domain_id)s AND c.key = f.key
      LEFT JOIN pool q ON q.domain_id = %(domain_id)s AND q.pool = c.pool
      LEFT JOIN url_list u ON u.domain_id = %(domain_id)s AND u.key = f.key  -- its worth is what it tells of others
"""


def _rows_of(pages: str) -> str:
    """A statement that gives its columns as arrays in one row: a thousand rows cost more to pass on than to find."""
    columns = ", ".join(f"array_agg(x.{name})" for name in CandidateRow._fields)
    return f"SELECT {columns} FROM ({KNOWN.format(pages)}) x"  # noqa: S608  only our own columns are put in


AS_THEY_ARE = (  # of CandidateColumns
    *("a", "b", "unseen", "due_in", "wanted", "is_timed", "is_dead", "is_follower", "activity_ahead", "signals"),
)
HEADS, SLICES, BY_KEYS = _rows_of(FRONTIER), _rows_of(SLICE), _rows_of(CHOSEN)


@dataclass(frozen=True, slots=True)
class ScoredRows:
    """Candidates with the terms that hold for them today, and as the selection weighs them.

    end: the last place read of the due order; None where nothing follows.
    """

    rows: list[CandidateRow]
    terms: list[Terms]
    importance: list[float]
    head: Candidates
    end: tuple[datetime, PageKey] | None = None

    def __add__(self, more: "ScoredRows") -> "ScoredRows":
        return ScoredRows(
            self.rows + more.rows,
            self.terms + more.terms,
            self.importance + more.importance,
            joined(self.head, more.head),
            more.end,
        )


async def score_head(connection: Connection, values: dict[str, Any], context: ScoringContext) -> ScoredRows:
    """The candidates of now: new pages in the domain's order of discovery, then known ones in the due order.

    values: domain_id, at; without: keys in flight; most_new: of each pool, less the known ones that are due, of those
    share_known at most; most: known ones after (after_at, after_key) of the due order, less the new ones that were
    found, of those share_new at most.
    """
    rows = await _read(connection, HEADS, values, context)
    new = [row for row in rows if row.state == State.NEW]
    known = [row for row in rows if row.state != State.NEW]
    weighed = _scored(_in_order(new, context) + known, context)
    ends = [(row.due_at, row.key) for row in known if row.due_at is not None and row.wanted not in COME_FIRST]
    if not ends or len(ends) < values["most"] - min(len(new), values["share_new"]):
        return weighed
    return replace(weighed, end=max(ends))


async def with_more_new(
    connection: Connection, values: dict[str, Any], context: ScoringContext, weighed: ScoredRows
) -> ScoredRows:
    """The candidates with up to most_new more new pages of each pool, all in the order of discovery."""
    new = [row for row in weighed.rows if row.state == State.NEW]
    known = [row for row in weighed.rows if row.state != State.NEW]
    read = (row.key for row in weighed.rows if row.state == State.NEW or row.wanted in COME_FIRST)
    without = [*values["without"], *read]
    more = await _read(connection, HEADS, values | {"most": 0, "share_known": 0, "without": without}, context)
    both = _scored(_in_order(new + more, context) + known, context)
    return replace(both, end=weighed.end) if more else weighed


async def score_pages(
    connection: Connection, pages: str, values: dict[str, Any], context: ScoringContext
) -> ScoredRows:
    """Pages of any state in the order of their keys, scored.

    pages: SLICES, for the next `most` ones after `after_key`, or BY_KEYS, for those with these `keys`.
    values: of that; domain_id and at.
    """
    return _scored(sorted(await _read(connection, pages, values, context)), context)


async def _read(
    connection: Connection, pages: str, values: dict[str, Any], context: ScoringContext
) -> list[CandidateRow]:
    ordering = context.settings.ordering
    measures = {
        "held": list(context.held_back),
        "many_failures": LOOKS_BEFORE_A_FAILING_PAGE_PAYS,
        "withheld_before": values["at"] - MAX_WITHHELD,
        "circulating": context.circulating,
        "passes": context.window_passes,
        "clock": context.clock,
        "pages": context.pages,
        "activity_at": list(context.activity.at),
        "activity_ahead": list(context.activity.ahead),
        "mix": context.settings.importance_mix,
        "url_share": ordering.url_share if ordering.order is Order.MIXED else 0.0,
    }
    (columns,) = await fetch_rows(connection, pages, values | measures, binary=True)  # of NULLs where there is no page
    return list(map(CandidateRow._make, zip(*columns, strict=True))) if columns[0] else []


def _in_order(new: list[CandidateRow], context: ScoringContext) -> list[CandidateRow]:
    """New pages in the domain's order of discovery; of one rank the richest first, where the order is by cash."""
    ordering = context.settings.ordering
    if ordering.order.is_by_place:
        return sorted(new, key=lambda row: (-row.rank, row.key))

    def place(row: CandidateRow) -> tuple[int, int]:
        favour = ordering.favour_by if ordering.favour and ordering.favours(row.url) else 1.0
        score = ordering.score(row.url) if ordering.order is Order.MIXED else 1.0  # no other order looks at it
        coins = aged(row.cash, clock=row.clock) + head_start(context.rules.score(row.url))
        return -ordering.rank(coins, url_score=score, favour=favour), -coins

    return sorted(new, key=place)


def _scored(rows: list[CandidateRow], context: ScoringContext) -> ScoredRows:
    terms = _terms(rows, context)
    importance = [row.importance for row in rows]
    if context.rules.rules or context.rules.page_score:
        importance = [row.importance * context.rules.weight(row.url) for row in rows]
    is_by_price = isinstance(context.revisit, PricePolicy)
    head = candidates_of(
        CandidateColumns(
            terms,
            importance=importance,
            amount=_amount_factors(rows, context),
            gap=[float("nan") if is_by_price or row.is_timed else _gap_of(row, context) for row in rows],
            is_new=[row.state == State.NEW for row in rows],
            is_had=[row.version > 0 for row in rows],
            phase=[_phase_of(row) for row in rows],
            **{name: list(map(attrgetter(name), rows)) for name in AS_THEY_ARE},
        )
    )
    return ScoredRows(rows, terms, importance, head)


def _amount_factors(rows: list[CandidateRow], context: ScoringContext) -> list[float]:
    """The factor on the importance of each page by how much its changes change; 1 for a page never fetched."""
    if context.settings.value == ChangeValue.CHANGES:
        return [1.0] * len(rows)
    amounts = [(row.amount_total, row.amount_changes, row.group_amount) for row in rows]
    factors = factors_of(amounts, mean=context.mean_amount).tolist()
    return [factor if row.version else 1.0 for row, factor in zip(rows, factors, strict=True)]


def _gap_of(row: CandidateRow, context: ScoringContext) -> float:
    """The days between the last good look at a page and the next, where no price decides: as stored, or for all.

    A first gap is stored as it was cut.
    """
    standing = context.revisit.standing
    return (row.unseen + row.due_in) / _phase_of(row) if standing is None else standing / DAY


def _phase_of(row: CandidateRow) -> float:
    return phase_of(row.key) if row.visits == 1 else 1.0


def held_of(row: CandidateRow) -> Validators:
    """The validators of the page's last good answer; none for a page without a version."""
    return Validators(row.etag, row.last_modified) if row.version else NO_VALIDATORS


def _terms(rows: list[CandidateRow], context: ScoringContext) -> list[Terms]:
    """The terms of each page's next look. Pages that agree in all that the terms depend on share one object."""
    known: dict[tuple[object, ...], Terms] = {}  # by all that they depend on
    kinds: dict[tuple[int, bool, bool], tuple[RequestKind, RequestKind]] = {}  # of pages that need no browser
    has_rules = bool(context.rules.rules)  # without any they are the same for almost all
    found = []
    for row in rows:
        kind = RequestKind.CONDITIONAL if row.version and (row.etag or row.last_modified) else RequestKind.FULL
        if row.is_rendered:
            kind = RequestKind.RENDER
        elif context.trusts and row.version:
            alike = (row.prior_no, bool(row.etag), bool(row.last_modified))
            if alike not in kinds:
                kinds[alike] = context.kinds(held_of(row), row.prior_no)
            kind, otherwise = kinds[alike]
            if kind is RequestKind.HEAD and not context.is_head_worth_it(row.prior_no, body_bytes=row.received_bytes):
                kind = otherwise
        is_list = row.is_list and row.version > 0
        same = (row.prior_no, kind, is_list, has_rules and row.url)
        terms = known.get(same)
        if terms is None:
            prior = Belief(row.prior_a, row.prior_b)
            terms = known[same] = context.terms(
                row.url, prior=prior, amount=row.group_amount, kind=kind, is_list=is_list
            )
        found.append(terms)
    return found
