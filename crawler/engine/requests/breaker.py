"""The circuit breaker of a lease: are failures the pages' fault or the domain's, and how long is it left alone?"""

from dataclasses import replace
from datetime import timedelta

from crawler.core.domain import Suspension
from crawler.core.http.backoff import compute_backoff
from crawler.core.visit.lifecycle import MAX_PAGE_RETRY_AFTER
from crawler.core.visit.visit import FIRST_RETRY, Visit
from crawler.engine.store_port import LeasedStore

# for which a domain is held of which one page asks for more than it may for all
DOUBTFUL_SUSPENSION = timedelta(hours=1)
VISITS_UNTIL_OUTAGE = 5  # in a row without any answer, or with none but errors of the server's own (5xx)


class CircuitBreaker:
    """Holds back the visits of one lease that got no answer or a 5xx, until it is known whose fault that was.

    hold: why and until when nobody asks the domain anything, once there is a reason.
    is_half_open: the domain was left alone before, and has not answered since: one look at a time, until it does.
    pending: the visits that are held back, since the last good answer.
    """

    def __init__(self, store: LeasedStore) -> None:
        self.settings, self.clock = store.settings, store.clock
        self.rejections_before = store.lease.rejections
        self.is_half_open = self.rejections_before > 0
        self.suspension: Suspension | None = None
        self.pending: list[Visit] = []
        self.has_good_visit = False  # something good came under this lease
        self.long_wait_count = 0  # pages that asked for more under this lease than one page may for all

    @property
    def is_in_doubt(self) -> bool:
        """So many visits are held back that the domain must be asked whether it is there at all."""
        return len(self.pending) >= (1 if self.is_half_open else VISITS_UNTIL_OUTAGE)

    def add_visit(self, visit: Visit) -> list[Visit]:
        """Take in one more visit; gives those that can be recorded now."""
        if visit.no_response or visit.is_server_error:
            self.pending.append(visit)
            return []
        released = []
        if visit.requests:
            released = self.release_as_page_faults()  # the domain answers, so it was the pages' fault
            self.is_half_open = self.is_half_open and visit.overloaded
        self.has_good_visit = self.has_good_visit or visit.is_good
        if visit.overloaded:
            self.suspend(visit.reason, requested_wait=self.limit_wait(visit.retry_after))
        return [*released, visit]

    def limit_wait(self, requested_wait: timedelta | None) -> timedelta | None:
        """The wait that a page asked for, as far as it holds for its domain; for the page itself it holds anyway."""
        if requested_wait is None or requested_wait <= MAX_PAGE_RETRY_AFTER:
            return requested_wait
        self.long_wait_count += 1
        rejections_before = 0 if self.has_good_visit else self.rejections_before
        return requested_wait if self.long_wait_count + rejections_before > 1 else DOUBTFUL_SUSPENSION

    def release_as_page_faults(self) -> list[Visit]:
        """Let the pending visits go as they are: their pages are to blame."""
        suspects, self.pending = self.pending, []
        return suspects

    def release_as_outage(self, suspects: list[Visit]) -> list[Visit]:
        """The visits as they are recorded where the domain is to blame: it is left alone, its pages are not judged."""
        suspension = self.suspension or self.suspend(suspects[-1].reason, requested_wait=None)
        due_at = suspension.until + FIRST_RETRY  # others shall come first when the domain is asked again
        return [replace(visit, failures=visit.target.failures, recipients=None, due_at=due_at) for visit in suspects]

    def suspend(self, reason: str, *, requested_wait: timedelta | None) -> Suspension:
        """Hold the domain; a burst of rejections counts once, and the longest wait asked for wins."""
        rejections = 1 if self.has_good_visit else self.rejections_before + 1
        max_backoff, max_requested = self.settings.max_backoff, self.settings.max_retry_after
        until = self.clock.now() + compute_backoff(
            rejections, requested_wait=requested_wait, max_backoff=max_backoff, max_requested_wait=max_requested
        )
        if self.suspension is None or until > self.suspension.until:
            self.suspension = Suspension(until=until, reason=reason, rejections=rejections)
        return self.suspension
