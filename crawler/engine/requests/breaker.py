"""The circuit breaker of a lease: are failures the pages' fault or the domain's, and how long is it left alone?"""

from dataclasses import replace
from datetime import timedelta

from crawler.core.domain import Hold
from crawler.core.http.backoff import backoff
from crawler.core.visit.lifecycle import MOST_OF_ONE_PAGE
from crawler.core.visit.visit import FIRST_RETRY, Visit
from crawler.engine.store_port import LeasedStore

IN_DOUBT = timedelta(hours=1)  # for which a domain is held of which one page asks for more than it may for all
LOOKS_UNTIL_OUTAGE = 5  # in a row without any answer, or with none but errors of the server's own (5xx)


class CircuitBreaker:
    """Holds back the visits of one lease that got no answer or a 5xx, until it is known whose fault that was.

    hold: why and until when nobody asks the domain anything, once there is a reason.
    is_half_open: the domain was left alone before, and has not answered since: one look at a time, until it does.
    pending: the visits that are held back, since the last good answer.
    """

    def __init__(self, store: LeasedStore) -> None:
        self.settings, self.clock = store.settings, store.clock
        self.refusals_before = store.lease.refusals
        self.is_half_open = self.refusals_before > 0
        self.hold: Hold | None = None
        self.pending: list[Visit] = []
        self.has_done_well = False  # something good came under this lease
        self.long_waits = 0  # pages that asked for more under this lease than one page may for all

    @property
    def is_in_doubt(self) -> bool:
        """So many visits are held back that the domain must be asked whether it is there at all."""
        return len(self.pending) >= (1 if self.is_half_open else LOOKS_UNTIL_OUTAGE)

    def take_in(self, visit: Visit) -> list[Visit]:
        """Take in one more visit; gives those that can be recorded now."""
        if visit.no_response or visit.is_server_error:
            self.pending.append(visit)
            return []
        known = []
        if visit.requests:
            known = self.release_as_page_faults()  # the domain answers, so it was the pages' fault
            self.is_half_open = self.is_half_open and visit.overloaded
        self.has_done_well = self.has_done_well or visit.is_good
        if visit.overloaded:
            self.leave_alone(visit.reason, asked=self.believed(visit.retry_after))
        return [*known, visit]

    def believed(self, asked: timedelta | None) -> timedelta | None:
        """The wait that a page asked for, as far as it holds for its domain; for the page itself it holds anyway."""
        if asked is None or asked <= MOST_OF_ONE_PAGE:
            return asked
        self.long_waits += 1
        refusals_before = 0 if self.has_done_well else self.refusals_before
        return asked if self.long_waits + refusals_before > 1 else IN_DOUBT

    def release_as_page_faults(self) -> list[Visit]:
        """Let the pending visits go as they are: their pages are to blame."""
        suspects, self.pending = self.pending, []
        return suspects

    def release_as_outage(self, suspects: list[Visit]) -> list[Visit]:
        """The visits as they are recorded where the domain is to blame: it is left alone, its pages are not judged."""
        hold = self.hold or self.leave_alone(suspects[-1].reason, asked=None)
        due_at = hold.until + FIRST_RETRY  # others shall come first when the domain is asked again
        return [replace(visit, failures=visit.target.failures, recipients=None, due_at=due_at) for visit in suspects]

    def leave_alone(self, reason: str, *, asked: timedelta | None) -> Hold:
        """Hold the domain; a burst of refusals counts once, and the longest wait asked for wins."""
        refusals = 1 if self.has_done_well else self.refusals_before + 1
        most, most_asked = self.settings.max_backoff, self.settings.max_retry_after
        until = self.clock.now() + backoff(refusals, asked=asked, most=most, most_asked=most_asked)
        if self.hold is None or until > self.hold.until:
            self.hold = Hold(until=until, reason=reason, refusals=refusals)
        return self.hold
