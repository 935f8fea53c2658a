"""The screenshots of a page: two side by side with their differences marked, and their pictures."""

from datetime import datetime

from starlette.requests import Request
from starlette.responses import Response

from crawler.app import screenshots
from crawler.app.pages import resolve_page
from crawler.errors import BadInput, CrawlerError, NotFound
from crawler.server.access import NO_STORE
from crawler.server.ui import actions, render
from crawler.server.ui.web import PageServer, respond_html


async def show_screenshots(server: PageServer, request: Request) -> Response:
    """Show two screenshots of a page, by default the newest ones, and list all."""
    params = request.query_params
    domain, url = await resolve_page(server.db, actions.parse_url(params.get("url", "")))
    taken = await screenshots.list_screenshots(server.db, domain, url)
    after = _parse_time(params.get("to", "")) or (taken[0].at if taken else None)
    older = (each.at for each in taken if after is not None and each.at < after)
    before = _parse_time(params.get("from", "")) or next(older, None)
    share, problem = None, ""
    if before is not None and after is not None and before != after:
        before, after = sorted((before, after))
        try:
            _, share = await screenshots.mark_picture(server.db, domain, url, after, before, parsers=server.parsers)
        except NotFound:
            raise
        except CrawlerError as error:
            problem = str(error)
    context = {"url": url, "domain": domain, "taken": taken, "before": before, "after": after, "share": share}
    context["problem"] = problem
    return respond_html(
        render.render_screenshots_page(viewer=server.build_viewer(request), now=server.now(), **context)
    )


async def send_picture(server: PageServer, request: Request) -> Response:
    """Send a screenshot, with marks where it differs from another one if that is given."""
    params = request.query_params
    domain, url = await resolve_page(server.db, actions.parse_url(params.get("url", "")))
    at, other = _parse_time(params.get("at", "")), _parse_time(params.get("against", ""))
    if at is None:
        raise BadInput("the address of this picture names no time: choose one of the screenshots")
    if other is None:
        picture = await screenshots.read_picture(server.db, domain, url, at)
    else:
        picture, _ = await screenshots.mark_picture(server.db, domain, url, at, other, parsers=server.parsers)
    return Response(picture, media_type="image/webp", headers=NO_STORE)


def _parse_time(text: str) -> datetime | None:
    """Return the time of a screenshot, as the pages of screenshots write it; None for an empty text."""
    if not text:
        return None
    try:
        at = datetime.fromisoformat(text)
    except ValueError as error:
        raise BadInput(f"{text[:40]!r} is not the time of a screenshot: choose one of the list") from error
    if at.tzinfo is None:
        raise BadInput(f"{text[:40]!r} is not the time of a screenshot: it has no time zone")
    return at
