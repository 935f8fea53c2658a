"""The pages below System: users, access tokens and the log of actions."""

import asyncio
from datetime import datetime, timedelta

from starlette.requests import Request
from starlette.responses import Response

from crawler.app import action_log
from crawler.app.action_log import ActionQuery
from crawler.app.database import AppDatabase
from crawler.app.running import tokens, users
from crawler.errors import BadInput
from crawler.roles import Role
from crawler.server.ui import render
from crawler.server.ui.actions import Action, Form, Outcome, parse_number
from crawler.server.ui.change_and_url_pages import SPANS
from crawler.server.ui.links import SERVER_LINKS
from crawler.server.ui.web import PageServer, respond_html

ACTIONS_PER_PAGE = 50
MAX_TOKEN_DAYS = 3650
ROLE_WORDS = {
    Role.VIEW: "reads everything, changes nothing",
    Role.EDIT: "also does the daily work: recrawls, settings, rules, notifications",
    Role.ADMIN: "also manages users and tokens, and may use secrets and the private network of the machine",
}


async def show_users(server: PageServer, request: Request) -> Response:
    """Show the users and the form of a new one."""
    found = await users.list_users(server.db)
    states = {each.name: users.describe_state(each, at=server.now()) for each in found}
    context = {"users": found, "states": states, "roles": ROLE_WORDS, "now": server.now()}
    return _respond(server, request, "users.html", **context)


async def show_tokens(server: PageServer, request: Request) -> Response:
    """Show the access tokens of the HTTP API and the form of a new one."""
    found = await asyncio.to_thread(tokens.list_tokens, server.home_folder)
    return _respond(server, request, "tokens.html", tokens=found, scopes=tuple(tokens.TokenScope), now=server.now())


async def show_actions(server: PageServer, request: Request) -> Response:
    """Show a part of the log of actions."""
    typed = {name: request.query_params.get(name, "").strip() for name in ("by", "words", "since")}
    span = SPANS[typed["since"]][1] if typed["since"] in SPANS else None
    since = server.now() - span if span is not None else None
    before = parse_number(request.query_params.get("before", ""))
    query = ActionQuery(actor=typed["by"], words=typed["words"], since=since, before=before)
    found = await action_log.list_actions(server.db, query, max_count=ACTIONS_PER_PAGE + 1)
    older = SERVER_LINKS.actions(**typed, before=found[-2].id) if len(found) > ACTIONS_PER_PAGE else ""
    context = {"actions": found[:ACTIONS_PER_PAGE], "typed": typed, "older": older, "before": before}
    return _respond(server, request, "actions.html", now=server.now(), **context)


def _respond(server: PageServer, request: Request, template: str, **context: object) -> Response:
    return respond_html(render.render(template, SERVER_LINKS, server.build_viewer(request), **context))


async def add_user(db: AppDatabase, form: Form, at: datetime) -> Outcome:
    """Add a user. Raises BadInput."""
    invitation = await users.add_user(db, form.get("name", ""), users.parse_role(form.get("role", "")), at=at)
    return _show_invitation(invitation, "was added")


async def invite_user(db: AppDatabase, form: Form, at: datetime) -> Outcome:
    """Make a new invitation. Raises BadInput."""
    return _show_invitation(await users.invite_user(db, form.get("name", ""), at=at), "is invited")


def _show_invitation(invitation: users.Invitation, what: str) -> Outcome:
    user = invitation.user
    message = f"{user.name} {what}. This link is shown once and works once, within seven days: {invitation.url}"
    return Outcome(message, next_page="/users")


async def set_role(db: AppDatabase, form: Form, at: datetime) -> Outcome:
    """Change the role of a user. Raises BadInput."""
    user = await users.change_user(db, form.get("name", ""), role=users.parse_role(form.get("role", "")), at=at)
    return Outcome(f"{user.name} has the role {user.role} now.", next_page="/users")


async def disable_user(db: AppDatabase, form: Form, at: datetime) -> Outcome:
    """End all sessions of a user, and refuse logins. Raises BadInput."""
    user = await users.change_user(db, form.get("name", ""), disabled=True, at=at)
    return Outcome(f"{user.name} is disabled; all sessions have ended.", next_page="/users")


async def enable_user(db: AppDatabase, form: Form, at: datetime) -> Outcome:
    """Allow logins of a user again. Raises BadInput."""
    user = await users.change_user(db, form.get("name", ""), disabled=False, at=at)
    return Outcome(f"{user.name} can log in again.", next_page="/users")


async def remove_user(db: AppDatabase, form: Form, _at: datetime) -> Outcome:
    """Remove a user. Raises BadInput."""
    user = await users.remove_user(db, form.get("name", ""))
    return Outcome(f"{user.name} was removed.", next_page="/users")


async def add_token(db: AppDatabase, form: Form, at: datetime) -> Outcome:
    """Add an access token. Raises BadInput."""
    name, days = form.get("name", "").strip(), form.get("days", "").strip()
    if days and not 0 < parse_number(days) <= MAX_TOKEN_DAYS:
        raise BadInput(f"enter a number of days from 1 to {MAX_TOKEN_DAYS}, or nothing")
    scopes = tokens.parse_scopes(form.get("scope", "").replace("\n", ","))
    expires_at = at + timedelta(days=parse_number(days)) if days else None
    token = await tokens.add_token(db, name, scopes=scopes, expires_at=expires_at, at=at)
    return Outcome(f"The token {name} was added. It is shown once: {token}", next_page="/tokens")


async def revoke_token(db: AppDatabase, form: Form, _at: datetime) -> Outcome:
    """Revoke an access token. Raises BadInput."""
    await tokens.remove_token(db, form.get("name", ""))
    return Outcome(f"The token {form.get('name', '')} was revoked.", next_page="/tokens")


PAGES = {"/users": show_users, "/tokens": show_tokens, "/actions": show_actions}
ACTIONS: dict[str, Action] = {
    "/users/add": add_user,
    "/users/invite": invite_user,
    "/users/role": set_role,
    "/users/disable": disable_user,
    "/users/enable": enable_user,
    "/users/remove": remove_user,
    "/tokens/add": add_token,
    "/tokens/revoke": revoke_token,
}
