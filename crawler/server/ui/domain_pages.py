"""The page of a domain: its parts, and the forms of its settings and rules."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from typing import Any

from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.responses import Response

from crawler.app import domains, overview, page_list, rules
from crawler.app.overview import DomainHead
from crawler.app.page_list import PageOrder, PageQuery
from crawler.app.registration import Domain
from crawler.app.settings import SettingsPatch
from crawler.errors import BadInput, CrawlerError
from crawler.format.domain_settings import format_changes, format_rule
from crawler.server.ui import actions, render
from crawler.server.ui.change_and_url_pages import ChangeListQuery, load_change_facts
from crawler.server.ui.change_pages import parse_kinds
from crawler.server.ui.domain_tabs import (
    DEFAULT_RANGE,
    RANGES,
    Tab,
    describe_freshness,
    describe_rules,
    describe_settings,
    describe_traffic,
    group_by_page,
)
from crawler.server.ui.fields import GROUPS, parse_rule, parse_settings
from crawler.server.ui.links import SERVER_LINKS
from crawler.server.ui.overview_pages import get_read_position
from crawler.server.ui.web import PageServer, respond_html

PAGES_PER_PART = 25
NEAR_DUPLICATES = "duplicates"  # a list of groups next to the lists of pages
MAX_PLANNED = 50  # with more domains, there is no forecast, because a forecast reads all domains

Context = dict[str, Any]


async def show_domain(server: PageServer, request: Request) -> Response:
    """Show a part of the page of a domain."""
    params = request.query_params
    domain = await actions.find_domain(server.db, params.get("name", ""))
    try:
        tab = Tab(params.get("tab", Tab.CHANGES))
    except ValueError as error:
        raise BadInput(f"the page of a domain has the parts {', '.join(Tab)}: choose one of them") from error
    head = await overview.read_domain_head(server.db, domain, at=server.now())
    if head.row.is_large:
        await server.counter.has_figures(domain)
    context = await TABS[tab](server, head, params)
    context["read_until"] = get_read_position(server, request)
    return respond_html(render.render_domain_page(head, [tab], viewer=server.build_viewer(request), **context))


async def _load_changes(server: PageServer, head: DomainHead, params: QueryParams) -> Context:
    texts = {name: params.get(name, "") for name in ("since", "before", "q")}
    query = ChangeListQuery(domain=head.domain.authority, kinds=parse_kinds(params), **texts)
    facts = await load_change_facts(server.db, query, at=head.at)
    return {"facts": facts, "changed_pages": group_by_page(facts.items)}


async def _load_pages(server: PageServer, head: DomainHead, params: QueryParams) -> Context:
    which, words = params.get("list", "all"), params.get("q", "").strip()
    context: Context = {"which": which, "words_typed": words, "orders": ORDER_LABELS, "part": None, "groups": []}
    if which == NEAR_DUPLICATES:
        find = partial(overview.list_near_duplicates, server.db, head.domain, at=head.at, max_age=overview.ANY_AGE)
        return context | {"near_duplicates": await server.remember(head.domain.id, NEAR_DUPLICATES, find)}
    order = next((each for each in PageOrder if each.value == params.get("sort")), PageOrder.IMPORTANCE)
    query = PageQuery(which, order, tuple(words.split()), params.get("after", ""))
    part = await page_list.list_domain_pages(server.db, head.domain, query, max_count=PAGES_PER_PART, at=head.at)
    return context | {"part": part, "near_duplicates": [], "after": query.after}


async def _load_freshness(server: PageServer, head: DomainHead, params: QueryParams) -> Context:
    span = params.get("range", DEFAULT_RANGE)
    if span not in RANGES:
        raise BadInput(f"{span[:40]!r} is not a range: use one of {', '.join(RANGES)}")
    examine = partial(
        overview.examine_freshness,
        *(server.db, head.domain),
        at=head.at,
        span=RANGES[span][1],
        max_age=overview.ANY_AGE,
        max_planned_domains=MAX_PLANNED,
    )
    if head.row.is_uncounted:
        return {"fresh": None, "span": span}
    facts = await server.remember(head.domain.id, f"freshness {span}", examine)
    return describe_freshness(_require(facts, head), SERVER_LINKS, span=span) | {"ranges": RANGES}


async def _load_traffic(server: PageServer, head: DomainHead, _params: QueryParams) -> Context:
    if head.row.is_uncounted:
        return {"traffic": None}
    examine = partial(overview.examine_traffic, server.db, head.domain, at=head.at, max_age=overview.ANY_AGE)
    return describe_traffic(_require(await server.remember(head.domain.id, "traffic", examine), head))


async def _load_settings(_server: PageServer, head: DomainHead, params: QueryParams) -> Context:
    group = params.get("group", "budget")
    if group not in GROUPS:
        raise BadInput(f"{group[:40]!r} is not a group of settings: use one of {', '.join(GROUPS)}")
    return describe_settings(head.domain, group)


async def _load_rules(_server: PageServer, head: DomainHead, _params: QueryParams) -> Context:
    return describe_rules(head.domain)


def _require(facts: Any, head: DomainHead) -> Any:
    if facts is None:
        raise BadInput(f"{head.domain.authority} is no longer registered")
    return facts


TABS: dict[Tab, Callable[[PageServer, DomainHead, QueryParams], Awaitable[Context]]] = {
    Tab.CHANGES: _load_changes,
    Tab.PAGES: _load_pages,
    Tab.FRESHNESS: _load_freshness,
    Tab.TRAFFIC: _load_traffic,
    Tab.SETTINGS: _load_settings,
    Tab.RULES: _load_rules,
}
ORDER_LABELS = {
    PageOrder.URL: "Page",
    PageOrder.IMPORTANCE: "Importance",
    PageOrder.CHANGE_RATE: "Changes",
    PageOrder.LAST_VISIT: "Last visit",
    PageOrder.NEXT_VISIT: "Next visit",
    PageOrder.FAILURES: "Errors",
}


async def save_settings(server: PageServer, request: Request) -> Response:
    """Change the settings of a form. If a value is rejected, show the form again with what was typed and why."""
    form = await server.read_form(request)
    try:
        domain = await actions.find_domain(server.db, form.get("name", ""))
    except CrawlerError as error:
        return server.reject(request, form, error)
    group = form["group"] if form.get("group") in GROUPS else next(iter(GROUPS))
    values, unset, typed = parse_settings(form, domain.layers)
    if typed.problems:
        return await _show_again(server, request, domain, Tab.SETTINGS, describe_settings(domain, group, typed))
    try:
        changed = await domains.change_settings(server.db, domain, SettingsPatch(values), unset=unset, at=server.now())
    except BadInput as error:
        typed = replace(typed, problems={"": str(error)})
        return await _show_again(server, request, domain, Tab.SETTINGS, describe_settings(domain, group, typed))
    message = "these settings are already in use; nothing was changed."
    if changes := format_changes(domain, changed):
        message = f"{'; '.join(changes)}. The next plan, within the hour, reschedules its visits."
    next_page = SERVER_LINKS.domain(domain.authority, tab=Tab.SETTINGS, group=group)
    return server.finish(request, actions.Outcome(f"{domain.authority}: {message}", changed, next_page=next_page))


async def add_rule(server: PageServer, request: Request) -> Response:
    """Add a rule as typed. If it is rejected, show the form again with what was typed and why."""
    form = await server.read_form(request)
    try:
        domain = await actions.find_domain(server.db, form.get("name", ""))
    except CrawlerError as error:
        return server.reject(request, form, error)
    rule, typed = parse_rule(form)
    if rule is None:
        return await _show_again(server, request, domain, Tab.RULES, describe_rules(domain, typed))
    try:
        changed = await rules.add_rule(server.db, domain, rule, at=server.now())
    except BadInput as error:
        typed = replace(typed, problems={"": str(error)})
        return await _show_again(server, request, domain, Tab.RULES, describe_rules(domain, typed))
    next_page = SERVER_LINKS.domain(domain.authority, tab=Tab.RULES)
    outcome = actions.Outcome(f"The rule was added: {format_rule(rule)}.", changed, next_page=next_page)
    return server.finish(request, outcome)


async def _show_again(server: PageServer, request: Request, domain: Domain, tab: Tab, context: Context) -> Response:
    """Show a form that was rejected."""
    head = await overview.read_domain_head(server.db, domain, at=server.now())
    return respond_html(render.render_domain_page(head, [tab], viewer=server.build_viewer(request), **context), 400)
