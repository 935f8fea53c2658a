"""A revisit policy: pages that people write during the week are looked at on the next working day."""

from datetime import datetime, timedelta
from typing import Any

MORNING = 6  # o'clock, UTC
SATURDAY = 5


class Weekdays:
    """Lets every page wait until the next morning that is not on a weekend."""

    def choose_interval(self, visit: Any) -> timedelta:
        at: datetime = visit.at
        morning = at.replace(hour=MORNING, minute=0, second=0, microsecond=0)
        while morning <= at or morning.weekday() >= SATURDAY:
            morning += timedelta(days=1)
        return morning - at
