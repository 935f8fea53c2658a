"""Asking a server, one request at a time: at its pace, within the lease, and on the account of the day.

Whatever asks the web does it through a PacedWeb: a crawl and `recrawl try` by a Requester, which has a lease and its
budget; registration, which has neither, by a pacer for each server.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import date, timedelta
from typing import TYPE_CHECKING

from crawler.core.http.credentials import NO_ACCESS, Access
from crawler.core.http.response import (
    NO_VALIDATORS,
    USUAL_BOUNDS,
    Answer,
    Bounds,
    Fetched,
    Method,
    Reason,
    Relay,
    Relayed,
    Unreached,
    Validators,
)
from crawler.core.http.urls import Url
from crawler.engine.requests.lease_budget import LeaseBudget
from crawler.engine.requests.pacer import Pacer
from crawler.engine.requests.session import DomainSession
from crawler.engine.stats import CrawlStats
from crawler.engine.store_port import LeasedStore

if TYPE_CHECKING:  # as in resources.py
    from crawler.fetch import Http

RELAY_DEADLINE = timedelta(seconds=8)  # of what a page asks for: one that never ends would hold up its render

Form = tuple[tuple[str, str], ...]  # names and values of fields
# Waits until a request that may take so long may be sent, or raises.
Fence = Callable[[timedelta], Awaitable[None]]


async def no_fence(_longest: timedelta) -> None:
    """Let every request through, as where there is no lease to outlast it."""


def latency_of(answer: Answer) -> timedelta | None:
    """How long the server took for an answer, or too long for one; None where it was not at work."""
    if isinstance(answer, Unreached) and answer.reason is not Reason.DEADLINE:
        return None
    return answer.elapsed


@dataclass(frozen=True, slots=True)
class WebRequest:
    """One request of ours. bounds: of its answer.  form: of a POST."""

    url: Url
    validators: Validators = NO_VALIDATORS
    method: Method = "GET"
    bounds: Bounds = USUAL_BOUNDS
    form: Form = ()


class PacedWeb:
    """One server, asked no sooner than its pacer allows.

    deadline: of a request.  language: as in Http.fetch.  session: what its own URLs are shown; None: nothing.
    Who sends asks before whether the domain's hours are closed.
    """

    def __init__(
        self,
        web: "Http",
        pacer: Pacer,
        *,
        deadline: timedelta,
        language: str = "",
        fence: Fence = no_fence,
        session: DomainSession | None = None,
    ) -> None:
        self.pacer = pacer
        self._web, self._deadline, self._language, self._fence = web, deadline, language, fence
        self._session = session

    async def turn(self, *, is_over: Callable[[], bool] = lambda: False) -> None:
        """Wait until one request may be sent, or nobody wants to."""
        await self.pacer.pass_through(self._room, is_over=is_over)

    async def send(self, request: WebRequest) -> Answer:
        """The request whose turn it is."""
        latency: timedelta | None = None
        try:
            answer = await self._web.fetch(
                request.url,
                validators=request.validators,
                deadline=self._deadline,
                method=request.method,
                language=self._language,
                bounds=request.bounds,
                access=self._access(request.url, request.form),
            )
            latency = latency_of(answer)
        finally:
            self.pacer.answered(latency)
        return answer

    async def fetch(self, url: Url, *, bounds: Bounds = USUAL_BOUNDS) -> Answer:
        """One request in its turn."""
        await self.turn()
        return await self.send(WebRequest(url, bounds=bounds))

    async def relay(self, request: Relay, *, is_own: bool) -> Relayed | Unreached:
        """A page's own request: in its turn if it is this server's, else at once, but never to a private address."""
        if not is_own:
            await self._room()
            return await self._web.relay(request, deadline=RELAY_DEADLINE, bounds=Bounds(public_only=True))
        await self.turn(is_over=self.pacer.is_closed)
        if self.pacer.is_closed():
            return Unreached(Reason.LEASE, timedelta(0), "the domain's hours are closed")
        latency: timedelta | None = None
        try:
            began = time.monotonic()
            answer = await self._web.relay(request, deadline=RELAY_DEADLINE, access=self._access(request.url))
            latency = timedelta(seconds=time.monotonic() - began)
        finally:
            self.pacer.answered(latency)
        return answer

    def _access(self, url: Url, form: Form = ()) -> Access:
        return NO_ACCESS if self._session is None else self._session.access(url, form=form)

    async def _room(self) -> None:
        await self._fence(self._deadline)


def leased_server(session: DomainSession, store: LeasedStore, *, fence: Fence) -> PacedWeb:
    """The server of a leased domain, at the domain's delay, in its hours. A longer request could outlast the lease."""
    lease = store.lease
    wished, deadline = lease.domain.settings, min(store.settings.deadline, lease.term / 2)
    pacer = Pacer(
        delay=store.settings.delay_of(wished, is_own=lease.domain.is_own),
        wait=lease.wait,
        hours=lease.domain.hours,
        clock=store.clock,
        latency_factor=wished.latency_factor,
    )
    return PacedWeb(session.web, pacer, deadline=deadline, language=wished.language, fence=fence, session=session)


class Requester:
    """Sends the requests of one lease.

    term: of the lease.  is_ending: whether anybody wants the lease to end.  stats: where requests are counted that
    begin no look.  answered: what pages said a moment ago; each counts as the request of their first look.
    """

    def __init__(
        self,
        server: PacedWeb,
        budget: LeaseBudget,
        *,
        term: timedelta,
        stats: CrawlStats,
        is_ending: Callable[[], bool] = lambda: False,
        answered: dict[Url, Fetched] | None = None,
    ) -> None:
        self._server, self._budget, self._stats = server, budget, stats
        self._answered = {} if answered is None else answered
        self._longest_wait, self._is_ending = term / 2, is_ending

    @property
    def pacer(self) -> Pacer:
        return self._server.pacer

    @property
    def day(self) -> date | None:
        """The day on whose account requests are taken now."""
        return self._budget.day

    @property
    def is_stopping(self) -> bool:
        """Nothing new is begun; a domain that is closed, or whose next request is far off, is released, not held."""
        return self._is_over() or self.pacer.wait > self._longest_wait

    def _is_over(self) -> bool:
        return self._is_ending() or self.pacer.is_closed()

    async def look(self, request: WebRequest) -> Answer | None:
        """The request that was taken when its page was handed out; None, and given back, if it was not begun."""
        day = self._budget.day
        is_plain = request.method == "GET" and not request.validators
        if is_plain and (answered := self._answered.pop(request.url, None)) is not None:
            self._budget.count_received(answered.received_bytes, is_look=True)
            return answered
        try:
            await self._server.turn(is_over=self._is_over)
        except asyncio.CancelledError:
            self._budget.take_back(1, day=day)  # it was not sent
            raise
        if self._budget.is_over or day != self._budget.day or self._is_over() or not self._budget.has_bytes:
            self._budget.take_back(1, day=day)
            return None
        return await self._send(request, is_look=True)

    async def reserve(self) -> bool:
        """Take one request more, which a look may turn out to need: so it is not begun if it could not be finished."""
        return not self.is_stopping and await self._budget.take_one()

    def give_back(self, *, day: date | None) -> None:
        """Return the request that was reserved on that day."""
        self._budget.give_back(1, day=day)

    async def look_reserved(self, request: WebRequest) -> Answer | None:
        """The request that was reserved; None where its day is over, or the domain wants to be left alone for long."""
        if self.pacer.wait > self._longest_wait or self._budget.is_over:
            self._budget.give_back(1, day=self._budget.day)
            return None
        return await self._send_in_turn(request, is_look=True)

    async def look_on(
        self, url: Url, *, validators: Validators = NO_VALIDATORS, bounds: Bounds = USUAL_BOUNDS
    ) -> Answer | None:
        """One request more for a look; None where the budget has none left, or the lease is ending."""
        return None if self.is_stopping else await self._ask(WebRequest(url, validators, bounds=bounds), is_look=True)

    async def ask(self, url: Url, *, bounds: Bounds = USUAL_BOUNDS) -> Answer | None:
        """One request for what is no look; None where the budget has none left, or the domain's hours are closed."""
        return await self._ask(WebRequest(url, bounds=bounds), is_look=False)

    async def relay(self, request: Relay, *, is_own: bool) -> Relayed | Unreached | None:
        """A request of a page in the browser, for its look; None where the budget has none left, or the lease ends."""
        if self.is_stopping or not self._budget.has_bytes or not await self._budget.take_one():
            return None
        answer = await self._server.relay(request, is_own=is_own)
        self._budget.count_received(answer.received_bytes, is_look=True)
        self._stats.requests += 1
        return answer

    async def post(self, url: Url, form: Form) -> Answer | None:
        """One request that sends a form, as for a login; None as of `ask`."""
        return await self._ask(WebRequest(url, method="POST", form=form), is_look=False)

    async def _ask(self, request: WebRequest, *, is_look: bool) -> Answer | None:
        if self.pacer.is_closed() or (await self._budget.take(1)).requests != 1:
            return None
        return await self._send_in_turn(request, is_look=is_look)

    async def _send_in_turn(self, request: WebRequest, *, is_look: bool) -> Answer | None:
        """One request that was taken; None, and given back, where the domain's hours close before its turn."""
        day = self._budget.day
        try:
            await self._server.turn(is_over=self.pacer.is_closed)
        except asyncio.CancelledError:
            self._budget.give_back(1, day=day)
            raise
        if self.pacer.is_closed():
            self._budget.give_back(1, day=day)
            return None
        answer = await self._send(request, is_look=is_look)
        self._stats.requests += 1
        return answer

    async def _send(self, request: WebRequest, *, is_look: bool) -> Answer:
        answer = await self._server.send(request)
        self._budget.count_received(answer.received_bytes, is_look=is_look)
        return answer
