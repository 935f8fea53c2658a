"""Logging in and out, invitations, and the account of the user."""

from functools import partial
from math import ceil

from starlette.requests import Request
from starlette.responses import Response

from crawler.app.actor import ActorKind
from crawler.app.running import users
from crawler.app.running.serving import INVITATION_PATH
from crawler.errors import BadInput
from crawler.server.access import LOGIN_FORM_PATH, read_cookie
from crawler.server.identity import Identity
from crawler.server.ui import render
from crawler.server.ui.actions import Form, Outcome, get_previous_page
from crawler.server.ui.links import SERVER_LINKS
from crawler.server.ui.web import PageServer, redirect, respond_html

MAX_TYPED_CHARS = 1000
LOGIN_HINT = "Run recrawl serve, recrawl up or recrawl ui and open the login link that it prints. Each link works once."
NOT_LOGGED_IN = "You are not logged in"
LOGIN_SECONDS = int(users.SESSION_LIFETIME.total_seconds())

_render_login = partial(render.render, "login.html", SERVER_LINKS)


async def ask_for_login(server: PageServer, request: Request, *, problem: str = "", status: int = 401) -> Response:
    """Show the login form, or only how to get a login link if there are no users. problem: why a login failed."""
    context = {"title": problem or NOT_LOGGED_IN, "hint": LOGIN_HINT, "has_users": await users.has_users(server.db)}
    is_page = request.method == "GET" and request.url.path != LOGIN_FORM_PATH
    back = f"{request.url.path}?{request.url.query}".rstrip("?") if is_page else SERVER_LINKS.home()
    return respond_html(_render_login(render.ANONYMOUS, back=back, **context), status)


async def show_login(server: PageServer, request: Request) -> Response:
    """Show the login form, or the home page to whoever is logged in."""
    if request.scope["identity"] is not None:
        return redirect(SERVER_LINKS.home())
    return await ask_for_login(server, request, status=200)


async def log_in(server: PageServer, request: Request) -> Response:
    """Log in with a name and a password; failures make further attempts wait."""
    form = await server.read_fields(request)
    name, password = form.get("name", "").strip().lower()[:MAX_TYPED_CHARS], form.get("password", "")
    address, at = server.trust.find_address(request.scope), server.now()
    wait = server.throttle.begin(name, address, at=at)
    if wait:
        seconds = ceil(wait.total_seconds())
        problem = f"Too many failed logins: try again in {seconds} s"
        response = await ask_for_login(server, request, problem=problem, status=429)
        response.headers["retry-after"] = str(seconds)
        return response
    session = await users.log_in(server.db, name, password[:MAX_TYPED_CHARS], address=address, at=at)
    if not session:
        return await ask_for_login(server, request, problem=users.WRONG_LOGIN, status=403)
    server.throttle.succeed(name, address)
    return await _begin_session(server, request, session, get_previous_page(form))


async def log_out(server: PageServer, request: Request) -> Response:
    """End the session of this browser."""
    await server.read_form(request)
    await _end_session(server, request)
    response = redirect(LOGIN_FORM_PATH)
    response.delete_cookie(server.authenticator.cookie, httponly=True, samesite="strict")
    return response


async def show_invitation(server: PageServer, request: Request) -> Response:
    """Show the form to set a password by an invitation."""
    return await _respond_invitation(server, request.query_params.get("code", ""))


async def accept_invitation(server: PageServer, request: Request) -> Response:
    """Set a password by an invitation, and log in."""
    form = await server.read_fields(request)
    code, address = form.get("code", ""), server.trust.find_address(request.scope)
    try:
        password = _parse_new_password(form)
        session = await users.accept_invitation(server.db, code, password, address=address, at=server.now())
    except BadInput as error:
        return await _respond_invitation(server, code, problem=str(error), status=400)
    return await _begin_session(server, request, session, SERVER_LINKS.home())


async def _respond_invitation(server: PageServer, code: str, *, problem: str = "", status: int = 200) -> Response:
    user = await users.find_invited(server.db, code, at=server.now())
    if user is None:
        hint = "Ask an administrator for another one. If you have set a password already, log in with it."
        title = "This invitation was already used or has expired"
        return respond_html(render.render_problem_page(title, hint), 403)
    context = {"user": user, "code": code, "problem": problem, "path": INVITATION_PATH}
    return respond_html(render.render("invitation.html", SERVER_LINKS, render.ANONYMOUS, **context), status)


async def show_account(server: PageServer, request: Request, *, problem: str = "", status: int = 200) -> Response:
    """Show who is logged in, and the form to change the password."""
    identity: Identity = request.scope["identity"]
    viewer = server.build_viewer(request)
    has_password = identity.actor.kind is ActorKind.USER and identity.can_log_out
    context = {"identity": identity, "has_password": has_password, "problem": problem}
    return respond_html(render.render("account.html", SERVER_LINKS, viewer, **context), status)


async def change_password(server: PageServer, request: Request) -> Response:
    """Change the password of the user, which ends all other sessions."""
    form, identity = await server.read_form(request), request.scope["identity"]
    name, address, at = identity.actor.name, identity.actor.address, server.now()
    if identity.actor.kind is not ActorKind.USER:
        raise BadInput("only a user with a name has a password")
    try:
        new, current = _parse_new_password(form), form.get("current", "")[:MAX_TYPED_CHARS]
    except BadInput as error:  # does not count as a wrong password
        return await show_account(server, request, problem=str(error), status=400)
    # An open session must not help to guess the password.
    if wait := server.throttle.begin(name, address, at=at):
        problem = f"too many wrong passwords: try again in {ceil(wait.total_seconds())} s"
        return await show_account(server, request, problem=problem, status=429)
    try:
        session = await users.change_own_password(server.db, name, current=current, new=new, at=at)
    except BadInput as error:
        return await show_account(server, request, problem=str(error), status=400)
    server.throttle.succeed(name, address)
    return await _begin_session(server, request, session, "/account", message="Your password was changed.")


def _parse_new_password(form: Form) -> str:
    if form.get("password", "") != form.get("again", ""):
        raise BadInput("the two passwords differ: type the same one twice")
    users.check_new_password(form.get("password", ""))
    return form.get("password", "")


async def _begin_session(
    server: PageServer, request: Request, session: str, path: str, *, message: str = ""
) -> Response:
    """Redirect with the cookie of a new session, which replaces the one of this browser."""
    if not session:
        raise BadInput("the account was changed meanwhile: log in again")
    await _end_session(server, request)
    response = redirect(path)
    is_secure = request.headers.get("origin", "").startswith("https://")
    response.set_cookie(
        server.authenticator.cookie, session, max_age=LOGIN_SECONDS, httponly=True, samesite="strict", secure=is_secure
    )
    if message:
        request.scope["session"] = session
        return server.with_message(request, response, Outcome(message))
    return response


async def _end_session(server: PageServer, request: Request) -> None:
    session = read_cookie(request.scope, server.authenticator.cookie)
    if server.authenticator.is_valid_session(session, at=server.now()):
        server.authenticator.end_session(session)
    elif session:
        await users.end_session(server.db, session)


PAGES = {"/account": show_account}
FORMS = {"/logout": log_out, "/account/password": change_password}
OPEN_PAGES = {LOGIN_FORM_PATH: show_login, INVITATION_PATH: show_invitation}
OPEN_FORMS = {LOGIN_FORM_PATH: log_in, INVITATION_PATH: accept_invitation}
