"""Knowledge time: an instant of the user's choice, plus what has elapsed since."""

import time
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta


@dataclass(frozen=True, slots=True)
class Clock:
    """Tells the time of due dates, beliefs, back-off and budget days.

    Leases, deadlines and the gaps between requests run in real time instead, and do not ask here.
    """

    start: datetime
    began_at: float = field(default_factory=time.monotonic)

    @classmethod
    def from_instant(cls, instant: datetime | None) -> "Clock":
        """A clock that shows `instant` now, or the real time."""
        return cls(start=instant or datetime.now(UTC))

    def now(self) -> datetime:
        return self.start + timedelta(seconds=time.monotonic() - self.began_at)
