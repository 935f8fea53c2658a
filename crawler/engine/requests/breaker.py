"""The circuit breaker of a lease: decide whether failures are the domain's fault, and for how long to suspend it."""

from datetime import timedelta

from msgspec.structs import replace

from crawler.core.domain import Suspension
from crawler.core.http.backoff import compute_backoff
from crawler.core.visit.lifecycle import MAX_PAGE_RETRY_AFTER
from crawler.core.visit.visit import FIRST_RETRY, Visit
from crawler.engine.store_port import LeasedStore

VISITS_UNTIL_OUTAGE = 5  # visits in a row without a response or with a 5xx, until the domain itself is checked
# Suspension of a domain of which a single page sent a Retry-After above MAX_PAGE_RETRY_AFTER.
DOUBTFUL_SUSPENSION = timedelta(hours=1)


class CircuitBreaker:
    """The circuit breaker of one lease. It defers visits without a response or with a 5xx until the cause is known.

    suspension: why and until when the domain is suspended; None if it is not.
    is_half_open: the domain was suspended before and has not responded since: one visit at a time until it does.
    pending: the deferred visits.
    """

    def __init__(self, store: LeasedStore) -> None:
        self.settings, self.clock = store.settings, store.clock
        self.rejections_before = store.lease.rejections
        self.is_half_open = self.rejections_before > 0
        self.suspension: Suspension | None = None
        self.pending: list[Visit] = []
        self.has_good_visit = False  # under this lease
        self.long_wait_count = 0  # visits with a Retry-After above MAX_PAGE_RETRY_AFTER

    @property
    def is_in_doubt(self) -> bool:
        """Return whether so many visits are deferred that the domain itself must be checked."""
        return len(self.pending) >= (1 if self.is_half_open else VISITS_UNTIL_OUTAGE)

    def add_visit(self, visit: Visit) -> list[Visit]:
        """Add a visit; return the visits that can be recorded now."""
        if visit.no_response or visit.is_server_error:
            self.pending.append(visit)
            return []
        released = []
        if visit.requests:
            released = self.release_as_page_faults()  # the domain responds, so the pages are at fault
            self.is_half_open = self.is_half_open and visit.overloaded
        self.has_good_visit = self.has_good_visit or visit.is_good
        if visit.overloaded:
            self.suspend(visit.reason, requested_wait=self.limit_wait(visit.retry_after))
        return [*released, visit]

    def limit_wait(self, requested_wait: timedelta | None) -> timedelta | None:
        """Return the wait for the whole domain after a page's Retry-After, and count long ones."""
        if requested_wait is None or requested_wait <= MAX_PAGE_RETRY_AFTER:
            return requested_wait
        self.long_wait_count += 1
        rejections_before = 0 if self.has_good_visit else self.rejections_before
        return requested_wait if self.long_wait_count + rejections_before > 1 else DOUBTFUL_SUSPENSION

    def release_as_page_faults(self) -> list[Visit]:
        """Return the pending visits unchanged: their pages are at fault."""
        suspects, self.pending = self.pending, []
        return suspects

    def release_as_outage(self, suspects: list[Visit]) -> list[Visit]:
        """Suspend the domain because it is at fault, and return the visits to record, without failures of the pages."""
        suspension = self.suspension or self.suspend(suspects[-1].reason, requested_wait=None)
        due_at = suspension.until + FIRST_RETRY  # other pages come first when the crawl resumes
        return [replace(visit, failures=visit.target.failures, recipients=None, due_at=due_at) for visit in suspects]

    def suspend(self, reason: str, *, requested_wait: timedelta | None) -> Suspension:
        """Suspend the domain and return the suspension. A burst of rejections counts once; the longest wait applies."""
        rejections = 1 if self.has_good_visit else self.rejections_before + 1
        limits = {"max_backoff": self.settings.max_backoff, "max_requested_wait": self.settings.max_retry_after}
        until = self.clock.now() + compute_backoff(rejections, requested_wait=requested_wait, **limits)
        if self.suspension is None or until > self.suspension.until:
            self.suspension = Suspension(until=until, reason=reason, rejections=rejections)
        return self.suspension
