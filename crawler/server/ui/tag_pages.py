"""The page of a tag, and the forms that tag domains and change the settings of a tag."""

from dataclasses import replace
from datetime import datetime
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from crawler.app import tags
from crawler.app.database import AppDatabase
from crawler.app.settings import SettingsPatch
from crawler.app.tags import LayeredSettings, TagSummary
from crawler.errors import BadInput, CrawlerError
from crawler.format.domain_settings import format_values
from crawler.format.values import format_count
from crawler.server.ui.actions import Action, Form, Outcome, get_previous_page
from crawler.server.ui.fields import GROUPS, NOTHING_TYPED, Typed, list_setting_fields, parse_settings
from crawler.server.ui.links import SERVER_LINKS
from crawler.server.ui.render import render
from crawler.server.ui.web import PageServer, respond_html

MAX_NAMES = 100  # domains that the page of a tag names


async def show_tag(server: PageServer, request: Request) -> Response:
    """Show the domains of a tag, and the form of a group of its settings."""
    listed, params = await _get_tag(server.db, request.query_params.get("name", "")), request.query_params
    group = params.get("group", next(iter(GROUPS)))
    if group not in GROUPS:
        raise BadInput(f"{group[:40]!r} is not a group of settings: use one of {', '.join(GROUPS)}")
    return _respond(server, request, listed, group)


def _respond(
    server: PageServer,
    request: Request,
    listed: TagSummary,
    group: str,
    typed: Typed = NOTHING_TYPED,
    *,
    status: int = 200,
) -> Response:
    context: dict[str, Any] = {
        "listed": listed,
        "names": listed.domains[:MAX_NAMES],
        "group": group,
        "groups": {key: title for key, (title, _) in GROUPS.items()},
        "fields": list_setting_fields(group, LayeredSettings(listed.tag.values), typed, of_tag=True),
        "settings": format_values(listed.tag.values),
        "problem": typed.problems.get("", ""),
    }
    return respond_html(render("tag.html", SERVER_LINKS, server.build_viewer(request), **context), status)


async def save_settings(server: PageServer, request: Request) -> Response:
    """Change the settings of a tag. If a value is rejected, show the form again with what was typed and why."""
    form = await server.read_form(request)
    try:
        listed = await _get_tag(server.db, form.get("name", ""))
    except CrawlerError as error:
        return server.reject(request, form, error)
    name, group = listed.tag.name, form["group"] if form.get("group") in GROUPS else next(iter(GROUPS))
    values, unset, typed = parse_settings(form, LayeredSettings(listed.tag.values))
    if typed.problems:
        return _respond(server, request, listed, group, typed, status=400)
    try:
        patch = SettingsPatch(values)
        _, changed = await tags.change_tag_settings(server.db, name, patch, unset=unset, at=server.now())
    except BadInput as error:
        return _respond(server, request, listed, group, replace(typed, problems={"": str(error)}), status=400)
    message = f"{name}: its settings apply to {format_count(len(changed), 'domain')}, unless they have their own."
    return server.finish(request, Outcome(message, next_page=SERVER_LINKS.tag(name, group=group)))


async def _get_tag(db: AppDatabase, name: str) -> TagSummary:
    if not name:
        raise BadInput("the address of this page names no tag: choose one under Domains")
    return await tags.get_tag(db, name)


async def tag_domains(db: AppDatabase, form: Form, at: datetime) -> Outcome:
    """Add a tag to the selected domains, or remove it. Raises BadInput."""
    names, tag, action = form.get("domain", "").splitlines(), form.get("tag", "").strip(), form.get("action", "")
    if not names:
        raise BadInput("select the domains to tag")
    if not tag:
        raise BadInput("enter a tag, such as news")
    if action not in {"add", "remove"}:
        raise BadInput("choose whether to add or to remove the tag")
    changed = await tags.change_tags(db, names, **{action: [tag]}, at=at)
    verb = "tagged" if action == "add" else "no longer tagged"
    message = f"{format_count(len(changed), 'domain')} {'is' if len(changed) == 1 else 'are'} {verb} {tag}."
    return Outcome(message, changed[0] if len(changed) == 1 else None, next_page=get_previous_page(form))


async def change_tags(db: AppDatabase, form: Form, at: datetime) -> Outcome:
    """Give a domain the tags that were typed, and remove those that were deleted from the field. Raises BadInput."""
    wanted, before = (set(form.get(name, "").replace(",", " ").split()) for name in ("tags", "was-tags"))
    name = form.get("name", "")
    add, remove = sorted(wanted - before), sorted(before - wanted)
    (domain,) = await tags.change_tags(db, [name], add=add, remove=remove, at=at)
    shown = ", ".join(tag.name for tag in domain.tags) or "none"
    return Outcome(f"The tags of {domain.authority}: {shown}.", domain, next_page=get_previous_page(form))


async def remove_tag(db: AppDatabase, form: Form, at: datetime) -> Outcome:
    """Delete a tag. Raises BadInput."""
    name = form.get("name", "")
    changed = await tags.remove_tag(db, name, at=at)
    message = f"The tag {name} was removed from {format_count(len(changed), 'domain')}."
    return Outcome(message, next_page=SERVER_LINKS.domains())


PAGES = {"/tag": show_tag}
FORMS = {"/tags/set": save_settings}
ACTIONS: dict[str, Action] = {
    "/tags/change": change_tags,
    "/tags/remove": remove_tag,
    "/domains/tag": tag_domains,
}
