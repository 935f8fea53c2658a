"""The traffic of a domain by the hour, from its visits."""

from datetime import datetime

from psycopg.rows import class_row

from crawler.core.domain import Domain
from crawler.core.http import TrafficHour
from crawler.store.database import Database

# The view report_traffic says the same for people; here the range of time picks the partitions.
BY_HOUR = """
    SELECT date_trunc('hour', at, 'UTC') AS hour, count(*) FILTER (WHERE requests > 0) AS looks,
           coalesce(sum(requests), 0) AS requests, coalesce(sum(received_bytes::bigint), 0)::bigint AS received_bytes,
           count(*) FILTER (WHERE requests > 0 AND (answer = 'unreached' OR status = 429 OR status >= 500)) AS errors,
           percentile_cont(0.5) WITHIN GROUP (ORDER BY elapsed_ms)
               FILTER (WHERE requests > 0 AND answer <> 'unreached') AS latency_ms
      FROM visits_between(%(domain_id)s, %(since)s, %(until)s)
     WHERE at < %(until)s
     GROUP BY 1 ORDER BY 1
"""


async def traffic(db: Database, domain: Domain, *, since: datetime, until: datetime) -> list[TrafficHour]:
    """The hours with visits between two instants, in order; both are the beginnings of hours."""
    async with db.transaction() as connection, connection.cursor(row_factory=class_row(TrafficHour)) as cursor:
        await cursor.execute(BY_HOUR, {"domain_id": domain.id, "since": since, "until": until})
        return await cursor.fetchall()
