"""Screenshots of pages: a few of the newest ones of each page."""

from dataclasses import dataclass
from datetime import datetime

from crawler.core.domain import Domain
from crawler.core.http.urls import Url, compute_page_key
from crawler.store.database import Database
from crawler.store.rows import execute, fetch_value, fetch_values

MAX_SCREENSHOTS = 20  # of a page; older ones are deleted

ADD = """
    INSERT INTO screenshot (domain_id, key, at, version, width, height, picture)
    VALUES (%(domain_id)s, %(key)s, %(at)s, %(version)s, %(width)s, %(height)s, %(picture)s)
    ON CONFLICT (domain_id, key, at) DO NOTHING
"""
DELETE_OLD = """
    DELETE FROM screenshot WHERE domain_id = %(domain_id)s AND key = %(key)s AND at <= (
        SELECT o.at FROM screenshot o WHERE o.domain_id = %(domain_id)s AND o.key = %(key)s
         ORDER BY o.at DESC OFFSET %(most)s LIMIT 1)
"""
LIST = """
    SELECT at, version, width, height, octet_length(picture) AS picture_bytes
      FROM screenshot WHERE domain_id = %(domain_id)s AND key = %(key)s ORDER BY at DESC
"""
READ = "SELECT picture FROM screenshot WHERE domain_id = %(domain_id)s AND key = %(key)s AND at = %(at)s"


@dataclass(frozen=True, slots=True)
class Screenshot:
    """A screenshot. version: the newest version of the page at that time; 0 for none."""

    at: datetime
    version: int
    width: int
    height: int
    picture_bytes: int


async def add_screenshot(db: Database, domain: Domain, url: Url, taken: Screenshot, picture: bytes) -> None:
    """Store a screenshot, and delete those of the page that are too many."""
    values = {"domain_id": domain.id, "key": compute_page_key(url), "at": taken.at, "version": taken.version}
    values |= {"width": taken.width, "height": taken.height, "picture": picture, "most": MAX_SCREENSHOTS}
    async with db.transaction() as connection:
        await execute(connection, ADD, values)
        await execute(connection, DELETE_OLD, values)


async def list_screenshots(db: Database, domain: Domain, url: Url) -> list[Screenshot]:
    """Return the screenshots of a page, newest first."""
    return await fetch_values(db, Screenshot, LIST, {"domain_id": domain.id, "key": compute_page_key(url)})


async def read_picture(db: Database, domain: Domain, url: Url, at: datetime) -> bytes | None:
    """Return the WebP file of a screenshot, or None if there is none of this time."""
    found = await fetch_value(db, READ, {"domain_id": domain.id, "key": compute_page_key(url), "at": at})
    return None if found is None else bytes(found)
