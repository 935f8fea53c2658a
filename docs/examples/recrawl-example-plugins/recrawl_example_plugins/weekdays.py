"""A revisit policy for pages that people edit during the week: visit them on the next working day."""

from datetime import datetime, timedelta
from typing import Any

MORNING = 6  # o'clock, UTC
SATURDAY = 5


class Weekdays:
    """Schedules every page for the next morning that is not on a weekend."""

    def choose_interval(self, visit: Any) -> timedelta:
        at: datetime = visit.at
        morning = at.replace(hour=MORNING, minute=0, second=0, microsecond=0)
        while morning <= at or morning.weekday() >= SATURDAY:
            morning += timedelta(days=1)
        return morning - at
