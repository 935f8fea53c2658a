"""What the pages of the web UI share: the server's state, viewers, forms, responses and error pages."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import parse_qsl

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.types import Scope

from crawler.app.changes import AppDatabase
from crawler.app.running.serving import DomainCounter, IndexSyncer, ParserPool
from crawler.errors import CrawlerError
from crawler.server.access import NO_STORE, Authenticator, read_cookie
from crawler.server.identity import Identity, ProxyTrust, build_link_identity, find_session_identity
from crawler.server.throttle import LoginThrottle
from crawler.server.timed_cache import TimedCache
from crawler.server.ui import actions, render
from crawler.server.ui.actions import Action, Form
from crawler.server.ui.links import SERVER_LINKS

MAX_FORM_BYTES = 256 << 10
MAX_FLASH_MESSAGES = 1000  # of sessions that have not opened the next page yet

PageHandler = Callable[[Request], Awaitable[Response]]
T = TypeVar("T")


@dataclass(slots=True)
class PageServer:
    """The state that all pages and forms of the web UI share.

    now: returns the current time.  counter: counts the pages of large domains in the background.
    index: updates the search index.  home_folder: RECRAWL_HOME; its tokens and feed keys are read at each request, so
    that changes take effect at once.
    """

    db: AppDatabase
    parsers: ParserPool
    authenticator: Authenticator
    now: Callable[[], datetime]
    counter: DomainCounter
    index: IndexSyncer
    home_folder: Path
    throttle: LoginThrottle = field(default_factory=LoginThrottle)
    trust: ProxyTrust = field(init=False)
    _flash_messages: dict[str, render.FlashMessage] = field(default_factory=dict)
    _figures: TimedCache[Any] = field(default_factory=TimedCache)

    def __post_init__(self) -> None:
        self.trust = ProxyTrust(self.db)

    async def identify(self, scope: Scope) -> Identity | None:
        """Return who sends a request; None if it is unknown. Raises NotAllowed for a proxy's user without access."""
        if (proxied := await self.trust.find_identity(scope)) is not None:
            return proxied
        session, address = read_cookie(scope, self.authenticator.cookie), self.trust.find_address(scope)
        if self.authenticator.is_valid_session(session, at=self.now()):
            return build_link_identity(session, address=address)
        return await find_session_identity(self.db, session, address=address, at=self.now())

    def build_viewer(self, request: Request) -> render.Viewer:
        """Return the viewer with the session's CSRF token and the outcome of its last form, which is shown once."""
        session = request.scope["session"]
        token = self.authenticator.compute_csrf_token(session)
        return render.Viewer(token, self._flash_messages.pop(session, None), request.scope["identity"])

    async def remember(self, domain_id: int, name: str, compute: Callable[[], Awaitable[T]]) -> T:
        """Return figures of a domain, up to ten minutes old if they take long to compute."""
        figures: T = await self._figures.get((domain_id, name), compute)
        return figures

    async def read_form(self, request: Request) -> dict[str, str]:
        """Return the fields of a form as `read_fields` does. Raise HTTPException if it lacks the CSRF token."""
        form = await self.read_fields(request)
        if not self.authenticator.is_valid_csrf_token(request.scope["session"], form.pop("csrf_token", "")):
            raise HTTPException(403)
        return form

    async def read_fields(self, request: Request) -> dict[str, str]:
        """Return the fields of a form; the values of a repeated field are joined by line breaks.

        Raise HTTPException if the form is too large.
        """
        body = bytearray()
        async for part in request.stream():
            body += part
            if len(body) > MAX_FORM_BYTES:
                raise HTTPException(413, f"the form is larger than {MAX_FORM_BYTES} bytes")
        form: dict[str, str] = {}
        for name, value in parse_qsl(body.decode("utf-8", errors="replace"), keep_blank_values=True):
            form[name] = f"{form[name]}\n{value}" if name in form else value
        return form

    def finish(self, request: Request, outcome: actions.Outcome) -> Response:
        """Redirect to the page that shows the outcome of a form."""
        domain = outcome.domain
        if domain is not None:
            self._figures.invalidate(lambda key: key[0] == domain.id)  # the action may have changed them
        message = render.FlashMessage(outcome.message, is_well=outcome.is_well, href=outcome.run_url)
        self._set_flash_message(request, message)
        return redirect(outcome.next_page or (SERVER_LINKS.domain(domain.authority) if domain else SERVER_LINKS.home()))

    def with_message(self, request: Request, response: Response, outcome: actions.Outcome) -> Response:
        """Return a response whose next page shows the outcome of a form."""
        self._set_flash_message(request, render.FlashMessage(outcome.message, is_well=outcome.is_well))
        return response

    def reject(self, request: Request, form: Form, error: CrawlerError) -> Response:
        """Redirect to the page that contained a form, which shows why the form was rejected."""
        self._set_flash_message(request, render.FlashMessage(str(error), is_well=False))
        return redirect(actions.get_previous_page(form))

    def _set_flash_message(self, request: Request, message: render.FlashMessage) -> None:
        """Store the outcome of a form for the next page of its session."""
        if len(self._flash_messages) >= MAX_FLASH_MESSAGES:
            self._flash_messages.clear()
        self._flash_messages[request.scope["session"]] = message


async def handle_action(server: PageServer, request: Request, *, act: Action) -> Response:
    """Run the action of a form and redirect to the page that shows the outcome."""
    form = await server.read_form(request)
    try:
        return server.finish(request, await act(server.db, form, server.now()))
    except CrawlerError as error:
        return server.reject(request, form, error)


def build_action_handler(server: PageServer, act: Action) -> PageHandler:
    """Return the handler of a form."""
    return partial(handle_action, server, act=act)


def respond_html(text: str, status: int = 200) -> Response:
    return HTMLResponse(text, status_code=status, headers=NO_STORE)


def redirect(path: str) -> Response:
    return RedirectResponse(path, status_code=303, headers=NO_STORE)
