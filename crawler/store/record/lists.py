"""URL lists: admit the pages that they name, compare their dates, and count what each list contributes."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict, replace

from crawler.core.change.change import Change
from crawler.core.domain import Lease
from crawler.core.freshness.estimates import DAY
from crawler.core.freshness.signals import ChangeSignal, SignalSource
from crawler.core.freshness.visit_terms import CrawlDefaults, RequestReason
from crawler.core.http.urls import PageKey
from crawler.core.opic.order import Order
from crawler.core.visit.lists import ListedLink, find_signal_time, is_in_future
from crawler.core.visit.state import TEMPORARY_REDIRECTS, State
from crawler.core.visit.update import INFORMATIVE_CHANGES
from crawler.core.visit.visit import Link, Visit
from crawler.store.claim.active_lease import fence
from crawler.store.database import REUSE_KEY_LOOKUPS, Connection, Database
from crawler.store.record import admissions, novelty
from crawler.store.record.opic import load_opic_batch, write_opic_batch
from crawler.store.record.positions import PagePosition
from crawler.store.record.signals import apply_signals
from crawler.store.rows import (
    build_placeholders,
    build_unnest,
    build_upsert_set,
    clean_text,
    fetch_rows,
    fetch_value,
    split_into_columns,
)

MAX_FEEDS = 16  # feeds of a domain found in the heads of pages: some sites have a comment feed for each page
FIRST_LISTS = 8  # lists named by one list that are fetched before any page; the others wait in discovery order
HINTED_CHANGES = 0.25  # weight of a changefreq in the change-rate estimate of an unfetched page, in observed changes

DATES = """
    SELECT x.key, a.at, coalesce(a.is_open, false), p.last_good_at
      FROM unnest(%(keys)s::bytea[]) AS x(key)
      JOIN page p ON p.domain_id = %(domain_id)s AND p.key = x.key
      LEFT JOIN announced a ON a.domain_id = %(domain_id)s AND a.key = x.key AND a.source = %(source)s
"""
DATE_COLUMNS = "key bytea, at timestamptz, is_open bool"
PUT_DATES = f"""
    INSERT INTO announced (domain_id, key, source, at, list_key, is_open)
    SELECT %(domain_id)s, x.key, %(source)s, x.at, %(list_key)s, x.is_open FROM {build_unnest(DATE_COLUMNS)}
    ON CONFLICT (domain_id, key, source) DO UPDATE
       SET at = excluded.at, list_key = excluded.list_key, is_open = announced.is_open OR excluded.is_open
"""  # noqa: S608  only our own columns are inserted
ADD_LISTS = """
    INSERT INTO url_list (domain_id, key, found_by, found_at)
    SELECT %(domain_id)s, f.key, %(found_by)s, %(at)s
      FROM frontier f WHERE f.domain_id = %(domain_id)s AND f.key = ANY(%(keys)s)
    ON CONFLICT DO NOTHING
 RETURNING key
"""
FETCH_FIRST = """
    UPDATE frontier SET request_reason = %(request_reason)s, due_at = NULL
     WHERE domain_id = %(domain_id)s AND key = ANY(%(keys)s) AND state = 'unfetched'
"""
# A dead link may have been published before its page. One that a list names is revisited after a quarter of its wait,
# at most 30 days; if these have passed, at once.
RETRY_GONE = """
    UPDATE frontier f SET due_at = x.retry_at, request_reason = %(request_reason)s
      FROM (SELECT o.key, greatest(%(at)s,
                       p.last_visit_at + least(o.due_at - p.last_visit_at, interval '120 days') / 4) AS retry_at
              FROM frontier o JOIN page p ON p.domain_id = %(domain_id)s AND p.key = o.key
             WHERE o.domain_id = %(domain_id)s AND o.key = ANY(%(keys)s) AND o.state = 'gone'
               AND o.request_reason = 0 AND p.version = 0) x
     WHERE f.domain_id = %(domain_id)s AND f.key = x.key AND f.due_at > x.retry_at
"""
KNOWN_LISTS = "SELECT key FROM url_list WHERE domain_id = %(domain_id)s AND key = ANY(%(keys)s)"
COUNT_FEEDS = "SELECT count(*) FROM url_list WHERE domain_id = %(domain_id)s AND found_by = 'page'"
REPLACED_COLUMNS = ("kind", "value", "entries", "others", "excluded", "unusable", "finding")
SUMMED_COLUMNS = ("informative_reads", "new_pages", "hints")
WRITE_LIST = f"""
    INSERT INTO url_list AS l (domain_id, key, found_by, found_at, reads,
        {", ".join(REPLACED_COLUMNS + SUMMED_COLUMNS)})
    VALUES (%(domain_id)s, %(key)s, 'body', %(at)s, 1, {build_placeholders(REPLACED_COLUMNS + SUMMED_COLUMNS)})
    ON CONFLICT (domain_id, key) DO UPDATE
       SET reads = l.reads + 1, {build_upsert_set(REPLACED_COLUMNS)},
           {", ".join(f"{name} = l.{name} + excluded.{name}" for name in SUMMED_COLUMNS)}
"""  # noqa: S608  likewise
COUNT_READ = "UPDATE url_list SET reads = reads + 1 WHERE domain_id = %s AND key = %s"
CLOSE_HINTS = """
    UPDATE announced SET is_open = false
     WHERE domain_id = %(domain_id)s AND key = ANY(%(keys)s) AND is_open RETURNING key, list_key
"""
CHECKED_COLUMNS = "key bytea, is_true bool, expected float8"
COUNT_CHECKED = f"""
    UPDATE url_list l
       SET hints_checked = l.hints_checked + x.checked, hints_true = l.hints_true + x.confirmed,
           hints_expected = l.hints_expected + x.expected
      FROM (SELECT key, count(*) AS checked, count(*) FILTER (WHERE is_true) AS confirmed, sum(expected) AS expected
              FROM {build_unnest(CHECKED_COLUMNS)} GROUP BY key) x
     WHERE l.domain_id = %(domain_id)s AND l.key = x.key
"""  # noqa: S608  only our own columns are inserted


class ListChunk(Struct, frozen=True):
    """Links of a URL list to admit in one transaction.

    list_key: the list; None if the links are lists named by robots.txt or at common locations.  depth: the depth of the
    pages.  source: the source of the change signals that follow from the dates of the list.  found_by: how the lists
    among the links were found (models/page.py).
    """

    links: Sequence[ListedLink]
    depth: int
    source: SignalSource = SignalSource.SITEMAP
    list_key: PageKey | None = None
    found_by: str = "list"


class ListChunkResult(Struct, frozen=True):
    """The result of a chunk: new pages and lists that may be fetched, and change signals."""

    new_pages: int = 0
    new_lists: int = 0
    signals: tuple[ChangeSignal, ...] = ()


async def admit_list_chunk(
    db: Database, lease: Lease, chunk: ListChunk, *, at: datetime, max_pages: int, defaults: CrawlDefaults
) -> ListChunkResult:
    """Admit the links of a list within the domain's limits and compare the dates in the list with the earlier ones.

    max_pages: the page limit of the domain. No cash moves except the endowments of new pages. Applying a chunk again
    changes nothing. Raise LeaseLost.
    """
    domain_id = lease.domain.id
    async with db.transaction() as connection:
        await fence(connection, lease)
        keys = list({listed.link.key for listed in chunk.links})
        if chunk.list_key is None and len(await _find_known_lists(connection, domain_id, keys)) == len(keys):
            return ListChunkResult()  # the usual case for robots.txt, after its first request
        await connection.execute(REUSE_KEY_LOOKUPS)
        opic_batch = await load_opic_batch(
            connection,
            domain_id,
            (),
            settings=lease.domain.settings,
            page_score=defaults.page_score,
            listed_depths={listed.link.key: chunk.depth for listed in chunk.links},
        )
        has_new_pages = any(listed.link.key not in opic_batch.positions for listed in chunk.links)
        templates = await novelty.load_novelty(connection, domain_id) if has_new_pages else None
        admitted: list[tuple[Link, PagePosition]] = []
        for listed in chunk.links:
            link = listed.link
            depth = chunk.depth - listed.is_list  # a list has the depth of the list that names it
            position = admissions.admit_link(opic_batch, link, depth=depth, max_pages=max_pages, at=at)
            if position is None:
                continue
            admitted.append((link, position))
            if listed.change_interval is not None:  # changefreq counts as a fraction of a change
                position.rates = HINTED_CHANGES, HINTED_CHANGES * (listed.change_interval / DAY)
            if templates is not None and not position.is_outside_economy and not listed.is_list:
                position.deferred_until = templates.compute_due_at(link.url, at, boosted=position.boosted)
        if opic_batch.ordering.order is not Order.DEPTH:  # in depth-first order, linked pages come before listed ones
            opic_batch.queue_links([listed.link.key for listed in chunk.links])
        await admissions.write_admitted(connection, domain_id, opic_batch, admitted)
        await write_opic_batch(connection, domain_id, opic_batch)
        if templates is not None:
            await novelty.write_novelty(connection, domain_id, templates, at=at, dispatched=None)
        named = (listed.link.key for listed in chunk.links if listed.is_list)
        lists = [key for key in named if key in opic_batch.positions]
        new_lists = await _add_lists(connection, domain_id, lists, chunk.found_by, at=at, fetched_first=FIRST_LISTS)
        retry_params = {"domain_id": domain_id, "keys": keys, "at": at}
        await connection.execute(RETRY_GONE, retry_params | {"request_reason": RequestReason.BY_LIST.value})
        signals = await _compare_dates(connection, domain_id, chunk, at=at)
        if signals:
            await apply_signals(connection, lease, signals, at=at, defaults=defaults)
        fetchable_count = sum(position.state is State.UNFETCHED for _, position in admitted)
        return ListChunkResult(
            new_pages=fetchable_count - len({link.key for link, _ in admitted} & set(new_lists)),
            new_lists=len(new_lists),
            signals=signals,
        )


async def _compare_dates(
    connection: Connection, domain_id: int, chunk: ListChunk, *, at: datetime
) -> tuple[ChangeSignal, ...]:
    """Return the change signals that follow from the dates of a chunk, and store dates that are newer than before."""
    listed_dates = ((each.link, each.date) for each in chunk.links if each.date is not None)
    dated = {link.key: (link, date) for link, date in listed_dates if not is_in_future(date, now=at)}
    if not dated or chunk.list_key is None:
        return ()
    values: dict[str, Any] = {"domain_id": domain_id, "keys": list(dated), "source": chunk.source.value}
    rows = await fetch_rows(connection, DATES, values, binary=True)
    signals, moved = [], []
    for key, before, was_open, last_good_at in rows:
        link, date = dated[PageKey(key)]
        changed_at = find_signal_time(date, before=before, last_good_at=last_good_at, now=at)
        if changed_at is not None and not was_open:
            signals.append(ChangeSignal(link.url, chunk.source, changed_at))
        if before is None or date.at > before:
            moved.append((key, date.at, changed_at is not None))
    if moved:
        values |= split_into_columns(DATE_COLUMNS, moved) | {"list_key": chunk.list_key}
        await connection.execute(PUT_DATES, values, binary=True)
    return tuple(signals)


async def _find_known_lists(connection: Connection, domain_id: int, keys: Sequence[PageKey]) -> set[bytes]:
    """Return those of the pages that are known as lists."""
    values = {"domain_id": domain_id, "keys": list(keys)}
    return {key for (key,) in await fetch_rows(connection, KNOWN_LISTS, values)}


async def _add_lists(
    connection: Connection, domain_id: int, keys: Sequence[PageKey], found_by: str, *, at: datetime, fetched_first: int
) -> list[PageKey]:
    """Mark pages as URL lists and return the new ones among them, in order.

    fetched_first: the number of new lists to fetch before any page.
    """
    if not keys:
        return []
    values: dict[str, Any] = {"domain_id": domain_id, "keys": list(keys), "found_by": found_by, "at": at}
    added = {key for (key,) in await fetch_rows(connection, ADD_LISTS, values)}
    new_lists = [key for key in keys if key in added]
    if new_lists:
        values |= {"keys": new_lists[:fetched_first], "request_reason": RequestReason.BY_URL.value}
        await connection.execute(FETCH_FIRST, values)
    return new_lists


async def limit_feeds(connection: Connection, domain_id: int, visits: Sequence[Visit]) -> list[Visit]:
    """Return the visits without the feeds that are known already or exceed the limit of the domain."""
    named = dict.fromkeys(link.key for visit in visits for link in visit.feeds)
    if not named:
        return list(visits)
    known_lists = await _find_known_lists(connection, domain_id, list(named))
    max_new = max(MAX_FEEDS - await fetch_value(connection, COUNT_FEEDS, {"domain_id": domain_id}), 0)
    admitted = set([key for key in named if key not in known_lists][:max_new])
    chosen = []
    for visit in visits:
        feeds = tuple(link for link in visit.feeds if link.key in admitted)
        admitted -= {link.key for link in feeds}
        chosen.append(replace(visit, feeds=feeds) if feeds != visit.feeds else visit)
    return chosen


async def write_lists(connection: Connection, domain_id: int, visits: Sequence[Visit]) -> None:
    """Store the results of visits to lists, the lists that visits discovered, and the checked hints."""
    for visit in visits:
        at = visit.at
        if visit.feeds:
            feeds = [link.key for link in visit.feeds]
            await _add_lists(connection, domain_id, feeds, "page", at=at, fetched_first=MAX_FEEDS)
        onward = visit.moved_to  # the page of the domain that a list redirects to
        if onward is None and visit.links and visit.status in TEMPORARY_REDIRECTS:
            onward = visit.links[0]
        if visit.target.list_stats is not None and onward is not None:
            await _add_lists(connection, domain_id, [onward.key], "list", at=at, fetched_first=1)
        result = visit.list_result
        if result is not None and result.is_same:
            await connection.execute(COUNT_READ, (domain_id, visit.target.key))
        elif result is not None:
            values = asdict(result) | {"domain_id": domain_id, "key": visit.target.key, "at": at}
            values |= {"kind": result.kind.value, "finding": clean_text(result.finding)}
            values |= {"informative_reads": int(result.is_informative)}
            await connection.execute(WRITE_LIST, values)
    await _check_hints(connection, domain_id, visits)


async def _check_hints(connection: Connection, domain_id: int, visits: Iterable[Visit]) -> None:
    """For each list, count the hints (dates that signaled a change) that these visits have checked."""
    informative = (visit for visit in visits if visit.change in INFORMATIVE_CHANGES)
    tested = {visit.target.key: visit for visit in informative if visit.expected_change is not None}
    if not tested:
        return
    values: dict[str, Any] = {"domain_id": domain_id, "keys": list(tested)}
    closed = await fetch_rows(connection, CLOSE_HINTS, values, binary=True)
    rows = [(list_key, tested[key].change is Change.CHANGED, tested[key].expected_change) for key, list_key in closed]
    if rows:
        await connection.execute(COUNT_CHECKED, values | split_into_columns(CHECKED_COLUMNS, rows))
