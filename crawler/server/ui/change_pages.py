"""The list of changes and its Atom feed."""

import asyncio

from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from crawler.app.actor import ActorKind
from crawler.app.changes import EventKind
from crawler.app.delivery.feeds import FeedSelection, build_linked_path, may_read, read_feed
from crawler.app.running import users
from crawler.format.kinds import NEWS
from crawler.server.access import NO_STORE
from crawler.server.ui import render
from crawler.server.ui.change_and_url_pages import ChangeListQuery, load_change_facts
from crawler.server.ui.overview_pages import get_read_position
from crawler.server.ui.web import PageServer, respond_html


def parse_kinds(params: QueryParams) -> frozenset[EventKind]:
    """Return the kinds of change that the parameters select; the usual ones if they select none."""
    return frozenset(kind for kind in EventKind if kind.value in params.getlist("kind")) or NEWS


async def show_changes(server: PageServer, request: Request) -> Response:
    """Show a part of the list of changes."""
    params = request.query_params
    texts = {name: params.get(name, "") for name in ("domain", "tag", "since", "before", "q")}
    query = ChangeListQuery(kinds=parse_kinds(params), **texts)
    facts = await load_change_facts(server.db, query, at=server.now())
    kinds = ",".join(sorted(query.kinds)) if query.kinds != NEWS else ""
    actor = request.scope["identity"].actor
    user = actor.name if actor.kind is ActorKind.USER else ""
    feed_query, feed = FeedSelection(domain=query.domain, kinds=kinds, tag=query.tag, user=user), ""
    if not user or await users.is_enabled(server.db, user):  # a user of a proxy may not be registered here
        feed = await asyncio.to_thread(build_linked_path, server.home_folder, feed_query)
    viewer, read_until = server.build_viewer(request), get_read_position(server, request)
    return respond_html(render.render_changes_page(facts, viewer=viewer, feed=feed, read_until=read_until))


async def show_feed(server: PageServer, request: Request) -> Response:
    """Return the Atom feed of changes to a session, or to the holder of the feed's token."""
    params = request.query_params
    feed_query = FeedSelection(*(params.get(name, "") for name in ("domain", "prefix", "kind", "tag", "user")))
    token = params.get("token", "")
    may = bool(request.scope["session"]) or await asyncio.to_thread(may_read, server.home_folder, feed_query, token)
    if not may or (feed_query.user and not await users.is_enabled(server.db, feed_query.user)):
        message = "The feed token is missing or invalid. Run recrawl feed to print the address of a feed."
        return PlainTextResponse(message, status_code=401, headers=NO_STORE)
    origin = server.authenticator.addresses[0]
    address = f"{origin}{request.url.path}?{request.url.query}"
    document = await read_feed(server.db, feed_query, address=address, origin=origin, at=server.now())
    headers = {"etag": document.etag, "cache-control": "private, no-cache"}
    if document.is_not_modified(request.headers.get("if-none-match", "")):
        return Response(status_code=304, headers=headers)
    return Response(document.body, media_type="application/atom+xml; charset=utf-8", headers=headers)
