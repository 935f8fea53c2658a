"""Logging in by a form, and again when pages turn into that form; a few times under one lease, at the domain's pace."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import replace

from crawler.core.domain import Domain
from crawler.core.http.credentials import LoginReference
from crawler.core.http.response import NO_VALIDATORS, Answer, Fetched, Unreached
from crawler.core.http.urls import Url, normalise, path_and_query
from crawler.core.page.forms import LoginForm, login_form_in
from crawler.core.visit.visit import PERMANENT, TEMPORARY
from crawler.engine.requests.requester import Requester
from crawler.engine.requests.session import DomainSession

log = logging.getLogger("recrawl.login")

LOGIN_FAILED = "login_failed"  # how the reason of a hold begins
MOST_HOPS = 5  # from the form to the page that a login ends at, and from its address to the form
MOST_RENEWALS = 3  # under one lease: a page that shows the form to everybody is no reason to log in for ever


class _LoginError(Exception):
    """A login did not succeed; the message says why, without what was sent."""


class _OutOfBudgetError(Exception):
    """The day's budget has no request left, or the domain's hours are closed."""


class Login:
    """The login of a domain under one lease. leave_alone: told why when it fails, so that the lease ends.

    To be used only where the session has one.
    """

    def __init__(
        self, session: DomainSession, requester: Requester, domain: Domain, *, leave_alone: Callable[[str], object]
    ) -> None:
        assert session.login is not None
        self._session, self._requester, self._leave_alone = session, requester, leave_alone
        self._login: LoginReference = session.login
        self._url = normalise(self._login.path, base=domain.root) or domain.root
        self._domain = domain
        self._renewals = 0
        self._turn = asyncio.Lock()

    @property
    def done(self) -> int:
        """How many logins have succeeded, by which who was shown a form knows whether there was one since."""
        return self._session.logins

    async def begin(self) -> bool:
        """Log in, unless that was done before; whether pages may be asked now."""
        return self._session.is_logged_in or await self._log_in()

    def is_asked_by(self, answer: Answer, *, url: Url) -> bool:
        """Whether an answer wants a login first: 401, a redirect to the form, or the form. url: that was asked."""
        if not isinstance(answer, Fetched) or _path(url) == _path(self._url):
            return False
        if answer.status in PERMANENT | TEMPORARY and answer.location is not None:
            return self._session.is_own(answer.location) and _path(answer.location) == _path(self._url)
        return answer.status == 401 or self._form_in(answer, url) is not None

    async def renew(self, *, since: int) -> bool:
        """Log in again, unless somebody else has meanwhile; whether it is worth asking again. since: see `done`."""
        async with self._turn:
            if self.done > since:
                return True
            if self._renewals >= MOST_RENEWALS or self._requester.is_stopping:
                return False
            self._renewals += 1
            return await self._log_in()

    async def _log_in(self) -> bool:
        about = {"domain": self._domain.authority, "path": self._login.path, "fields": self._names}
        try:
            await self._try()
        except _OutOfBudgetError:
            return False
        except _LoginError as error:
            log.warning("login.failed", extra=about | {"why": str(error)})
            self._session.is_logged_in = False
            self._leave_alone(f"{LOGIN_FAILED} {error}")
            return False
        log.info("login.done", extra=about)
        self._session.is_logged_in = True
        self._session.logins += 1
        return True

    @property
    def _names(self) -> list[str]:
        return [name for name, _ in self._login.fields]

    async def _try(self) -> None:
        page, url = await self._followed(await self._had(self._requester.ask(self._url)), self._url)
        form = self._form_in(page, url)
        if form is None:
            raise _LoginError(f"no form with the fields {', '.join(self._names)} at {self._login.path}")
        if not form.is_post or form.action is None:
            raise _LoginError(f"the form at {self._login.path} is not sent by POST")
        if not self._session.is_own(form.action):
            raise _LoginError(f"the form at {self._login.path} leads to another domain")
        filled = form.filled(self._session.values(self._login))
        said = await self._had(self._requester.post(form.action, filled))
        end, url = await self._followed(said, form.action)
        if end.status >= 400:
            raise _LoginError(f"status {end.status}")
        if self._form_in(end, url) is not None:
            raise _LoginError("the form is shown again: its fields are not accepted")

    async def _followed(self, answer: Fetched, url: Url) -> tuple[Fetched, Url]:
        """The page to which redirects lead within the domain, and its URL."""
        for _ in range(MOST_HOPS):
            if answer.status not in PERMANENT | TEMPORARY or answer.location is None:
                break
            url = answer.location
            if not self._session.is_own(url):
                raise _LoginError("it leads to another domain")
            answer = await self._had(self._requester.ask(url))
        return answer, url

    async def _had(self, asking: Awaitable[Answer | None]) -> Fetched:
        answer = await asking
        if answer is None:
            raise _OutOfBudgetError
        if isinstance(answer, Unreached):
            raise _LoginError(f"no answer ({answer.reason})")
        if not isinstance(answer, Fetched):
            raise _LoginError("no answer that is a page")
        return answer

    def _form_in(self, page: Fetched, url: Url) -> LoginForm | None:
        return login_form_in(page.body, page.content_type, url=url, names=self._names)


def no_entry(answer: Answer) -> Answer:
    """An answer that wants a login as the 401 that it means."""
    if not isinstance(answer, Fetched):
        return answer
    return replace(answer, status=401, body=b"", location=None, validators=NO_VALIDATORS)


def _path(url: Url) -> str:
    return path_and_query(url).partition("?")[0]
