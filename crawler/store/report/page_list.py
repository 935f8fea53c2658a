"""Lists of pages of a domain by state, words and order, one part at a time, and pages of all domains by URL or title.

A domain of up to MAX_SMALL_PAGES pages is read as a whole. In a larger one, an index orders all pages by their next
visit; every other order and the search by words are limited to MAX_CANDIDATES pages, so that no request reads a million
pages.
"""

from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from msgspec import Struct

from crawler.core.domain import Domain
from crawler.core.freshness.visit_terms import RequestReason
from crawler.core.http.urls import Authority, PageKey, Url, compute_page_key
from crawler.core.visit.state import PageCategory
from crawler.errors import BadInput
from crawler.store.database import PREFER_KEY_LOOKUPS, Connection, Database
from crawler.store.report.expressions import PAGES
from crawler.store.report.freshness import (
    ALL,
    FAILING,
    MAX_SMALL_PAGES,
    RANKING_SIZE,
    RENDERED,
    TRACKED,
    read_stored_ranking,
)
from crawler.store.report.limited_search import build_patterns, limit_search
from crawler.store.report.pages import PageLine
from crawler.store.rows import fetch_number, fetch_row, fetch_rows, fetch_values

MAX_CANDIDATES = RANKING_SIZE


class PageOrder(StrEnum):
    """The order of a list of pages."""

    IMPORTANCE = "importance"
    NEXT_VISIT = "next"
    LAST_VISIT = "last"
    CHANGE_RATE = "rate"
    FAILURES = "errors"
    URL = "url"


ORDERS = {
    PageOrder.IMPORTANCE: "importance DESC NULLS LAST, url",
    PageOrder.NEXT_VISIT: "due_at NULLS LAST, url",
    PageOrder.LAST_VISIT: "last_visit_at DESC NULLS LAST, url",
    PageOrder.CHANGE_RATE: "rate_per_day DESC, url",
    PageOrder.FAILURES: "failures DESC, importance DESC NULLS LAST, url",
    PageOrder.URL: "url",
}
# `which` is ALL, FAILING, RENDERED or a category. {page} is the alias of the table of pages, with a dot, or empty.
IS_IN_LIST = f"""
    CASE %(which)s::text WHEN '{ALL}' THEN {{category}} <> '{PageCategory.UNREAD_LIST.value}'
                         WHEN '{FAILING}' THEN {{page}}failures > 0 WHEN '{RENDERED}' THEN {{page}}is_rendered
                         ELSE {{category}} = %(which)s END
"""
LISTED = f"""
    WITH listed AS MATERIALIZED (
        SELECT p.*, coalesce(v.title, '') AS title
          FROM ({PAGES} {{keys}}) p
          LEFT JOIN snapshot v ON v.domain_id = %(domain_id)s AND v.key = p.key AND v.number = p.version)
    SELECT *, count(*) OVER () AS matches FROM listed
     WHERE {IS_IN_LIST.format(category="category", page="")}
       AND (cardinality(%(words)s::text[]) = 0 OR url ILIKE ALL(%(words)s) OR title ILIKE ALL(%(words)s))
     ORDER BY {{order}} LIMIT %(most)s OFFSET %(skipped)s
"""  # noqa: S608  only our own expressions are inserted
WITH_KEYS = "AND p.key = ANY(%(keys)s)"
# In the order of the index frontier_due_order.
DUE_KEYS = """
    SELECT f.key, f.due_at FROM frontier f
     WHERE f.domain_id = %(domain_id)s AND f.state <> 'unfetched' AND (f.state = %(which)s OR %(which)s = 'all')
       AND (f.due_at, f.key) > (%(after_at)s::timestamptz, %(after_key)s::bytea)
     ORDER BY f.due_at, f.key LIMIT %(most)s
"""
# Without an order, so that it ends with the first matches.
KEYS_BY_WORDS = f"""
    SELECT p.key
      FROM page p JOIN frontier f ON f.domain_id = %(domain_id)s AND f.key = p.key
      LEFT JOIN url_list u ON u.domain_id = %(domain_id)s AND u.key = p.key
     WHERE p.domain_id = %(domain_id)s AND p.url ILIKE ALL(%(words)s)
       AND {IS_IN_LIST.format(category="page_category(f.state, p.version, u.kind)", page="p.")}
     LIMIT %(most)s
"""  # noqa: S608  only our own expressions are inserted
FOUND_URL = """
    SELECT p.url, d.authority AS domain,
           coalesce((SELECT v.title FROM snapshot v
                      WHERE v.domain_id = %(domain_id)s AND v.key = p.key AND v.number = p.version), '') AS title
      FROM page p JOIN domain d ON d.id = p.domain_id
     WHERE p.domain_id = %(domain_id)s AND p.key = %(key)s
"""
FOUND_URLS = """
    SELECT p.url, d.authority AS domain,
           coalesce((SELECT v.title FROM snapshot v
                      WHERE v.domain_id = p.domain_id AND v.key = p.key AND v.number = p.version), '') AS title
      FROM (SELECT * FROM page WHERE url ILIKE ALL(%(words)s) LIMIT %(most)s) p
      JOIN domain d ON d.id = p.domain_id
"""
FOUND_TITLES = """
    SELECT p.url, d.authority AS domain, v.title
      FROM (SELECT v.domain_id, v.key, v.number, v.title FROM snapshot v
             WHERE v.title ILIKE ALL(%(words)s) LIMIT 10 * %(most)s) v
      JOIN page p ON p.domain_id = v.domain_id AND p.key = v.key AND p.version = v.number
      JOIN domain d ON d.id = p.domain_id
     LIMIT %(most)s
"""


class PageQuery(Struct, frozen=True):
    """A part of the list of a domain's pages.

    which: ALL, FAILING, RENDERED or a PageCategory.  words: parts of the URL or title, all of which must occur.
    after: `more` of the part before; empty for the first part.
    """

    which: str = ALL
    order: PageOrder = PageOrder.IMPORTANCE
    words: tuple[str, ...] = ()
    after: str = ""


class ListedPage(PageLine, frozen=True):
    """A page in a list. category: its state as reports count it.  is_duplicate: it shares the schedule of another.

    matches: the number of pages in all parts of the list.
    """

    category: PageCategory = PageCategory.FETCHED
    request_reason: RequestReason = RequestReason.NONE
    is_duplicate: bool = False
    matches: int = 0


class PageListPart(Struct, frozen=True):
    """A part of the list of a domain's pages. order: the order of the list, which is NEXT_VISIT if there is no other.

    more: the cursor of the next part; empty on the last one.  matches: the number of pages in all parts; None if they
    were not counted.  is_limited: the list has only the most important pages, or the first matches, of a large domain.
    """

    pages: tuple[ListedPage, ...]
    order: PageOrder
    more: str
    matches: int | None
    is_limited: bool


class FoundPage(Struct, frozen=True):
    """A page whose URL or title contains the search words."""

    url: Url
    domain: Authority
    title: str


async def list_pages(db: Database, domain: Domain, query: PageQuery, *, max_count: int, at: datetime) -> PageListPart:
    """Return a part of the list of a domain's pages. Raise BadInput for an invalid cursor or a search that takes long.

    In a large domain, the order by next visit includes all fetched pages, unless words or a rarer state are selected.
    """
    values = {"domain_id": domain.id, "at": at, "which": query.which, "words": build_patterns(query.words)}
    async with db.transaction() as connection:
        is_large = await fetch_number(connection, TRACKED, values) > MAX_SMALL_PAGES
        keys, order = None, query.order
        if is_large:
            is_by_due = order is PageOrder.NEXT_VISIT and query.which in {ALL, PageCategory.FETCHED}
            if not is_by_due or query.words:
                keys = await _find_candidates(connection, domain, query, values)
            if keys is None and query.which not in {ALL, PageCategory.FETCHED}:
                return PageListPart((), order, "", None, is_limited=False)  # the pages are being counted
            if keys is None:
                return await _list_by_due(connection, query.after, values, max_count=max_count)
            await connection.execute(PREFER_KEY_LOOKUPS)
        skipped = _parse_number(query.after)
        values |= {"keys": keys, "most": max_count, "skipped": skipped}
        statement = LISTED.format(order=ORDERS[order], keys=WITH_KEYS if keys is not None else "")
        pages = await fetch_values(connection, ListedPage, statement, values)
    matches = pages[0].matches if pages else 0
    end = skipped + len(pages)
    is_limited = keys is not None and len(keys) >= MAX_CANDIDATES
    return PageListPart(tuple(pages), order, str(end) if end < matches else "", matches, is_limited)


async def _find_candidates(
    connection: Connection, domain: Domain, query: PageQuery, values: dict[str, object]
) -> list[PageKey] | None:
    """Return the pages of a large domain to choose from; None if it was never counted, so that no ranking is stored."""
    if not query.words:
        return await read_stored_ranking(connection, domain, query.which, top=MAX_CANDIDATES, at=None)
    rows = await _search(connection, KEYS_BY_WORDS, values | {"most": MAX_CANDIDATES})
    return [PageKey(key) for (key,) in rows]


async def _list_by_due(
    connection: Connection, after: str, values: dict[str, object], *, max_count: int
) -> PageListPart:
    """Return a part of the list in the order of the next visit, from the index."""
    after_at, after_key = _parse_place(after)
    which = values["which"] if values["which"] == PageCategory.FETCHED else ALL
    place = {"which": which, "after_at": after_at, "after_key": after_key, "most": max_count + 1}
    rows = await fetch_rows(connection, DUE_KEYS, values | place)
    keys = [key for key, _ in rows[:max_count]]
    await connection.execute(PREFER_KEY_LOOKUPS)
    whole = {"keys": keys, "most": max_count, "skipped": 0, "which": ALL, "words": []}
    statement = LISTED.format(order="due_at, key", keys=WITH_KEYS)
    pages = await fetch_values(connection, ListedPage, statement, values | whole)
    last_at, last_key = (rows[max_count - 1][1], rows[max_count - 1][0]) if len(rows) > max_count else (None, b"")
    more = f"{last_at.timestamp():.6f}_{last_key.hex()}" if last_at is not None else ""
    return PageListPart(tuple(pages), PageOrder.NEXT_VISIT, more, None, is_limited=False)


async def find_pages(db: Database, words: tuple[str, ...], *, in_titles: bool, max_count: int) -> list[FoundPage]:
    """Return pages of all domains whose URL, or with `in_titles` whose title, contains all words.

    Raise BadInput if this takes longer than SEARCH_MS.
    """
    values = {"words": build_patterns(words), "most": max_count}
    async with db.transaction() as connection:
        rows = await _search(connection, FOUND_TITLES if in_titles else FOUND_URLS, values)
    return [FoundPage(*row) for row in rows]


async def find_page(db: Database, domain: Domain, url: Url) -> FoundPage | None:
    """Return the page of a URL; None if the domain has no such page."""
    row = await fetch_row(db, FOUND_URL, {"domain_id": domain.id, "key": compute_page_key(url)})
    return None if row is None else FoundPage(*row)


async def _search(connection: Connection, statement: str, values: dict[str, object]) -> list[tuple[Any, ...]]:
    async with limit_search(connection, remedy="search for a whole URL, or in one domain"):
        return await fetch_rows(connection, statement, values)


def _parse_number(after: str) -> int:
    """Return the number of pages in the parts before."""
    if after and not (after.isascii() and after.isdigit() and len(after) <= 4):
        raise BadInput(f"{after[:40]!r} is not a valid cursor of this list: go back to its first part")
    return int(after or 0)


def _parse_place(after: str) -> tuple[datetime, bytes]:
    """Return the due time and key of the last page in the part before."""
    if not after:
        return datetime.min.replace(tzinfo=UTC), b""
    seconds, _, key = after.partition("_")
    try:
        return datetime.fromtimestamp(float(seconds), UTC), bytes.fromhex(key)
    except (ValueError, OverflowError, OSError) as error:
        raise BadInput(f"{after[:40]!r} is not a valid cursor of this list: go back to its first part") from error
