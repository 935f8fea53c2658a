"""The inbox: messages to the holder of a domain's lease, applied chunk by chunk."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from crawler.core.domain import Lease
from crawler.core.domain_settings import has_same_reading
from crawler.core.freshness.shared_schedule import MIN_COPY_TEST_WAIT, SharedPair
from crawler.core.freshness.signals import ChangeSignal
from crawler.core.freshness.visit_terms import CrawlDefaults, RequestReason
from crawler.core.http.urls import PageKey, Url, compute_page_key
from crawler.core.opic.opic import compute_seed_endowment
from crawler.core.opic.order import compute_head_start
from crawler.core.visit.state import State
from crawler.store.claim.active_lease import fence
from crawler.store.database import Connection, Database
from crawler.store.domain_rows import read_domain, write_inbox_cursor
from crawler.store.record import shared_schedules, signals
from crawler.store.record.novelty import assign_groups
from crawler.store.record.opic import write_ranks
from crawler.store.rows import build_unnest, fetch_dicts, fetch_rows, fetch_value, split_into_columns

INBOX_CHUNK = 20  # rows
PAGES_CHUNK = 20_000  # pages changed in one transaction; the lease is renewed in between

# Changes of the discovery order come last, because they may have to wait. For 'reprice', see frontier.update_due_times.
NEXT_ROWS = """
    SELECT id, kind, payload, arrived_at FROM inbox WHERE domain_id = %s AND kind <> 'reprice'
     ORDER BY kind = 'reorder', id LIMIT %s
"""
ADMIT_SEEDS = """
    WITH fresh AS (
        INSERT INTO page (domain_id, key, url, first_seen_at)
        SELECT %(domain_id)s, x.key, x.url, %(at)s
          FROM unnest(%(keys)s::bytea[], %(urls)s::text[]) AS x(key, url)
        ON CONFLICT DO NOTHING RETURNING key),
    waiting AS (
        INSERT INTO frontier (domain_id, key, state, request_reason, boosted, url_score, depth)
        SELECT %(domain_id)s, fresh.key, 'unfetched', %(request_reason)s, %(boosted)s, x.score, %(depth)s
          FROM fresh JOIN unnest(%(keys)s::bytea[], %(scores)s::float8[]) AS x(key, score) ON x.key = fresh.key),
    dividend AS (
        UPDATE pool SET pages = pages + (SELECT count(*) FROM fresh)
         WHERE domain_id = %(domain_id)s AND pool = %(pool)s RETURNING dividend),
    endowment AS (
        SELECT least(%(endowment)s::bigint, s.dormant / greatest((SELECT count(*) FROM fresh), 1)) AS cash, s.clock
          FROM domain_state s WHERE s.domain_id = %(domain_id)s),
    updated AS (
        UPDATE domain_state s SET dormant = s.dormant - (SELECT count(*) FROM fresh) * endowment.cash,
               tracked = s.tracked + (SELECT count(*) FROM fresh)
          FROM endowment WHERE s.domain_id = %(domain_id)s)
    INSERT INTO cash (domain_id, key, pool, net, history, clock)
    SELECT %(domain_id)s, fresh.key, %(pool)s, endowment.cash - dividend.dividend, -endowment.cash, endowment.clock
      FROM fresh, dividend, endowment
 RETURNING key, net, clock
"""
TRACKED = "SELECT tracked FROM domain_state WHERE domain_id = %s"
# The next batch that is recorded assigns due times to the new pages of deferred groups.
DEFER_NEW = "UPDATE prior SET is_moving = true WHERE domain_id = %s AND deferred_until IS NOT NULL AND NOT is_moving"
REQUEST_SEEDS = """
    UPDATE frontier SET due_at = CASE WHEN state <> 'unfetched' THEN least(due_at, %(at)s) END,
           request_reason = %(request_reason)s
     WHERE domain_id = %(domain_id)s AND key = ANY(%(keys)s)
"""
UNREQUEST_ROOT = "UPDATE frontier SET request_reason = 0 WHERE domain_id = %s AND key = %s AND state = 'unfetched'"
GROUP_SEEDS = """
    UPDATE page p SET prior_no = x.no FROM unnest(%(keys)s::bytea[], %(groups)s::smallint[]) AS x(key, no)
     WHERE p.domain_id = %(domain_id)s AND p.key = x.key AND p.visits = 0
"""
REQUEST_REVISIT = """
    UPDATE frontier
       SET due_at = least(due_at, %(at)s),
           request_reason = CASE WHEN request_reason IN (1, 4, 5) THEN request_reason ELSE %(request_reason)s END
     WHERE domain_id = %(domain_id)s AND key = ANY(%(keys)s) AND state <> 'unfetched'
"""
MAKE_DUE = """
    WITH chunk AS (
        SELECT f.key, starts_with(p.url, %(prefix)s) AS is_requested
          FROM frontier f JOIN page p ON p.domain_id = %(domain_id)s AND p.key = f.key
         WHERE f.domain_id = %(domain_id)s AND f.key > %(after)s ORDER BY f.key LIMIT %(most)s),
    due AS (
        UPDATE frontier f SET due_at = least(f.due_at, %(at)s), request_reason = 1 FROM chunk
         WHERE f.domain_id = %(domain_id)s AND f.key = chunk.key AND chunk.is_requested AND f.state <> 'unfetched'),
    forgotten AS (
        UPDATE page p SET etag = NULL, last_modified = NULL, body_digest = ''::bytea FROM chunk
         WHERE %(full)s AND p.domain_id = %(domain_id)s AND p.key = chunk.key AND chunk.is_requested AND p.version > 0)
    SELECT key FROM chunk ORDER BY key DESC LIMIT 1
"""
# Scale the cash received within the old importance window to the new one. Negative histories stay unchanged.
SCALE_HISTORY = """
    WITH chunk AS (
        SELECT key FROM cash WHERE domain_id = %(domain_id)s AND key > %(after)s ORDER BY key LIMIT %(most)s),
    scaled AS (
        UPDATE cash c SET history = c.history * least(%(passes)s::float8 * (s.total_cash - s.dormant), c.clock)
                                              / least(s.window_passes * (s.total_cash - s.dormant), c.clock)
          FROM chunk, domain_state s
         WHERE s.domain_id = %(domain_id)s AND s.total_cash > s.dormant
           AND c.domain_id = %(domain_id)s AND c.key = chunk.key AND c.history > 0 AND c.clock > 0)
    SELECT key FROM chunk ORDER BY key DESC LIMIT 1
"""
WRITE_WINDOW = "UPDATE domain_state SET window_passes = %(passes)s WHERE domain_id = %(domain_id)s"
DIVIDENDS = "SELECT pool, dividend FROM pool WHERE domain_id = %(domain_id)s"
GROW_POOL = "UPDATE pool SET pages = pages + %s WHERE domain_id = %s AND pool = %s"
TO_REORDER = """
    SELECT f.key, p.url, f.state, f.depth, f.rank, c.pool, c.net, c.clock
      FROM frontier f JOIN page p ON p.domain_id = %(domain_id)s AND p.key = f.key
      LEFT JOIN cash c ON c.domain_id = %(domain_id)s AND c.key = f.key
     WHERE f.domain_id = %(domain_id)s AND f.key > %(after)s ORDER BY f.key LIMIT %(most)s
"""
ORDER_COLUMNS, POOL_COLUMNS = "key bytea, boosted bool, score float8, rank int", "pool smallint, net bigint"
REORDER = f"""
    UPDATE frontier f SET boosted = x.boosted, url_score = x.score, rank = x.rank FROM {build_unnest(ORDER_COLUMNS)}
     WHERE f.domain_id = %(domain_id)s AND f.key = x.key
       AND (f.boosted, f.url_score, f.rank) IS DISTINCT FROM (x.boosted, x.score, x.rank)
"""  # noqa: S608  only our own columns are inserted
REPOOL = f"""
    UPDATE cash c SET pool = x.pool, net = x.net FROM {build_unnest(f"key bytea, {POOL_COLUMNS}")}
     WHERE c.domain_id = %(domain_id)s AND c.key = x.key AND c.pool <> x.pool
"""  # noqa: S608  likewise


async def drain_inbox(
    db: Database, lease: Lease, *, at: datetime, defaults: CrawlDefaults | None = None, max_pages: int | None = None
) -> bool:
    """Apply a chunk of the domain's inbox and return whether there was one. Raise LeaseLost.

    defaults: used to rescore signaled pages, and for the page score in a new discovery order; None: do without.
    max_pages: the page limit of the domain; signals about further URLs are ignored. None: no limit.
    A new discovery order and full recrawls wait for a lease with the current settings.
    """
    async with db.transaction() as connection:
        await fence(connection, lease)
        rows = await _read_rows(connection, lease)
        for row in rows:
            last = await _apply_row(connection, lease, row, at=at, defaults=defaults, max_pages=max_pages)
            if last is not None:
                await write_inbox_cursor(connection, row["id"], last)
                return True
            await connection.execute("DELETE FROM inbox WHERE id = %s", (row["id"],))
        return bool(rows)


async def _apply_row(
    connection: Connection,
    lease: Lease,
    row: dict[str, Any],
    *,
    at: datetime,
    defaults: CrawlDefaults | None,
    max_pages: int | None,
) -> bytes | None:
    """Apply a row of the inbox, or its next chunk of pages. Return the last page's key; None if the row is done."""
    domain_id, payload = lease.domain.id, row["payload"]
    chunk = {"domain_id": domain_id, "at": at, "after": bytes.fromhex(payload.get("after", "")), "most": PAGES_CHUNK}
    last: bytes | None = None
    match row["kind"]:
        case "seed":
            await _admit_seeds(connection, lease, payload["urls"], at=at)
            if payload.get("before_root"):
                await connection.execute(UNREQUEST_ROOT, (domain_id, compute_page_key(lease.domain.root)))
        case "audit":
            keys = [bytes.fromhex(key) for key in payload["keys"]]
            values = {"domain_id": domain_id, "keys": keys, "at": at, "request_reason": RequestReason.BY_AUDIT}
            await connection.execute(REQUEST_REVISIT, values)
        case "signal":
            change_signals = [
                ChangeSignal(url=Url(url), source=payload["source"], at=datetime.fromisoformat(signaled_at))
                for url, signaled_at in payload["signals"]
            ]
            unknown_urls = await signals.apply_signals(connection, lease, change_signals, at=at, defaults=defaults)
            await _admit_signaled(connection, lease, unknown_urls, at=at, max_pages=max_pages)
        case "share":
            pairs = [
                SharedPair(PageKey(bytes.fromhex(canonical)), PageKey(bytes.fromhex(key)), is_copy=is_copy)
                for canonical, key, is_copy in payload["pairs"]
            ]
            copy_wait = _compute_copy_wait(lease, defaults)
            await shared_schedules.begin_sharing(connection, domain_id, pairs, copy_wait=copy_wait)
        case "window":
            last = await fetch_value(connection, SCALE_HISTORY, chunk | {"passes": payload["passes"]})
            if last is None:
                await connection.execute(WRITE_WINDOW, {"domain_id": domain_id, "passes": payload["passes"]})
        case "reorder":
            last = await _reorder(connection, lease, payload, chunk, defaults.page_score if defaults else None)
        case _:  # refresh
            refresh_params = {"prefix": payload["prefix"], "full": payload["full"]}
            last = await fetch_value(connection, MAKE_DUE, chunk | refresh_params)
    return last


async def _read_rows(connection: Connection, lease: Lease) -> list[dict[str, Any]]:
    """Return the rows to apply now, without those that need newer settings than the lease has.

    With the old settings, pages would get outdated ranks, or a full recrawl would have to be repeated.
    """
    rows = await fetch_dicts(connection, NEXT_ROWS, (lease.domain.id, INBOX_CHUNK))
    if any(row["kind"] == "reorder" or row["payload"].get("full") for row in rows):
        # Read after the inbox: settings are committed together with their rows in the inbox.
        current = await read_domain(connection, lease.domain.id)
        current_settings, lease_settings = current.settings if current else None, lease.domain.settings
        if current_settings is None or current_settings.ordering != lease_settings.ordering:
            rows = [row for row in rows if row["kind"] != "reorder"]
        if current_settings is None or not has_same_reading(current_settings, lease_settings):
            rows = [row for row in rows if not row["payload"].get("full")]
    return rows


def _compute_copy_wait(lease: Lease, defaults: CrawlDefaults | None) -> timedelta | None:
    """Return how long the first check of a copy in a shared schedule waits; None if a user's rule limits intervals."""
    if any(rule.max_interval is not None for rule in lease.domain.settings.rules):
        return None
    return min(MIN_COPY_TEST_WAIT, defaults.max_interval) if defaults else MIN_COPY_TEST_WAIT


async def _admit_signaled(
    connection: Connection, lease: Lease, urls: Sequence[Url], *, at: datetime, max_pages: int | None
) -> None:
    """Admit the pages of change signals, up to the page limit, without requesting a visit."""
    max_new = len(urls)
    if max_pages is not None:
        max_new = max(max_pages - await fetch_value(connection, TRACKED, (lease.domain.id,)), 0)
    if urls[:max_new]:
        await _admit_seeds(connection, lease, urls[:max_new], at=at, request=RequestReason.NONE)
        await connection.execute(DEFER_NEW, (lease.domain.id,))


async def _admit_seeds(
    connection: Connection,
    lease: Lease,
    urls: Sequence[Url],
    *,
    at: datetime,
    request: RequestReason = RequestReason.BY_URL,
) -> None:
    """Admit pages that no link discovered. Like all new pages, they start with an endowment of cash.

    request: why they are requested; pages that exist already become due. With NONE, no page is requested, and the pages
    are not seeds: they get depth 1.
    """
    seed_urls = dict.fromkeys(lease.domain.build_scope(max_depth=0).to_domain_url(url) for url in urls)
    ordering = lease.domain.settings.ordering
    tracked = await fetch_value(connection, TRACKED, (lease.domain.id,))
    endowment = compute_seed_endowment(len(seed_urls), is_first=tracked == 0)
    for boosted in (False, True):
        chosen = [url for url in seed_urls if ordering.is_boosted(url) is boosted]
        values: dict[str, Any] = {
            "domain_id": lease.domain.id,
            "keys": [compute_page_key(url) for url in chosen],
            "urls": chosen,
            "scores": [ordering.score_url(url) for url in chosen],
            "boosted": boosted,
            "at": at,
            "pool": ordering.choose_pool(is_fetched=False, is_boosted=boosted).value,
            "endowment": endowment,
            "request_reason": request,
            "depth": 0 if request else 1,
        }
        new_rows = await fetch_rows(connection, ADMIT_SEEDS, values)
        scores, depth = dict(zip(values["keys"], values["scores"], strict=True)), values["depth"]
        ranks = {
            key: ordering.compute_first_rank(net, clock=clock, depth=depth, url_score=scores[key])
            for key, net, clock in new_rows
        }
        groups = await assign_groups(connection, lease.domain.id, chosen)
        await connection.execute(GROUP_SEEDS, values | {"groups": groups})
        await write_ranks(connection, lease.domain.id, ranks)
        if request:
            await connection.execute(REQUEST_SEEDS, values)


async def _reorder(
    connection: Connection,
    lease: Lease,
    payload: Mapping[str, Any],
    chunk: dict[str, Any],
    page_score: Callable[[Url], float] | None,
) -> bytes | None:
    """Recompute the pool, URL score and rank of a chunk of pages. Return the key of its last page; None at the end.

    keeps_places, in the payload: the order itself has not changed, so positions of breadth-first and depth-first order
    stay.
    """
    ordering = lease.domain.settings.ordering
    pages = await fetch_rows(connection, TO_REORDER, chunk, binary=True)
    if not pages:
        return None
    dividends: dict[int, int] = dict(await fetch_rows(connection, DIVIDENDS, chunk))
    keeps_ranks = payload.get("keeps_places", False) and ordering.order.is_by_position
    grown = Counter[int]()  # change of the number of pages of each pool
    rows = []
    for key, url, state, depth, *figures in pages:
        rank, pool, net, clock = figures  # all but rank are None outside the economy
        boosted, score = ordering.is_boosted(url), ordering.score_url(url)
        if pool is not None:
            new_pool = ordering.choose_pool(is_fetched=state != State.UNFETCHED, is_boosted=boosted).value
            net += dividends[pool] - dividends[new_pool]  # the page keeps its cash, so its net changes
            grown.update({new_pool: 1})
            grown.subtract({pool: 1})
            pool = new_pool
        if state == State.UNFETCHED and not keeps_ranks:
            ahead = compute_head_start(page_score(url)) if page_score is not None else 0
            rank = ordering.compute_first_rank(net or 0, clock=clock or 0, depth=depth, url_score=score, ahead=ahead)
        rows.append((key, boosted, score, rank, pool, net))
    columns = split_into_columns(f"{ORDER_COLUMNS}, {POOL_COLUMNS}", rows)
    await connection.execute(REORDER, chunk | columns, binary=True)
    await connection.execute(REPOOL, chunk | columns, binary=True)
    async with connection.cursor() as cursor:
        await cursor.executemany(GROW_POOL, [(count, lease.domain.id, pool) for pool, count in grown.items()])
    last: bytes = pages[-1][0]
    return last
