"""The overview, the list of domains, search and the system page."""

from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from crawler.app import overview
from crawler.app.changes import count_unread_changes, read_newest_changes
from crawler.app.overview import DomainOrder, DomainQuery
from crawler.app.search import search_everywhere
from crawler.app.system import read_health, read_system
from crawler.app.tags import list_tags
from crawler.server.ui import render
from crawler.server.ui.actions import get_previous_page, parse_number
from crawler.server.ui.web import PageServer, redirect, respond_html

MAX_NEWEST = 6  # changes on the overview
MAX_OVERVIEW_DOMAINS = 10
DOMAINS_PER_PAGE = 25
MAX_RESULTS = 20  # of each part of a search
READ_LIFETIME = 400 * 86_400  # seconds; browsers keep no cookie longer


async def show_overview(server: PageServer, request: Request) -> Response:
    """Show the health, the domains that need attention, and the changes that are new for this browser."""
    at, db = server.now(), server.db
    query = DomainQuery(DomainOrder.ATTENTION)
    facts = await overview.list_domains(
        db, query, max_count=MAX_OVERVIEW_DOMAINS, at=at, has_figures=server.counter.has_figures
    )
    items = await read_newest_changes(db, at=at, max_count=MAX_NEWEST)
    read_until = get_read_position(server, request)
    context: dict[str, Any] = {
        "health": await read_health(db),
        "undelivered": await overview.list_undelivered(db, at=at),
        "unread": await count_unread_changes(db, after=read_until),
        "read_until": read_until,
    }
    viewer = server.build_viewer(request)
    return respond_html(render.render_overview_page(facts, items, viewer=viewer, **context))


def get_read_position(server: PageServer, request: Request) -> int:
    """Return the position of the last change that this browser marked as read; 0 for none."""
    return parse_number(request.cookies.get(get_read_cookie(server), ""))


def get_read_cookie(server: PageServer) -> str:
    return f"{server.authenticator.cookie}_read"


async def mark_as_read(server: PageServer, request: Request) -> Response:
    """Keep the position of the newest change that was shown in a cookie of this browser."""
    form = await server.read_form(request)
    response = redirect(get_previous_page(form))
    position = str(parse_number(form.get("position", "")))
    response.set_cookie(get_read_cookie(server), position, max_age=READ_LIFETIME, httponly=True, samesite="strict")
    return response


async def show_domains(server: PageServer, request: Request) -> Response:
    """Show a part of the list of domains."""
    params = request.query_params
    orders = {order.value: order for order in render.DOMAIN_ORDERS}
    order = orders.get(params.get("sort", ""), DomainOrder.NAME)
    skipped, tag = parse_number(params.get("skip", "")), params.get("tag", "").strip()
    query = DomainQuery(order, params.get("name", "").strip(), skipped=skipped, tag=tag)
    facts = await overview.list_domains(
        server.db, query, max_count=DOMAINS_PER_PAGE, at=server.now(), has_figures=server.counter.has_figures
    )
    tags = [each.tag.name for each in await list_tags(server.db)]
    return respond_html(render.render_domains_page(facts, tags, viewer=server.build_viewer(request)))


async def show_search(server: PageServer, request: Request) -> Response:
    """Show the pages that contain the search words, and update the search index soon."""
    server.index.request_sync()
    facts = await search_everywhere(server.db, request.query_params.get("q", "").strip(), max_count=MAX_RESULTS)
    return respond_html(render.render_search_page(facts, viewer=server.build_viewer(request)))


async def show_system(server: PageServer, request: Request) -> Response:
    """Show the state of the installation."""
    facts = await read_system(server.db)
    return respond_html(render.render_system_page(facts, viewer=server.build_viewer(request), now=server.now()))
