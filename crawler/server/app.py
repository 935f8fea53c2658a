"""The Starlette application of the web UI: its routes, pages, forms and error pages. No page contains scripts."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from crawler.app import overview
from crawler.app.blocks import read_blocks
from crawler.app.changes import AppDatabase, EventKind, read_newest_changes
from crawler.app.delivery.feeds import FEED_PATH, FeedSelection, build_linked_path, may_read, read_feed
from crawler.app.pages import VersionsQuery
from crawler.app.registration import get_domain
from crawler.app.running.serving import LOGIN_PATH, DomainCounter, IndexSyncer, ParserPool, trim_memory
from crawler.app.try_page import TryOptions, try_domain_url
from crawler.clock import Clock
from crawler.errors import BadInput, CrawlerError, StoreUnavailable
from crawler.format.kinds import NEWS
from crawler.server.access import NO_STORE, SESSION_LIFETIME, Authenticator, require_authentication
from crawler.server.api import API_PATH, ApiOnDemand
from crawler.server.timed_cache import TimedCache
from crawler.server.ui import actions, render
from crawler.server.ui.actions import Action
from crawler.server.ui.change_and_url_pages import ChangeListQuery, load_change_facts, load_url_facts
from crawler.server.ui.links import SERVER_LINKS
from crawler.server.ui.templating import read_style

MAX_FORM_BYTES = 64 << 10
MAX_NEWEST = 10  # changes on the home page; half as many on the page of a domain with figures
MAX_PLANNED = 50  # with more domains, there is no forecast, because a forecast reads all domains

UNEXPECTED_ERROR = "An unexpected error occurred. The log has the details; recrawl db check looks for damaged data."
LOGIN_HINT = "Run recrawl serve, recrawl up or recrawl ui and open the login link that it prints. Each link works once."

PageHandler = Callable[[Request], Awaitable[Response]]
ErrorHandler = Callable[[Request, Exception], Any]


@dataclass(slots=True)
class PageServer:
    """The pages and forms of the web UI.

    now: returns the current time.  counter: counts the pages of large domains in the background.
    index: updates the search index of the API.  home_folder: RECRAWL_HOME; its tokens and feed keys are read at each
    request, so that changes take effect at once.
    """

    db: AppDatabase
    parsers: ParserPool
    authenticator: Authenticator
    now: Callable[[], datetime]
    counter: DomainCounter
    index: IndexSyncer
    home_folder: Path
    _flash_messages: dict[str, render.FlashMessage] = field(default_factory=dict)
    _cards: TimedCache[overview.DomainCard | None] = field(default_factory=TimedCache)
    _facts: TimedCache[overview.DomainFacts | None] = field(default_factory=TimedCache)

    async def load_card(self, domain: overview.Domain) -> overview.DomainCard | overview.UncountedCard | None:
        """Return the summary of a domain, up to ten minutes old; None if the domain was removed meanwhile.

        The page counts of a large domain are those of the last background count.
        """
        if not await self.counter.has_figures(domain):
            return await overview.make_uncounted_card(self.db, domain)
        summarize = partial(overview.summarize_domain, sample=overview.CARD_PAGES, instants=overview.CARD_INSTANTS)
        return await self._cards.get(
            domain.id, lambda: summarize(self.db, domain, at=self.now(), max_age=overview.ANY_AGE)
        )

    async def load_facts(self, domain: overview.Domain) -> overview.DomainFacts | overview.UncountedCard | None:
        """Return all data of the page of a domain, cached like its summary."""
        max_age = overview.ANY_AGE

        async def examine() -> overview.DomainFacts | None:
            card = await overview.summarize_domain(self.db, domain, at=self.now(), max_age=max_age)
            if card is None:
                return None
            return await overview.examine_domain(self.db, card, max_age=max_age, max_planned_domains=MAX_PLANNED)

        if not await self.counter.has_figures(domain):
            return await overview.make_uncounted_card(self.db, domain)
        return await self._facts.get(domain.id, examine)

    def build_viewer(self, request: Request) -> render.Viewer:
        """Return the viewer with the session's CSRF token and the outcome of its last form, which is shown once."""
        session = request.scope["session"]
        token = self.authenticator.compute_csrf_token(session)
        return render.Viewer(token, self._flash_messages.pop(session, None))

    async def show_home(self, request: Request) -> Response:
        at, after = self.now(), request.query_params.get("after", "")
        facts = await overview.summarize_domains(self.db, self.load_card, at=at, after=after)
        items = await read_newest_changes(self.db, at=at, max_count=MAX_NEWEST)
        return _respond_html(render.render_home_page(facts, items, viewer=self.build_viewer(request)))

    async def show_domain(self, request: Request) -> Response:
        at = self.now()
        domain = await actions.find_domain(self.db, request.query_params.get("name", ""))
        facts = await self.load_facts(domain)
        if facts is None:
            raise BadInput(f"{domain.authority} is no longer registered")
        count = MAX_NEWEST if isinstance(facts, overview.UncountedCard) else MAX_NEWEST // 2
        items = await read_newest_changes(self.db, at=at, max_count=count, only_domain=domain)
        viewer = self.build_viewer(request)
        if isinstance(facts, overview.UncountedCard):
            return _respond_html(render.render_uncounted_page(facts, items, viewer=viewer, now=at))
        return _respond_html(render.render_domain_page(facts, items, viewer=viewer, now=at))

    async def show_changes(self, request: Request) -> Response:
        params = request.query_params
        kinds = frozenset(kind for kind in EventKind if kind.value in params.getlist("kind"))
        texts = {name: params.get(name, "") for name in ("domain", "since", "before")}
        query = ChangeListQuery(kinds=kinds or NEWS, **texts)
        facts = await load_change_facts(self.db, query, at=self.now())
        feed_query = FeedSelection(domain=query.domain, kinds=",".join(sorted(kinds)))
        feed = await asyncio.to_thread(build_linked_path, self.home_folder, feed_query)
        return _respond_html(render.render_changes_page(facts, viewer=self.build_viewer(request), feed=feed))

    async def show_feed(self, request: Request) -> Response:
        params = request.query_params
        feed_query = FeedSelection(params.get("domain", ""), params.get("prefix", ""), params.get("kind", ""))
        token = params.get("token", "")
        if not request.scope["session"] and not await asyncio.to_thread(may_read, self.home_folder, feed_query, token):
            message = "The feed token is missing or invalid. Run recrawl feed to print the address of a feed."
            return PlainTextResponse(message, status_code=401, headers=NO_STORE)
        origin = self.authenticator.addresses[0]
        address = f"{origin}{request.url.path}?{request.url.query}"
        document = await read_feed(self.db, feed_query, address=address, origin=origin, at=self.now())
        headers = {"etag": document.etag, "cache-control": "private, no-cache"}
        if document.is_not_modified(request.headers.get("if-none-match", "")):
            return Response(status_code=304, headers=headers)
        return Response(document.body, media_type="application/atom+xml; charset=utf-8", headers=headers)

    async def show_page(self, request: Request) -> Response:
        params = request.query_params
        before, after, older = (actions.parse_number(params.get(name, "")) for name in ("from", "to", "older"))
        query = VersionsQuery(before=before, after=after, older_than=older or None)
        url = actions.parse_url(params.get("url", ""))
        domain = await get_domain(self.db, url)
        facts = await load_url_facts(self.db, domain, url, query, parsers=self.parsers, at=self.now())
        is_beside = params.get("view", "") == "sides"
        return _respond_html(render.render_url_page(facts, viewer=self.build_viewer(request), is_beside=is_beside))

    async def show_blocks(self, request: Request) -> Response:
        url = actions.parse_url(request.query_params.get("url", ""))
        domain = await get_domain(self.db, url)
        pick = actions.parse_block_pick(request.query_params)
        facts = await read_blocks(self.db, domain, url, pick, parsers=self.parsers)
        if facts is None:
            raise BadInput(f"no text of {url} is stored yet: crawl it first")
        return _respond_html(render.render_blocks_page(facts, viewer=self.build_viewer(request)))

    async def log_in(self, request: Request) -> Response:
        session = self.authenticator.exchange_code(request.query_params.get("code", ""), at=self.now())
        if session is None and not request.scope["session"]:
            title = "This login link was already used or has expired"
            return _respond_html(render.render_problem_page(title, LOGIN_HINT), 403)
        response = _redirect("/")
        if session is not None:
            age = int(SESSION_LIFETIME.total_seconds())
            response.set_cookie(self.authenticator.cookie, session, max_age=age, httponly=True, samesite="strict")
        return response

    async def try_url(self, request: Request) -> Response:
        """Fetch a page and show the result without recording it."""
        form = await self._read_form(request)
        url = actions.parse_url(form.get("url", ""))
        domain = await get_domain(self.db, url)
        options = TryOptions(again=bool(form.get("again")))
        result = await try_domain_url(self.db, domain, url, how=options, clock=Clock.from_instant(self.now()))
        return _respond_html(render.render_try_page(result, domain, viewer=self.build_viewer(request)))

    def build_form_handler(self, act: Action) -> PageHandler:
        """Return the handler of a form: it runs the action and redirects to the page that shows the outcome."""

        async def handle_form(request: Request) -> Response:
            form = await self._read_form(request)
            try:
                outcome = await act(self.db, form, self.now())
            except CrawlerError as error:
                self._set_flash_message(request, render.FlashMessage(str(error), is_well=False))
                return _redirect(actions.get_previous_page(form))
            self._cards.invalidate(outcome.domain.id)  # the action may have changed it
            self._facts.invalidate(outcome.domain.id)
            message = render.FlashMessage(outcome.message, is_well=outcome.is_well, href=outcome.run_url)
            self._set_flash_message(request, message)
            return _redirect(outcome.next_page or SERVER_LINKS.domain(outcome.domain.authority))

        return handle_form

    async def _read_form(self, request: Request) -> dict[str, str]:
        """Return the fields of a form. Raise HTTPException if it is too large or lacks the session's CSRF token."""
        body = bytearray()
        async for part in request.stream():
            body += part
            if len(body) > MAX_FORM_BYTES:
                raise HTTPException(413, f"the form is larger than {MAX_FORM_BYTES} bytes")
        form = dict(parse_qsl(body.decode("utf-8", errors="replace"), keep_blank_values=True))
        if not self.authenticator.is_valid_csrf_token(request.scope["session"], form.pop("csrf_token", "")):
            raise HTTPException(403)
        return form

    def _set_flash_message(self, request: Request, message: render.FlashMessage) -> None:
        """Store the outcome of a form for the next page of its session."""
        if len(self._flash_messages) >= 1000:  # from sessions that never opened the next page
            self._flash_messages.clear()
        self._flash_messages[request.scope["session"]] = message

    def build_error_handler(self, title: str, status: int, message: str | None = None) -> ErrorHandler:
        """Return the handler that shows an error page. message: its text; None for the message of the error."""

        async def handle_error(request: Request, error: Exception) -> Response:
            detail = str(error) if message is None else message
            return _respond_html(render.render_problem_page(title, detail, viewer=self.build_viewer(request)), status)

        return handle_error


def build_application(server: PageServer) -> ASGIApp:
    """Return the application of the web UI and API, with authentication."""
    pages: dict[str, PageHandler] = {
        "/": server.show_home,
        "/domain": server.show_domain,
        "/changes": server.show_changes,
        "/page": server.show_page,
        "/blocks": server.show_blocks,
        LOGIN_PATH: server.log_in,
        "/style.css": _serve_style,
        FEED_PATH: server.show_feed,
    }
    forms = {path: server.build_form_handler(act) for path, act in actions.FORMS.items()} | {"/try": server.try_url}
    api = ApiOnDemand(server.db, server.home_folder, now=server.now, request_index=server.index.request_sync)
    handlers: dict[Any, Any] = {
        BadInput: server.build_error_handler("Invalid request", 400),
        StoreUnavailable: server.build_error_handler("The database is not available", 503),
        CrawlerError: server.build_error_handler("The page cannot be shown", 500),
        Exception: server.build_error_handler("The page cannot be shown", 500, UNEXPECTED_ERROR),
        403: _reject_foreign_form,
        404: server.build_error_handler("Page not found", 404, "Choose a page from the menu above."),
    }
    starlette_app = Starlette(
        routes=[
            *(Route(path, page, methods=["GET"]) for path, page in pages.items()),
            *(Route(path, form, methods=["POST"]) for path, form in forms.items()),
            Route(API_PATH, api),
        ],
        exception_handlers=handlers,
    )

    async def respond(scope: Scope, receive: Receive, send: Send) -> None:
        await starlette_app(scope, receive, send)
        trim_memory()  # after each response, because the next request may be days away

    return require_authentication(respond, server.authenticator, now=server.now, unauthenticated_app=_ask_for_login)


def _respond_html(text: str, status: int = 200) -> Response:
    return HTMLResponse(text, status_code=status, headers=NO_STORE)


def _redirect(path: str) -> Response:
    return RedirectResponse(path, status_code=303, headers=NO_STORE)


async def _serve_style(_request: Request) -> Response:
    return Response(read_style(), media_type="text/css", headers={"cache-control": "private, max-age=3600"})


async def _ask_for_login(scope: Scope, receive: Receive, send: Send) -> None:
    await _respond_html(render.render_problem_page("You are not logged in", LOGIN_HINT), 401)(scope, receive, send)


async def _reject_foreign_form(_request: Request, _error: Exception) -> Response:
    hint = "Reload the page and send the form again."
    return _respond_html(render.render_problem_page("This form does not belong to your session", hint), 403)
