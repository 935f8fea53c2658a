"""Screenshots of pages: take them on request, list them, and compare two of them."""

import asyncio
from datetime import datetime, timedelta
from functools import partial

from crawler.app.action_log import recorded
from crawler.app.database import AppDatabase
from crawler.app.registration import get_domain, parse_typed_url
from crawler.app.try_page import TryOptions, TryResult, explain_missing_screenshot, try_domain_url
from crawler.clock import Clock
from crawler.core.domain import Domain
from crawler.core.http.response import Fetched
from crawler.core.http.urls import Url
from crawler.engine.parsing.parser_pool import ParserPool
from crawler.errors import BadInput, CrawlerError, NotFound
from crawler.extras import require_extra
from crawler.plugins import load_plugins
from crawler.store import screenshots
from crawler.store.screenshots import Screenshot

PURPOSE = "A screenshot"


@recorded("take screenshot")
async def take_screenshot(db: AppDatabase, text: str, *, clock: Clock) -> tuple[Url, Screenshot]:
    """Fetch and render a page now, without recording a visit, and store a screenshot.

    Raises BadInput for an invalid URL, and CrawlerError if there is no browser or the page cannot be rendered.
    """
    require_extra("browser", PURPOSE)
    url, domain = parse_typed_url(text), await get_domain(db, text)
    load_plugins(db.settings.plugins)
    result = await try_domain_url(db, domain, url, how=TryOptions(screenshot=True), clock=clock)
    return result.target.url, await store_screenshot(db, text, result)


@recorded("take screenshot")
async def store_screenshot(db: AppDatabase, text: str, result: TryResult) -> Screenshot:
    """Store the screenshot of a trial of the page that a user named. Raises CrawlerError if it has none."""
    require_extra("browser", PURPOSE)
    from crawler.core.page.pictures import compress_picture  # noqa: PLC0415  Pillow is in an extra

    png = result.page.screenshot if result.page is not None else None
    if png is None:
        raise CrawlerError(f"no screenshot could be taken: {explain_missing_screenshot(result)}")
    picture = await asyncio.to_thread(compress_picture, png)
    version = result.target.version.number if result.target.version is not None else 0
    taken = Screenshot(result.at, version, picture.width, picture.height, len(picture.data))
    await screenshots.add_screenshot(db, await get_domain(db, text), result.target.url, taken, picture.data)
    return taken


async def list_screenshots(db: AppDatabase, domain: Domain, url: Url) -> list[Screenshot]:
    """Return the screenshots of a page, newest first."""
    return await screenshots.list_screenshots(db, domain, url)


async def read_picture(db: AppDatabase, domain: Domain, url: Url, at: datetime) -> bytes:
    """Return a screenshot as a WebP file. Raises NotFound."""
    picture = await screenshots.read_picture(db, domain, url, at)
    if picture is None:
        raise NotFound(f"there is no screenshot of {url} of this time, or it was deleted because there are newer ones")
    return picture


async def mark_picture(
    db: AppDatabase, domain: Domain, url: Url, at: datetime, other_at: datetime, *, parsers: ParserPool
) -> tuple[bytes, float]:
    """Return a screenshot with marks where it differs from another one, and the share of its area that is marked.

    Raises NotFound, and CrawlerError if they cannot be compared.
    """
    require_extra("browser", "The comparison of screenshots")
    from crawler.core.page.pictures import mark_differences  # noqa: PLC0415  Pillow is in an extra

    if at == other_at:
        raise BadInput("choose two different screenshots to compare")
    picture, other = [await read_picture(db, domain, url, each) for each in (at, other_at)]
    call = partial(mark_differences, picture, other, is_old=at < other_at)
    both = picture + other
    size = Fetched(200, both, len(both), timedelta(0), "image/webp")
    marked = await parsers.read(call, size, party=domain.id, needs_process=True)
    if marked is None:
        raise CrawlerError("these screenshots cannot be compared: they need too much memory")
    return marked.data, marked.share
