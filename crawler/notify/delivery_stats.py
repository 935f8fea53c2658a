"""The results of a delivery, in a module of its own: a crawl without subscriptions imports nothing else here."""

from dataclasses import dataclass, field


@dataclass(slots=True)
class DeliveryStats:
    """The results of a delivery.

    put: the number of changes added to outboxes.  messages: the number of delivered messages.  positions: the feed
    positions of the delivered changes.  failed: the error of each subscription that failed.  elsewhere: why this
    process may not deliver to a subscription, if a report is due.
    """

    put: int = 0
    messages: int = 0
    positions: set[int] = field(default_factory=set)
    failed: dict[int, str] = field(default_factory=dict)
    elsewhere: dict[int, str] = field(default_factory=dict)

    def add(self, other: "DeliveryStats") -> None:
        """Add the results of another delivery."""
        self.put += other.put
        self.messages += other.messages
        self.positions |= other.positions
        self.failed |= other.failed
        self.elsewhere |= other.elsewhere

    @property
    def changes(self) -> int:
        """The number of delivered changes; a change sent to several subscriptions counts once."""
        return len(self.positions)

    def as_dict(self) -> dict[str, object]:
        """Return the figures by name, for JSON."""
        return {name: getattr(self, name) for name in ("put", "messages", "changes", "failed", "elsewhere")}

    @property
    def undelivered(self) -> dict[int, str]:
        """The reasons of all subscriptions whose notifications were not delivered."""
        return dict(sorted((self.failed | self.elsewhere).items()))
