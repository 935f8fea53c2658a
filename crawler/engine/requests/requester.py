"""Send requests to a server: with its delay, within the lease, and debited from the day's budget.

All requests go through a PacedServer. A crawl and `recrawl try` use it through a Requester, which has a lease and a
budget. Registration has no lease and no budget, and uses one PacedServer for each server.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from datetime import date, timedelta

from msgspec import Struct

from crawler.core.http.credentials import NO_AUTH, RequestAuth
from crawler.core.http.response import (
    DEFAULT_LIMITS,
    NO_VALIDATORS,
    BrowserRequest,
    BrowserResponse,
    FailureReason,
    Fetched,
    Method,
    RequestLimits,
    Response,
    Unreached,
    Validators,
)
from crawler.core.http.urls import Url
from crawler.engine.requests.lease_budget import LeaseBudget
from crawler.engine.requests.pacer import Pacer
from crawler.engine.requests.session import DomainSession
from crawler.engine.stats import CrawlStats
from crawler.engine.store_port import LeasedStore
from crawler.fetch import Http

RELAY_DEADLINE = timedelta(seconds=8)  # for requests of a page in the browser: an endless one would delay rendering

Form = tuple[tuple[str, str], ...]  # names and values of fields
# Waits until a request with this time limit may be sent, or raises.
Fence = Callable[[timedelta], Awaitable[None]]


async def skip_fence(_max_duration: timedelta) -> None:
    """Let every request through, for use without a lease."""


def compute_latency(response: Response) -> timedelta | None:
    """Return the time that the server took to respond or to time out; None after any other failure."""
    if isinstance(response, Unreached) and response.reason is not FailureReason.DEADLINE:
        return None
    return response.elapsed


class WebRequest(Struct, frozen=True):
    """A request to send. limits: limits of its response.  form: the fields of a POST."""

    url: Url
    validators: Validators = NO_VALIDATORS
    method: Method = "GET"
    limits: RequestLimits = DEFAULT_LIMITS
    form: Form = ()


class PacedServer:
    """A server whose requests are paced.

    deadline: the time limit of one request.  language: as in Http.fetch.  session: credentials and cookies for the
    domain's own URLs; None: none.  Callers of `send_request` and `fetch` must check whether the hours are closed.
    """

    def __init__(
        self,
        http_client: Http,
        pacer: Pacer,
        *,
        deadline: timedelta,
        language: str = "",
        fence: Fence = skip_fence,
        session: DomainSession | None = None,
    ) -> None:
        self.pacer = pacer
        self._http_client, self._deadline, self._language, self._fence = http_client, deadline, language, fence
        self._session = session

    async def wait_for_slot(self, *, is_over: Callable[[], bool] = lambda: False) -> None:
        """Wait until one request may be sent, or `is_over` returns True."""
        await self.pacer.wait_for_slot(self._wait_for_lease, is_over=is_over)

    async def send_request(self, request: WebRequest) -> Response:
        """Send a request, after `wait_for_slot`."""
        latency: timedelta | None = None
        try:
            response = await self._http_client.fetch(
                request.url,
                validators=request.validators,
                deadline=self._deadline,
                method=request.method,
                language=self._language,
                limits=request.limits,
                auth=self._choose_auth(request.url, request.form),
            )
            latency = compute_latency(response)
        finally:
            self.pacer.note_response(latency)
        return response

    async def fetch(self, url: Url, *, limits: RequestLimits = DEFAULT_LIMITS) -> Response:
        """Wait for the delay, then fetch a URL."""
        await self.wait_for_slot()
        return await self.send_request(WebRequest(url, limits=limits))

    async def relay(self, request: BrowserRequest, *, is_own: bool) -> BrowserResponse | Unreached | None:
        """Send a request of a page in the browser: paced if it is for this server, else at once to a public address.

        Return None if the hours close during the wait.
        """
        if not is_own:
            await self._wait_for_lease()
            limits = RequestLimits(public_only=True)
            return await self._http_client.relay(request, deadline=RELAY_DEADLINE, limits=limits)
        await self.wait_for_slot(is_over=self.pacer.is_closed)
        if self.pacer.is_closed():
            return None
        latency: timedelta | None = None
        try:
            began, auth = time.monotonic(), self._choose_auth(request.url)
            response = await self._http_client.relay(request, deadline=RELAY_DEADLINE, auth=auth)
            latency = timedelta(seconds=time.monotonic() - began)
        finally:
            self.pacer.note_response(latency)
        return response

    def _choose_auth(self, url: Url, form: Form = ()) -> RequestAuth:
        return NO_AUTH if self._session is None else self._session.choose_auth(url, form=form)

    async def _wait_for_lease(self) -> None:
        await self._fence(self._deadline)


def build_leased_server(session: DomainSession, store: LeasedStore, *, fence: Fence) -> PacedServer:
    """Build the paced server of a leased domain, with its delay and hours and a deadline below the lease's term."""
    lease = store.lease
    domain_settings, deadline = lease.domain.settings, min(store.settings.request_timeout, lease.term / 2)
    pacer = Pacer(
        delay=store.settings.choose_delay(domain_settings, is_own=lease.domain.is_own_server),
        wait=lease.wait,
        hours=lease.domain.hours,
        clock=store.clock,
        latency_factor=domain_settings.latency_factor,
    )
    language = domain_settings.language
    return PacedServer(session.http_client, pacer, deadline=deadline, language=language, fence=fence, session=session)


class Requester:
    """The sender of one lease's requests.

    term: the lease's term.  is_ending: returns whether the lease must end.  stats: counts requests, but not of targets.
    prefetched: responses that were just fetched; each counts as the request of its page's first visit.
    """

    def __init__(
        self,
        server: PacedServer,
        budget: LeaseBudget,
        term: timedelta,
        stats: CrawlStats,
        *,
        is_ending: Callable[[], bool] = lambda: False,
        prefetched: dict[Url, Fetched] | None = None,
    ) -> None:
        self._server, self._budget, self._stats = server, budget, stats
        self._prefetched = {} if prefetched is None else prefetched
        self._max_wait, self._is_ending = term / 2, is_ending

    @property
    def pacer(self) -> Pacer:
        return self._server.pacer

    @property
    def day(self) -> date | None:
        """Return the day of the last grant."""
        return self._budget.day

    @property
    def is_stopping(self) -> bool:
        """Return whether to start nothing new: the lease ends, the hours are closed, or the next request is far off."""
        return self._is_over() or self.pacer.wait > self._max_wait

    def _is_over(self) -> bool:
        return self._is_ending() or self.pacer.is_closed()

    async def fetch_target(self, request: WebRequest) -> Response | None:
        """Send the request that was debited for a dispatched page; if it cannot be sent, refund it and return None."""
        day = self._budget.day
        is_plain = request.method == "GET" and not request.validators
        if is_plain and (prefetched := self._prefetched.pop(request.url, None)) is not None:
            self._budget.count_received(prefetched.received_bytes, is_visit=True)
            return prefetched
        try:
            await self._server.wait_for_slot(is_over=self._is_over)
        except asyncio.CancelledError:
            self._budget.return_assigned(1, day=day)  # it was not sent
            raise
        if self._budget.is_day_over or day != self._budget.day or self._is_over() or not self._budget.has_bytes:
            self._budget.return_assigned(1, day=day)
            return None
        return await self._send(request, is_visit=True)

    async def reserve_request(self) -> bool:
        """Debit a second request that a visit may need to finish; return whether that was possible."""
        return not self.is_stopping and await self._budget.take_request()

    def return_reserved(self, *, day: date | None) -> None:
        """Return the request that was reserved on `day`."""
        self._budget.return_requests(1, day=day)

    async def fetch_reserved(self, request: WebRequest) -> Response | None:
        """Send the reserved request; return None if its day is over, the delay is too long or the hours are closed."""
        if self.pacer.wait > self._max_wait or self._budget.is_day_over:
            self._budget.return_requests(1, day=self._budget.day)
            return None
        return await self._send_in_slot(request, is_visit=True)

    async def fetch_extra(
        self, url: Url, *, validators: Validators = NO_VALIDATORS, limits: RequestLimits = DEFAULT_LIMITS
    ) -> Response | None:
        """Send an extra request for a visit; return None if the budget is spent or the lease is ending."""
        if self.is_stopping:
            return None
        return await self._take_and_send(WebRequest(url, validators, limits=limits), is_visit=True)

    async def request_url(self, url: Url, *, limits: RequestLimits = DEFAULT_LIMITS) -> Response | None:
        """Send a request that belongs to no visit; return None if the budget is spent or the hours are closed."""
        return await self._take_and_send(WebRequest(url, limits=limits), is_visit=False)

    async def relay(self, request: BrowserRequest, *, is_own: bool) -> BrowserResponse | Unreached | None:
        """Send a request as PacedServer.relay does; return None if the budget is spent or the lease is ending."""
        if self.is_stopping or not self._budget.has_bytes or not await self._budget.take_request():
            return None
        day = self._budget.day
        response = await self._server.relay(request, is_own=is_own)
        if response is None:
            self._budget.return_requests(1, day=day)
            return None
        self._budget.count_received(response.received_bytes, is_visit=True)
        self._stats.requests += 1
        return response

    async def post_form(self, url: Url, form: Form) -> Response | None:
        """Send a form, for example a login; return None as `request_url` does."""
        return await self._take_and_send(WebRequest(url, method="POST", form=form), is_visit=False)

    async def _take_and_send(self, request: WebRequest, *, is_visit: bool) -> Response | None:
        if self.pacer.is_closed() or (await self._budget.take_requests(1)).requests != 1:
            return None
        return await self._send_in_slot(request, is_visit=is_visit)

    async def _send_in_slot(self, request: WebRequest, *, is_visit: bool) -> Response | None:
        """Send a debited request; return None and refund it if the domain's hours close during the wait."""
        day = self._budget.day
        try:
            await self._server.wait_for_slot(is_over=self.pacer.is_closed)
        except asyncio.CancelledError:
            self._budget.return_requests(1, day=day)
            raise
        if self.pacer.is_closed():
            self._budget.return_requests(1, day=day)
            return None
        response = await self._send(request, is_visit=is_visit)
        self._stats.requests += 1
        return response

    async def _send(self, request: WebRequest, *, is_visit: bool) -> Response:
        response = await self._server.send_request(request)
        self._budget.count_received(response.received_bytes, is_visit=is_visit)
        return response
