"""recrawl users and actions: users of the web UI, and the log of what was changed."""

import sys
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated

import typer

from crawler.cli.lazy import action_log, users
from crawler.cli.options import Json, argument, flag, option, span_option
from crawler.cli.output import print_listing, print_outcome, remark
from crawler.cli.session import run_on_database
from crawler.errors import BadInput
from crawler.format.values import format_instant
from crawler.json_lines import pick_fields

if TYPE_CHECKING:
    from crawler.app.database import AppDatabase
    from crawler.app.running.users import Invitation, User

app = typer.Typer(no_args_is_help=True, help="Manage the users of the web UI that `recrawl serve` offers.")

UserName = Annotated[str, argument("NAME", "The name of a user, such as alice or alice@example.com.")]
ROLE_HELP = "What the user may do: view (read), edit (also the daily work) or admin (also users and tokens)."


@app.command("add")
def add(
    name: UserName,
    role: Annotated[str, option("ROLE", ROLE_HELP)] = "view",
    as_json: Json = False,
) -> None:
    """Add a user, and print a link with which the person sets a password.

    The link works once, within seven days. Without users, only the login links of `recrawl ui` give access.

    Examples:

        recrawl users add alice
        recrawl users add bob@example.com --role admin
    """
    chosen, now = users.parse_role(role), datetime.now(UTC)
    _print_invitation(lambda db: users.add_user(db, name, chosen, at=now), as_json=as_json)


@app.command("list")
def list_all(as_json: Json = False) -> None:
    """List the users with their roles.

    Examples:

        recrawl users list
    """
    found = run_on_database(lambda db, _: users.list_users(db))
    rows = (
        {
            "name": each.name,
            "role": each.role,
            "state": users.describe_state(each, at=datetime.now(UTC)),
            "created": format_instant(each.created_at),
            "last login": format_instant(each.last_login_at) if each.last_login_at else "never",
        }
        for each in found
    )
    document = {"users": [_describe(each) for each in found]}
    print_listing(document, rows, empty="There are no users: recrawl users add NAME", as_json=as_json)


@app.command("set")
def set_user(
    name: UserName,
    role: Annotated[str | None, option("ROLE", ROLE_HELP)] = None,
    disable: Annotated[bool, flag("--disable", "End all sessions, and refuse logins.")] = False,
    enable: Annotated[bool, flag("--enable", "Allow logins again.")] = False,
    invite: Annotated[bool, flag("--invite", "Print a link to set a new password.")] = False,
    password: Annotated[bool, flag("--password", "Set a password, typed twice or read from stdin.")] = False,
    as_json: Json = False,
) -> None:
    """Change a user: the role, the password, or whether the user may log in.

    A new password and --disable end all sessions of the user.

    Examples:

        recrawl users set alice --role edit
        recrawl users set alice --disable
        recrawl users set alice --invite
        recrawl users set alice --password
    """
    if (role is not None) + disable + enable + invite + password != 1:
        raise BadInput("give one of --role, --disable, --enable, --invite and --password")
    now = datetime.now(UTC)
    if invite:
        _print_invitation(lambda db: users.invite_user(db, name, at=now), as_json=as_json)
    elif password:
        typed = _read_password()
        changed = run_on_database(lambda db, _: users.set_password(db, name, typed))
        print_outcome(_describe(changed), f"The password of {changed.name} was changed", as_json=as_json)
    else:
        chosen, is_off = users.parse_role(role) if role is not None else None, disable if disable or enable else None
        changed = run_on_database(lambda db, _: users.change_user(db, name, role=chosen, disabled=is_off, at=now))
        state = users.describe_state(changed, at=now)
        print_outcome(_describe(changed), f"{changed.name} has the role {changed.role} ({state})", as_json=as_json)


@app.command("remove")
def remove(name: UserName, as_json: Json = False) -> None:
    """Remove a user, which ends all sessions of the user.

    Examples:

        recrawl users remove alice
    """
    removed = run_on_database(lambda db, _: users.remove_user(db, name))
    print_outcome({"removed": removed.name}, f"The user {removed.name} was removed", as_json=as_json)


def actions(
    words: Annotated[str | None, argument("TEXT", "Only actions with this text, such as a domain.")] = None,
    by: Annotated[str | None, option("NAME", "Only actions of this user, token or account.")] = None,
    since: Annotated[timedelta | None, span_option("Only actions of this time, such as 7d.")] = None,
    limit: Annotated[int, option("N", "Maximum number of actions.", min=1, max=1_000_000)] = 50,
    as_json: Json = False,
) -> None:
    """List who changed what, newest first.

    Each action of the web UI, the HTTP API, a command and the Python API is kept for a year (RECRAWL_ACTION_RETENTION).
    Crawls, and what schedules do, are no actions.

    Examples:

        recrawl actions --since 7d
        recrawl actions docs.example.com --by alice
        recrawl actions --json
    """
    after = datetime.now(UTC) - since if since is not None else None
    query = action_log.ActionQuery(actor=by or "", words=words or "", since=after)
    found = run_on_database(lambda db, _: action_log.list_actions(db, query, max_count=limit))
    rows = (
        {
            "time": format_instant(each.at),
            "who": f"{each.actor} ({each.actor_kind})",
            "action": each.action,
            "object": each.object,
            "change": action_log.format_change(each),
            "address": each.address,
        }
        for each in found
    )
    print_listing({"actions": found}, rows, empty="No actions are recorded", as_json=as_json)


def _print_invitation(make: "Callable[[AppDatabase], Awaitable[Invitation]]", *, as_json: bool) -> None:
    invitation = run_on_database(lambda db, _: make(db))
    document = _describe(invitation.user) | {"invitation": invitation.url, "is_served": invitation.is_served}
    print_outcome(document, invitation.url, as_json=as_json)
    if not as_json:
        remark(f"Send this link to {invitation.user.name}: it works once, within seven days, to set a password")
        if not invitation.is_served:
            remark("No server is running at this address: recrawl serve, or recrawl up")


def _read_password() -> str:
    """Return a password that is typed twice, or the first line of stdin if it is no terminal."""
    if not sys.stdin.isatty():
        return sys.stdin.readline(10_000).rstrip("\r\n")
    return str(typer.prompt("New password", hide_input=True, confirmation_prompt=True, err=True))


def _describe(user: "User") -> dict[str, object]:
    return pick_fields(user, *users.PUBLIC_FIELDS)
