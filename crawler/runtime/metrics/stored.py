"""What a database says of its domains and subscriptions: asked at most once a minute, whoever scrapes."""

import time
from collections.abc import Callable
from datetime import datetime

from prometheus_client.core import Metric

from crawler.runtime.metrics.domains import MOST_DOMAINS, domain_families
from crawler.runtime.metrics.subscriptions import subscription_families
from crawler.store import subscriptions
from crawler.store.database import Database
from crawler.store.report import domain_gauges

KEPT_SECONDS = 60.0


class StoredGauges:
    """The newest figures of a database. now: knowledge time."""

    def __init__(self, db: Database, *, now: Callable[[], datetime]) -> None:
        self._db, self._now = db, now
        self._kept: list[Metric] = []
        self._asked_at: float | None = None

    async def families(self) -> list[Metric]:
        """All gauges, not older than KEPT_SECONDS."""
        if self._asked_at is None or time.monotonic() - self._asked_at > KEPT_SECONDS:
            now = self._now()
            domains, calibration = await domain_gauges(self._db, at=now, most=MOST_DOMAINS)
            states = await subscriptions.states(self._db)
            self._kept = [*domain_families(domains, calibration), *subscription_families(states, at=now)]
            self._asked_at = time.monotonic()
        return self._kept
