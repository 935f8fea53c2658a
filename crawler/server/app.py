"""The Starlette application of the web UI: its routes, login and error pages. No page contains scripts."""

from collections.abc import Callable
from functools import partial
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from crawler.app.action_log import record_action
from crawler.app.actor import acting_as
from crawler.app.delivery.feeds import FEED_PATH
from crawler.app.running.serving import LOGIN_PATH, trim_memory
from crawler.errors import BadInput, CrawlerError, NotAllowed, StoreUnavailable
from crawler.server.access import SESSION_LIFETIME, require_authentication
from crawler.server.api import API_PATH, ApiOnDemand
from crawler.server.identity import Identity, build_link_identity
from crawler.server.needs import get_need
from crawler.server.ui import (
    actions,
    admin_pages,
    change_pages,
    domain_pages,
    login_pages,
    notification_pages,
    overview_pages,
    render,
    screenshot_pages,
    tag_pages,
    url_pages,
)
from crawler.server.ui.templating import read_style
from crawler.server.ui.web import PageHandler, PageServer, build_action_handler, redirect, respond_html

UNEXPECTED_ERROR = "An unexpected error occurred. The log has the details; recrawl db check looks for damaged data."

ErrorHandler = Callable[[Request, Exception], Any]

PAGES = {
    "/": overview_pages.show_overview,
    "/domains": overview_pages.show_domains,
    "/domain": domain_pages.show_domain,
    "/changes": change_pages.show_changes,
    "/page": url_pages.show_page,
    "/page/view": url_pages.show_version,
    "/page/pick": url_pages.show_elements,
    "/blocks": url_pages.show_blocks,
    "/values": url_pages.show_value_form,
    "/screenshots": screenshot_pages.show_screenshots,
    "/screenshots/picture": screenshot_pages.send_picture,
    "/search": overview_pages.show_search,
    "/system": overview_pages.show_system,
    FEED_PATH: change_pages.show_feed,
    **notification_pages.PAGES,
    **tag_pages.PAGES,
    **login_pages.PAGES,
    **admin_pages.PAGES,
}
FORMS = {
    "/try": url_pages.try_url,
    "/changes/read": overview_pages.mark_as_read,
    "/domains/set": domain_pages.save_settings,
    "/rules/new": domain_pages.add_rule,
    **notification_pages.FORMS,
    **tag_pages.FORMS,
    **login_pages.FORMS,
}
ACTIONS = actions.FORMS | notification_pages.ACTIONS | tag_pages.ACTIONS | admin_pages.ACTIONS


def build_application(server: PageServer) -> ASGIApp:
    """Return the application of the web UI and API, with authentication."""
    pages: dict[str, PageHandler] = {path: partial(handler, server) for path, handler in PAGES.items()}
    forms: dict[str, PageHandler] = {path: partial(handler, server) for path, handler in FORMS.items()}
    forms |= {path: build_action_handler(server, act) for path, act in ACTIONS.items()}
    for each in (pages, forms):
        each.update({path: partial(check_permission, handler) for path, handler in each.items()})
    pages |= {path: partial(handler, server) for path, handler in login_pages.OPEN_PAGES.items()}
    pages |= {LOGIN_PATH: partial(log_in, server)}
    forms |= {path: partial(handler, server) for path, handler in login_pages.OPEN_FORMS.items()}
    api = ApiOnDemand(server.db, server.home_folder, now=server.now, request_index=server.index.request_sync)
    handlers: dict[Any, Any] = {
        BadInput: build_error_handler(server, "Invalid request", 400),
        StoreUnavailable: build_error_handler(server, "The database is not available", 503),
        NotAllowed: build_error_handler(server, "Your role does not allow this", 403),
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

    return require_authentication(
        respond,
        server.authenticator,
        identify=server.identify,
        unauthenticated_app=partial(_ask_for_login, server),
    )


async def check_permission(handler: PageHandler, request: Request) -> Response:
    """Handle a request as its sender. Raises NotAllowed if the role of the sender does not include what it needs."""
    identity: Identity | None = request.scope["identity"]
    if identity is None:  # only a feed, which checks its own token
        return await handler(request)
    need = get_need(request.url.path, "POST" if request.method == "POST" else "GET")
    if need not in identity.actor.permissions:
        message = f"The role {identity.role} does not include the permission to {need}: ask an administrator."
        raise NotAllowed(message)
    with acting_as(identity.actor):
        return await handler(request)


async def log_in(server: PageServer, request: Request) -> Response:
    """Exchange the code of a login link for a session cookie."""
    session = server.authenticator.exchange_code(request.query_params.get("code", ""), at=server.now())
    if session is None and not request.scope["session"]:
        title = "This login link was already used or has expired"
        return respond_html(render.render_problem_page(title, login_pages.LOGIN_HINT), 403)
    response = redirect("/")
    if session is not None:
        identity = build_link_identity(session, address=server.trust.find_address(request.scope))
        await record_action(server.db, "log in", {}, actor=identity.actor)
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


async def _ask_for_login(server: PageServer, scope: Scope, receive: Receive, send: Send) -> None:
    problem = scope.get("problem")
    try:
        if problem is not None:
            raise problem
        response = await login_pages.ask_for_login(server, Request(scope))
    except NotAllowed as error:
        response = respond_html(render.render_problem_page("You have no access", str(error)), 403)
    except CrawlerError as error:
        response = respond_html(render.render_problem_page("The database is not available", str(error)), 503)
    await response(scope, receive, send)


async def _reject_foreign_form(_request: Request, _error: Exception) -> Response:
    hint = "Reload the page and send the form again."
    return respond_html(render.render_problem_page("This form does not belong to your session", hint), 403)
