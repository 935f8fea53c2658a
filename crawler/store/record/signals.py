"""Change signals taken in: counted where they tell something new, and the pages that they mean weighed again."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from crawler.core.domain import Lease
from crawler.core.freshness.signals import ChangeSignal, SignalSource
from crawler.core.freshness.terms import Defaults
from crawler.core.http.urls import PageKey, Url, key_of
from crawler.store.database import Connection
from crawler.store.hand_out import reweigh
from crawler.store.learned.credibility import count_heard, source_named
from crawler.store.rows import fetch_rows

AHEAD = timedelta(days=1)  # a lastmod that is only a day may mean its end; a clock further ahead is wrong

# Not told as hints: sitemaps often date all pages of a site anew, and listings name what the feed tells soon.
UNTOLD = frozenset({SignalSource.SITEMAP, SignalSource.HUB})

# A signal counts once, and only where the page has not been looked at since.
COUNT = """
    UPDATE page p SET signals = signals_with(p.signals, %(no)s), signalled_at[%(no)s + 1] = x.at
      FROM unnest(%(keys)s::bytea[], %(at)s::timestamptz[]) AS x(key, at)
     WHERE p.domain_id = %(domain_id)s AND p.key = x.key AND p.version > 0 AND x.at > p.last_good_at
       AND x.at > coalesce(p.signalled_at[%(no)s + 1], '-infinity')
 RETURNING p.key, rtrim(p.signals, '\\x00'::bytea) = signals_with(''::bytea, %(no)s) AS is_first
"""
# Pages that somebody says have changed, each named once.
HINTS = """
    WITH room AS (
        UPDATE domain_state SET next_event = next_event + cardinality(%(keys)s::bytea[])
         WHERE domain_id = %(domain_id)s RETURNING next_event - cardinality(%(keys)s::bytea[]) AS first)
    INSERT INTO event (domain_id, number, at, key, url, change, version, source)
    SELECT %(domain_id)s, room.first + row_number() OVER (ORDER BY p.key) - 1, %(now)s, p.key, p.url, 'hint', p.version,
           %(source)s
      FROM page p, room WHERE p.domain_id = %(domain_id)s AND p.key = ANY(%(keys)s)
"""
KNOWN = "SELECT key FROM page WHERE domain_id = %(domain_id)s AND key = ANY(%(keys)s)"


async def take_in(
    connection: Connection, lease: Lease, signals: Sequence[ChangeSignal], *, at: datetime, defaults: Defaults | None
) -> list[Url]:
    """Count signals of one source, and give the pages that they mean other due times; the URLs that are not known.

    URLs that the domain's scope refuses are left out. defaults: by which pages are weighed; None: due times stay.
    """
    latest = _latest(lease, signals, at=at)
    if not latest:
        return []
    keys = [key_of(url) for url in latest]
    values: dict[str, Any] = {"domain_id": lease.domain.id, "keys": keys, "at": list(latest.values())}
    source = await source_named(connection, lease.domain.id, signals[0].source, at=at)
    if source is not None:
        found = await fetch_rows(connection, COUNT, values | {"no": source.no})
        counted: list[PageKey] = [key for key, _ in found]
        first = [key for key, is_first in found if is_first]
        if first and source.source not in UNTOLD:
            await connection.execute(HINTS, values | {"keys": first, "source": source.source, "now": at})
        await count_heard(connection, lease.domain.id, source, len(counted), at=at)
        if counted and defaults is not None:
            await reweigh(connection, lease.domain, counted, at=at, defaults=defaults)
    known = {row[0] for row in await fetch_rows(connection, KNOWN, values)}
    return [url for url, key in zip(latest, keys, strict=True) if key not in known]


def _latest(lease: Lease, signals: Sequence[ChangeSignal], *, at: datetime) -> dict[Url, datetime]:
    """The last signal about each URL that belongs to the domain."""
    scope = lease.domain.scope(max_depth=1)
    latest: dict[Url, datetime] = {}
    for signal in signals:
        url = scope.home(signal.url)
        if scope.refusal(url, 1) is None:
            said = min(signal.at, at + AHEAD)
            latest[url] = max(latest.get(url, said), said)
    return latest
