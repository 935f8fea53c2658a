"""What delivering needs, and what comes of it."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime

from crawler.engine.parsing.parser_pool import ParserPool
from crawler.notify.target import FindSecret
from crawler.store.database import Database


@dataclass(frozen=True, slots=True)
class DeliveryContext:
    """What delivering needs.

    now: knowledge time.  find_secret: where secrets are.  seal: makes the proof that this machine's user has set a
    command; None where no command is run.  origin: of one's own pages, for links; None where nothing serves them.
    real_now: what receivers are told in signatures, which they compare with their own clocks.
    """

    db: Database
    readers: ParserPool
    find_secret: FindSecret
    user_agent: str
    seal: Callable[[str], str] | None = None
    origin: str | None = None
    now: Callable[[], datetime] = field(default=lambda: datetime.now(UTC))
    real_now: Callable[[], datetime] = field(default=lambda: datetime.now(UTC))


@dataclass(slots=True)
class Delivered:
    """What came of a delivery. messages: that were taken.  failed: tries that were not, by subscription.

    positions: in the feed, of the changes that were taken: one that several subscriptions are told is one change.

    put: changes that came into the outbox.  elsewhere: why this process may not deliver, by subscription that nobody
    else delivers to either.
    """

    put: int = 0
    messages: int = 0
    positions: set[int] = field(default_factory=set)
    failed: dict[int, str] = field(default_factory=dict)
    elsewhere: dict[int, str] = field(default_factory=dict)

    def add(self, other: "Delivered") -> None:
        """Count what came of another delivery, too."""
        self.put += other.put
        self.messages += other.messages
        self.positions |= other.positions
        self.failed |= other.failed
        self.elsewhere |= other.elsewhere

    @property
    def changes(self) -> int:
        """Return how many changes were taken, each counted once, however many subscriptions were told of it."""
        return len(self.positions)

    def as_dict(self) -> dict[str, object]:
        """Return the figures by name, for JSON."""
        return {
            "put": self.put,
            "messages": self.messages,
            "changes": self.changes,
            "failed": self.failed,
            "elsewhere": self.elsewhere,
        }

    @property
    def untold(self) -> dict[int, str]:
        """Why subscriptions were not told, whoever could mend that."""
        return dict(sorted((self.failed | self.elsewhere).items()))
