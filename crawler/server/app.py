"""The Starlette application of the web UI: its routes, login and error pages. No page contains scripts."""

from collections.abc import Callable
from functools import partial
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from crawler.app.delivery.feeds import FEED_PATH
from crawler.app.running.serving import LOGIN_PATH, trim_memory
from crawler.errors import BadInput, CrawlerError, StoreUnavailable
from crawler.server.access import SESSION_LIFETIME, require_authentication
from crawler.server.api import API_PATH, ApiOnDemand
from crawler.server.ui import (
    actions,
    change_pages,
    domain_pages,
    notification_pages,
    overview_pages,
    render,
    tag_pages,
    url_pages,
)
from crawler.server.ui.templating import read_style
from crawler.server.ui.web import PageHandler, PageServer, build_action_handler, redirect, respond_html

UNEXPECTED_ERROR = "An unexpected error occurred. The log has the details; recrawl db check looks for damaged data."
LOGIN_HINT = "Run recrawl serve, recrawl up or recrawl ui and open the login link that it prints. Each link works once."

ErrorHandler = Callable[[Request, Exception], Any]

PAGES = {
    "/": overview_pages.show_overview,
    "/domains": overview_pages.show_domains,
    "/domain": domain_pages.show_domain,
    "/changes": change_pages.show_changes,
    "/page": url_pages.show_page,
    "/blocks": url_pages.show_blocks,
    "/search": overview_pages.show_search,
    "/system": overview_pages.show_system,
    FEED_PATH: change_pages.show_feed,
    **notification_pages.PAGES,
    **tag_pages.PAGES,
}
FORMS = {
    "/try": url_pages.try_url,
    "/changes/read": overview_pages.mark_as_read,
    "/domains/set": domain_pages.save_settings,
    "/rules/new": domain_pages.add_rule,
    **notification_pages.FORMS,
    **tag_pages.FORMS,
}


def build_application(server: PageServer) -> ASGIApp:
    """Return the application of the web UI and API, with authentication."""
    pages = {path: partial(handler, server) for path, handler in PAGES.items()}
    pages |= {LOGIN_PATH: partial(log_in, server)}
    forms: dict[str, PageHandler] = {path: partial(handler, server) for path, handler in FORMS.items()}
    all_actions = actions.FORMS | notification_pages.ACTIONS | tag_pages.ACTIONS
    forms |= {path: build_action_handler(server, act) for path, act in all_actions.items()}
    api = ApiOnDemand(server.db, server.home_folder, now=server.now, request_index=server.index.request_sync)
    handlers: dict[Any, Any] = {
        BadInput: build_error_handler(server, "Invalid request", 400),
        StoreUnavailable: build_error_handler(server, "The database is not available", 503),
        CrawlerError: build_error_handler(server, "The page cannot be shown", 500),
        Exception: build_error_handler(server, "The page cannot be shown", 500, UNEXPECTED_ERROR),
        403: _reject_foreign_form,
        404: build_error_handler(server, "Page not found", 404, "Choose a page from the menu above."),
    }
    starlette_app = Starlette(
        routes=[
            *(Route(path, page, methods=["GET"]) for path, page in pages.items()),
            *(Route(path, form, methods=["POST"]) for path, form in forms.items()),
            Route("/style.css", _serve_style, methods=["GET"]),
            Route(API_PATH, api),
        ],
        exception_handlers=handlers,
    )

    async def respond(scope: Scope, receive: Receive, send: Send) -> None:
        await starlette_app(scope, receive, send)
        trim_memory()  # after each response, because the next request may be days away

    return require_authentication(respond, server.authenticator, now=server.now, unauthenticated_app=_ask_for_login)


async def log_in(server: PageServer, request: Request) -> Response:
    """Exchange the code of a login link for a session cookie."""
    session = server.authenticator.exchange_code(request.query_params.get("code", ""), at=server.now())
    if session is None and not request.scope["session"]:
        title = "This login link was already used or has expired"
        return respond_html(render.render_problem_page(title, LOGIN_HINT), 403)
    response = redirect("/")
    if session is not None:
        age = int(SESSION_LIFETIME.total_seconds())
        response.set_cookie(server.authenticator.cookie, session, max_age=age, httponly=True, samesite="strict")
    return response


def build_error_handler(server: PageServer, title: str, status: int, message: str | None = None) -> ErrorHandler:
    """Return the handler that shows an error page. message: its text; None for the message of the error."""

    async def handle_error(request: Request, error: Exception) -> Response:
        detail = str(error) if message is None else message
        return respond_html(render.render_problem_page(title, detail, viewer=server.build_viewer(request)), status)

    return handle_error


async def _serve_style(_request: Request) -> Response:
    return Response(read_style(), media_type="text/css", headers={"cache-control": "private, max-age=3600"})


async def _ask_for_login(scope: Scope, receive: Receive, send: Send) -> None:
    await respond_html(render.render_problem_page("You are not logged in", LOGIN_HINT), 401)(scope, receive, send)


async def _reject_foreign_form(_request: Request, _error: Exception) -> Response:
    hint = "Reload the page and send the form again."
    return respond_html(render.render_problem_page("This form does not belong to your session", hint), 403)
