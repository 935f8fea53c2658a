"""What crawling processes count, in a form that can be added up, subtracted and written down."""

from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass, field, fields
from datetime import timedelta
from typing import Any

from crawler.core.change.change import Change
from crawler.engine import CrawlStats

FAILED = "failed"  # the outcome of a look that told nothing
DEAD_LINK = "dead_link"  # of a look at a page that is not there and never was
# Upper bounds, in seconds: from a lease that found nothing due to one of a whole shift.
LEASE_BUCKETS = (1, 3, 10, 30, 60, 180, 600, 1800)
MOST_REASONS = 60  # each is a time series; further ones are counted together
OTHER_REASONS = "other"


@dataclass(slots=True)
class Tally:
    """Counts since the beginning.

    looks: by outcome.  failures: failed looks by reason.  leases: by how they ended.  sums: requests, bytes and pages
    by name.  lease_seconds: ended leases by place in LEASE_BUCKETS, the last place for those beyond all bounds.
    """

    looks: Counter[str] = field(default_factory=Counter)
    failures: Counter[str] = field(default_factory=Counter)
    leases: Counter[str] = field(default_factory=Counter)
    sums: Counter[str] = field(default_factory=Counter)
    lease_seconds: Counter[str] = field(default_factory=Counter)

    def add(self, other: "Tally") -> None:
        """Add another tally's counts."""
        for each in fields(self):
            getattr(self, each.name).update(getattr(other, each.name))
        self._bound_reasons()

    def since(self, before: "Tally") -> "Tally":
        """What was counted after `before`, an earlier state of the same tally."""
        return Tally(**{each.name: getattr(self, each.name) - getattr(before, each.name) for each in fields(self)})

    def end_lease(self, how: str, lasted: timedelta) -> None:
        """Count a lease that has ended."""
        self.leases[how] += 1
        self.lease_seconds[str(bisect_left(LEASE_BUCKETS, lasted.total_seconds()))] += 1
        self.sums["lease_milliseconds"] += round(lasted.total_seconds() * 1000)

    def as_json(self) -> dict[str, dict[str, int]]:
        """The counts as a document."""
        return {each.name: dict(getattr(self, each.name)) for each in fields(self)}

    @classmethod
    def of_json(cls, document: dict[str, Any]) -> "Tally":
        """The tally that a document holds; what an earlier version did not count is nothing."""
        return cls(**{each.name: Counter(document.get(each.name, {})) for each in fields(cls)})

    def _bound_reasons(self) -> None:
        if len(self.failures) > MOST_REASONS:
            kept = dict(self.failures.most_common(MOST_REASONS - 1))
            rest = self.failures.total() - sum(kept.values())
            self.failures = Counter(kept)
            self.failures[OTHER_REASONS] += rest


def tally_of(stats: CrawlStats) -> Tally:
    """What a lease has counted so far."""
    looks = Counter({change.value: many for change, many in stats.changes.items() if change is not Change.UNKNOWN})
    looks[FAILED] = stats.changes[Change.UNKNOWN]
    looks[DEAD_LINK] = stats.dead_links
    sums = {
        "requests": stats.requests,
        "received_bytes": stats.received_bytes,
        "saved_bytes": stats.saved_bytes,
        "not_modified": stats.not_modified,
        "new_pages": stats.new,
        "read": stats.read,
        "rendered": stats.rendered,
        "refused": stats.refused,
    }
    return Tally(looks=+looks, failures=Counter(stats.reasons), sums=+Counter(sums))
