"""The living site's sitemap index, sitemap and feed. Their dates are as reliable as the validators of the pages."""

from collections.abc import Iterator
from datetime import datetime
from email.utils import format_datetime
from xml.sax.saxutils import escape

from labs.demo.site.sheet import Serving, Sheet, SheetKind
from labs.demo.site.site import Site

INDEX_PATH = "/sitemap.xml"
SITEMAP_PATH = "/pages.xml"
FEED_PATH = "/feed.xml"
MAX_NEWS = 20  # maximum entries of the feed


def map_of(site: Site, path: str, at: datetime) -> str | None:
    """Return the sitemap or the feed at a path; None for any other path."""
    if path == INDEX_PATH:
        inside = "".join(f"<sitemap><loc>{each}</loc></sitemap>" for each in (SITEMAP_PATH, FEED_PATH))
        return f"<?xml version='1.0'?>\n<sitemapindex>{inside}</sitemapindex>\n"
    if path == SITEMAP_PATH:
        return f"<?xml version='1.0'?>\n<urlset>{''.join(_entries(site, at))}</urlset>\n"
    if path == FEED_PATH:
        inside = "".join(_items(site, at))
        return f"<?xml version='1.0'?>\n<rss><channel><title>The almanac</title>{inside}</channel></rss>\n"
    return None


def _entries(site: Site, at: datetime) -> Iterator[str]:
    """Yield an entry for each page; the glossary has no dates, and sheets that always claim "now" do so here, too."""
    for path in site.paths(at):
        sheet = site.sheet(path)
        date = at if sheet.serving is Serving.LIAR_NOW else _changed_at(sheet, at)
        lastmod = "" if sheet.kind is SheetKind.TERM else f"<lastmod>{date.isoformat()}</lastmod>"
        yield f"<url><loc>{escape(path)}</loc>{lastmod}</url>"


def _items(site: Site, at: datetime) -> Iterator[str]:
    """Yield the pages with news, newest first."""
    news = (site.sheet(path) for path in site.paths(at))
    stories = [sheet for sheet in news if sheet.kind in {SheetKind.NEWS, SheetKind.ARTICLE}]
    for sheet in sorted(stories, key=lambda sheet: (_changed_at(sheet, at), sheet.path), reverse=True)[:MAX_NEWS]:
        date = format_datetime(_changed_at(sheet, at))
        yield f"<item><title>{escape(sheet.title)}</title><link>{sheet.path}</link><pubDate>{date}</pubDate></item>"


def _changed_at(sheet: Sheet, at: datetime) -> datetime:
    return sheet.version_began(sheet.version(at)).replace(microsecond=0)
