"""The page about one URL, its blocks and values, and a test fetch."""

from starlette.requests import Request
from starlette.responses import Response

from crawler.app.blocks import PickAction, read_blocks
from crawler.app.page_values import preview_value
from crawler.app.pages import VersionsQuery
from crawler.app.registration import get_domain
from crawler.app.try_page import TryOptions, try_domain_url
from crawler.clock import Clock
from crawler.errors import BadInput
from crawler.server.ui import actions, render
from crawler.server.ui.change_and_url_pages import load_url_facts
from crawler.server.ui.links import SERVER_LINKS
from crawler.server.ui.web import PageServer, redirect, respond_html


async def show_page(server: PageServer, request: Request) -> Response:
    """Show what is known about one URL."""
    params = request.query_params
    before, after, older = (actions.parse_number(params.get(name, "")) for name in ("from", "to", "older"))
    query = VersionsQuery(before=before, after=after, older_than=older or None)
    url = actions.parse_url(params.get("url", ""))
    domain = await get_domain(server.db, url)
    facts = await load_url_facts(server.db, domain, url, query, parsers=server.parsers, at=server.now())
    is_beside = params.get("view", "") == "sides"
    return respond_html(render.render_url_page(facts, viewer=server.build_viewer(request), is_beside=is_beside))


async def show_blocks(server: PageServer, request: Request) -> Response:
    """Show the compared blocks of a page, and the preview of a rule."""
    url = actions.parse_url(request.query_params.get("url", ""))
    domain = await get_domain(server.db, url)
    pick = actions.parse_block_pick(request.query_params)
    facts = await read_blocks(server.db, domain, url, pick, parsers=server.parsers)
    if facts is None:
        raise BadInput(f"no text of {url} is stored yet: crawl it first")
    if pick.action is PickAction.VALUES and facts.text:
        return redirect(SERVER_LINKS.value_form(url, selector=facts.text))
    return respond_html(render.render_blocks_page(facts, viewer=server.build_viewer(request)))


async def show_value_form(server: PageServer, request: Request) -> Response:
    """Show the form that adds a value of a page, and what the value would be."""
    url = actions.parse_url(request.query_params.get("url", ""))
    domain = await get_domain(server.db, url)
    value = actions.parse_value_request(request.query_params)
    preview = await preview_value(server.db, domain, url, value, parsers=server.parsers)
    return respond_html(render.render_value_form(preview, viewer=server.build_viewer(request)))


async def try_url(server: PageServer, request: Request) -> Response:
    """Fetch a page and show the result without recording it."""
    form = await server.read_form(request)
    url = actions.parse_url(form.get("url", ""))
    domain = await get_domain(server.db, url)
    options = TryOptions(again=bool(form.get("again")))
    result = await try_domain_url(server.db, domain, url, how=options, clock=Clock.from_instant(server.now()))
    return respond_html(render.render_try_page(result, domain, viewer=server.build_viewer(request)))
