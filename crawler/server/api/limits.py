"""How much a token may ask: a token bucket for each, and one for all that show none that is good."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field

PER_SECOND = 20.0
BURST = 40.0
STRANGERS = ""  # the name under which all are counted that show no good token


@dataclass(slots=True)
class RateLimit:
    """Requests by name, each at most so many a second, and so many at once. now: monotonic seconds."""

    per_second: float = PER_SECOND
    burst: float = BURST
    now: Callable[[], float] = time.monotonic
    _left: dict[str, tuple[float, float]] = field(default_factory=dict)  # what is left, and when that was so

    def wait(self, name: str) -> float:
        """Count a request: 0 if it may be answered, else the seconds after which one may be."""
        at = self.now()
        left, then = self._left.get(name, (self.burst, at))
        left = min(self.burst, left + (at - then) * self.per_second)
        if left < 1:
            self._left[name] = (left, at)
            return (1 - left) / self.per_second
        self._left[name] = (left - 1, at)
        return 0.0
