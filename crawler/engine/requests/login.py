"""Log in through a form, and again when pages require it: a few times per lease, with the domain's delay."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from msgspec.structs import replace

from crawler.core.domain import LOGIN_FAILED, Domain
from crawler.core.http.credentials import LoginReference
from crawler.core.http.response import NO_VALIDATORS, Fetched, Response, Unreached
from crawler.core.http.urls import Url, get_path_and_query, normalize_url
from crawler.core.page.forms import LoginForm, find_login_form
from crawler.core.visit.state import PERMANENT_REDIRECTS, TEMPORARY_REDIRECTS
from crawler.engine.requests.requester import Requester
from crawler.engine.requests.session import DomainSession

log = logging.getLogger("recrawl.login")

MAX_REDIRECTS = 5  # before the form, and again after it was sent
MAX_RENEWALS = 3  # per lease: a page that always shows the form must not cause endless logins


class _LoginError(Exception):
    """A login that failed. The message says why, without the values that were sent."""


class _OutOfBudgetError(Exception):
    """The day's budget is spent, or the domain's crawl hours are closed."""


class Login:
    """The login of a domain under one lease, for sessions that have one.

    suspend: called with the reason when a login fails, to end the lease.
    """

    def __init__(
        self, session: DomainSession, requester: Requester, domain: Domain, *, suspend: Callable[[str], object]
    ) -> None:
        assert session.login is not None
        self._session, self._requester, self._suspend = session, requester, suspend
        self._login: LoginReference = session.login
        self._url = normalize_url(self._login.path, base=domain.root) or domain.root
        self._domain = domain
        self._renewals = 0
        self._lock = asyncio.Lock()

    @property
    def login_count(self) -> int:
        """Return how many logins have succeeded; compare it to find out whether there was one since a request."""
        return self._session.logins

    async def ensure_logged_in(self) -> bool:
        """Log in unless this was done before; return whether pages may be fetched now."""
        return self._session.is_logged_in or await self._log_in()

    def is_required_by(self, response: Response, *, url: Url) -> bool:
        """Return whether a page other than the form's requires a login: 401, a redirect to the form, or the form."""
        if not isinstance(response, Fetched) or _extract_path(url) == _extract_path(self._url):
            return False
        if response.status in PERMANENT_REDIRECTS | TEMPORARY_REDIRECTS and response.location is not None:
            is_form = _extract_path(response.location) == _extract_path(self._url)
            return is_form and self._session.is_own(response.location)
        return response.status == 401 or self._find_form(response, url) is not None

    async def renew(self, *, since: int) -> bool:
        """Log in again, unless another visit has done so meanwhile; return whether to fetch the page again.

        since: `login_count` before the request.
        """
        async with self._lock:
            if self.login_count > since:
                return True
            if self._renewals >= MAX_RENEWALS or self._requester.is_stopping:
                return False
            self._renewals += 1
            return await self._log_in()

    async def _log_in(self) -> bool:
        log_facts = {"domain": self._domain.authority, "path": self._login.path, "fields": self._field_names}
        try:
            await self._submit_form()
        except _OutOfBudgetError:
            return False
        except _LoginError as error:
            log.warning("login.failed", extra=log_facts | {"why": str(error)})
            self._session.is_logged_in = False
            self._suspend(f"{LOGIN_FAILED} {error}")
            return False
        log.info("login.done", extra=log_facts)
        self._session.is_logged_in = True
        self._session.logins += 1
        return True

    @property
    def _field_names(self) -> list[str]:
        return [name for name, _ in self._login.fields]

    async def _submit_form(self) -> None:
        first = await self._require_page(self._requester.request_url(self._url))
        page, url = await self._follow_redirects(first, self._url)
        form = self._find_form(page, url)
        if form is None:
            raise _LoginError(f"no form with the fields {', '.join(self._field_names)} at {self._login.path}")
        if not form.is_post or form.action is None:
            raise _LoginError(f"the form at {self._login.path} does not use POST")
        if not self._session.is_own(form.action):
            raise _LoginError(f"the form at {self._login.path} is submitted to another domain")
        form_values = form.fill_fields(self._session.get_login_values(self._login))
        response = await self._require_page(self._requester.post_form(form.action, form_values))
        last_page, url = await self._follow_redirects(response, form.action)
        if last_page.status >= 400:
            raise _LoginError(f"status {last_page.status}")
        if self._find_form(last_page, url) is not None:
            raise _LoginError("the form is shown again: the credentials were not accepted")

    async def _follow_redirects(self, response: Fetched, url: Url) -> tuple[Fetched, Url]:
        """Follow redirects within the domain; return the last page and its URL."""
        for _ in range(MAX_REDIRECTS):
            if response.status not in PERMANENT_REDIRECTS | TEMPORARY_REDIRECTS or response.location is None:
                break
            url = response.location
            if not self._session.is_own(url):
                raise _LoginError("the login redirects to another domain")
            response = await self._require_page(self._requester.request_url(url))
        return response, url

    async def _require_page(self, request: Awaitable[Response | None]) -> Fetched:
        response = await request
        if response is None:
            raise _OutOfBudgetError
        if isinstance(response, Unreached):
            raise _LoginError(f"no response ({response.reason})")
        if not isinstance(response, Fetched):
            raise _LoginError("the response is not a page")
        return response

    def _find_form(self, page: Fetched, url: Url) -> LoginForm | None:
        return find_login_form(page.body, page.content_type, url=url, names=self._field_names)


def convert_to_unauthorized(response: Response) -> Response:
    """Return a response that requires a login, changed to status 401 without a body."""
    if not isinstance(response, Fetched):
        return response
    return replace(response, status=401, body=b"", location=None, validators=NO_VALIDATORS)


def _extract_path(url: Url) -> str:
    return get_path_and_query(url).partition("?")[0]
