"""Apply change signals: count the ones that are new, and recompute the due times of their pages."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from crawler.core.domain import Lease
from crawler.core.freshness.signals import ChangeSignal, SignalSource
from crawler.core.freshness.visit_terms import CrawlDefaults
from crawler.core.http.urls import PageKey, Url, compute_page_key
from crawler.store.database import Connection
from crawler.store.frontier import rescore_pages
from crawler.store.learned.credibility import count_signals, find_source
from crawler.store.rows import fetch_rows

MAX_AHEAD = timedelta(days=1)  # a date without time may mean the end of the day; later dates come from a wrong clock

# The signals of these sources are not reported as hint events: sitemaps often give all pages a new date, and pages that
# a hub links to are fetched soon anyway.
NO_HINT_SOURCES = frozenset({SignalSource.SITEMAP, SignalSource.HUB})

# A signal counts once, and only if the page was not visited since.
COUNT = """
    UPDATE page p SET signals = signals_with(p.signals, %(no)s), signaled_at[%(no)s + 1] = x.at
      FROM unnest(%(keys)s::bytea[], %(at)s::timestamptz[]) AS x(key, at)
     WHERE p.domain_id = %(domain_id)s AND p.key = x.key AND p.version > 0 AND x.at > p.last_good_at
       AND x.at > coalesce(p.signaled_at[%(no)s + 1], '-infinity')
 RETURNING p.key, rtrim(p.signals, '\\x00'::bytea) = signals_with(''::bytea, %(no)s) AS is_first
"""
# Add one hint event for each signaled page.
HINTS = """
    WITH allocated AS (
        UPDATE domain_state SET next_event = next_event + cardinality(%(keys)s::bytea[])
         WHERE domain_id = %(domain_id)s RETURNING next_event - cardinality(%(keys)s::bytea[]) AS first)
    INSERT INTO event (domain_id, number, at, key, url, change, version, source)
    SELECT %(domain_id)s, allocated.first + row_number() OVER (ORDER BY p.key) - 1, %(now)s, p.key, p.url, 'hint',
           p.version, %(source)s
      FROM page p, allocated WHERE p.domain_id = %(domain_id)s AND p.key = ANY(%(keys)s)
"""
KNOWN_KEYS = "SELECT key FROM page WHERE domain_id = %(domain_id)s AND key = ANY(%(keys)s)"


async def apply_signals(
    connection: Connection,
    lease: Lease,
    signals: Sequence[ChangeSignal],
    *,
    at: datetime,
    defaults: CrawlDefaults | None,
) -> list[Url]:
    """Count signals of one source, update the due times of their pages, and return the URLs that are not pages yet.

    URLs excluded by the domain's scope are ignored.  defaults: used for scoring; None: keep the due times.
    """
    latest = _find_latest(lease, signals, at=at)
    if not latest:
        return []
    keys = [compute_page_key(url) for url in latest]
    values: dict[str, Any] = {"domain_id": lease.domain.id, "keys": keys, "at": list(latest.values())}
    source = await find_source(connection, lease.domain.id, signals[0].source, at=at)
    if source is not None:
        counted_rows = await fetch_rows(connection, COUNT, values | {"no": source.no})
        counted: list[PageKey] = [key for key, _ in counted_rows]
        first = [key for key, is_first in counted_rows if is_first]
        if first and source.source not in NO_HINT_SOURCES:
            await connection.execute(HINTS, values | {"keys": first, "source": source.source, "now": at})
        await count_signals(connection, lease.domain.id, source, len(counted), at=at)
        if counted and defaults is not None:
            await rescore_pages(connection, lease.domain, counted, at=at, defaults=defaults)
    known = {row[0] for row in await fetch_rows(connection, KNOWN_KEYS, values)}
    return [url for url, key in zip(latest, keys, strict=True) if key not in known]


def _find_latest(lease: Lease, signals: Sequence[ChangeSignal], *, at: datetime) -> dict[Url, datetime]:
    """Return the time of the last signal for each URL in the domain's scope."""
    scope = lease.domain.build_scope(max_depth=1)
    latest: dict[Url, datetime] = {}
    for signal in signals:
        url = scope.to_domain_url(signal.url)
        if scope.find_exclusion(url, 1) is None:
            signaled_at = min(signal.at, at + MAX_AHEAD)
            latest[url] = max(latest.get(url, signaled_at), signaled_at)
    return latest
