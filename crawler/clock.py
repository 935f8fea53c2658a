"""Knowledge time: a start instant that the user may choose, plus the time elapsed since then."""

import time
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta


@dataclass(frozen=True, slots=True)
class Clock:
    """The time used for due times, change-rate estimates, back-off and budget days.

    Leases, deadlines and the delays between requests use real time instead.
    """

    start: datetime
    began_at: float = field(default_factory=time.monotonic)

    @classmethod
    def from_instant(cls, instant: datetime | None) -> "Clock":
        """Return a clock that starts at `instant`, or at the real time if it is None."""
        return cls(start=instant or datetime.now(UTC))

    def now(self) -> datetime:
        return self.start + timedelta(seconds=time.monotonic() - self.began_at)
