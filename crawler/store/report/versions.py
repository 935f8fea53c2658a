"""Versions of pages: the versions of a page, the content of one, and the pages of a domain at an instant.

Retention removes the text and the body of old versions, and the row only later (crawler/prune.py). A body that is not
stored is None, never empty bytes.
"""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from msgspec import Struct

from crawler.core.domain import Domain
from crawler.core.http.urls import Url, compute_page_key
from crawler.core.page.block import BlockKind
from crawler.core.visit.state import State
from crawler.store.database import Database
from crawler.store.record import read_body
from crawler.store.report.feed import EventKind
from crawler.store.rows import fetch_dicts, fetch_row, fetch_values

VERSION = """
    SELECT v.number, v.at,
           (SELECT n.at FROM snapshot n
             WHERE n.domain_id = %(domain_id)s AND n.key = v.key AND n.number > v.number
             ORDER BY n.number LIMIT 1) AS until,
           e.change, string_to_array(coalesce(e.parts, ''), ' ') AS parts, e.magnitude, v.distance_bits, v.title,
           v.language, v.content_type, octet_length(v.text) AS text_bytes, c.body_bytes, v.is_rendered, v.is_stored
      FROM snapshot v
      LEFT JOIN LATERAL (SELECT o.change, o.parts, o.magnitude FROM event o
                          WHERE o.domain_id = %(domain_id)s AND o.key = v.key AND o.version = v.number AND o.at = v.at
                          ORDER BY o.number LIMIT 1) e ON true
      LEFT JOIN content c ON c.domain_id = %(domain_id)s AND c.digest = v.body_digest AND v.is_stored
     WHERE v.domain_id = %(domain_id)s AND v.key = %(key)s
"""
VERSIONS = f"{VERSION} AND (%(before)s::int IS NULL OR v.number < %(before)s) ORDER BY v.number DESC LIMIT %(most)s"
ONE_VERSION = f"""
    {VERSION} AND v.number = coalesce(
        %(number)s::int,
        (SELECT max(o.number) FROM snapshot o
          WHERE o.domain_id = %(domain_id)s AND o.key = %(key)s AND (%(at)s::timestamptz IS NULL OR o.at <= %(at)s)))
"""  # noqa: S608  our own expressions
CONTENT = """
    SELECT v.text, version_content(v.text, v.content, v.content_ranges) AS content, v.confidence, v.meta AS metadata,
           v.body_digest, v.headers,
           visit_status(%(domain_id)s, v.key, v.at) AS status,
           CASE WHEN v.number = p.version THEN p.etag END AS etag,
           CASE WHEN v.number = p.version THEN p.last_modified END AS last_modified
      FROM snapshot v
      JOIN page p ON p.domain_id = %(domain_id)s AND p.key = v.key
     WHERE v.domain_id = %(domain_id)s AND v.key = %(key)s AND v.number = %(number)s
"""
# The state of a page at an instant follows from its last event until then; without such an event, it was fetched. If
# all events of the page were deleted, its current state is returned, with NULL as the time since when.
STATE_AT = """
    SELECT CASE WHEN s.change IN ('gone', 'moved', 'excluded') THEN s.change ELSE 'fetched' END AS state, s.at FROM (
        (SELECT o.change, o.at, 1 AS turn FROM event o
          WHERE o.domain_id = %(domain_id)s AND o.key = {key} AND (%(at)s::timestamptz IS NULL OR o.at <= %(at)s)
            AND o.change IN ('added', 'changed', 'restored', 'gone', 'moved', 'excluded')
          ORDER BY o.number DESC LIMIT 1)
        UNION ALL
        (SELECT h.state, NULL::timestamptz, 2 FROM frontier h
          WHERE h.domain_id = %(domain_id)s AND h.key = {key} AND h.state IN ('gone', 'moved', 'excluded')
            AND NOT EXISTS (SELECT FROM event o WHERE o.domain_id = %(domain_id)s AND o.key = {key}
                           AND o.change IN ('added', 'changed', 'restored', 'gone', 'moved', 'excluded')))) s
     ORDER BY s.turn LIMIT 1
"""
PAGES_AT = f"""
    SELECT p.url, coalesce(e.state, 'fetched') AS state, e.at AS state_at, v.number AS version, v.at AS version_at,
           v.title, octet_length(v.text) AS text_bytes
      FROM (SELECT key, url FROM page
             WHERE domain_id = %(domain_id)s AND version > 0 AND first_seen_at <= %(at)s
               AND EXISTS (SELECT FROM snapshot s WHERE s.domain_id = %(domain_id)s AND s.key = page.key
                                                    AND s.number = 1 AND s.at <= %(at)s)
             ORDER BY url COLLATE "C" LIMIT %(most)s) p
      JOIN LATERAL (SELECT s.number, s.at, s.title, s.text FROM snapshot s
                     WHERE s.domain_id = %(domain_id)s AND s.key = p.key AND s.at <= %(at)s
                     ORDER BY s.number DESC LIMIT 1) v ON true
      LEFT JOIN LATERAL ({STATE_AT.format(key="p.key")}) e ON true
     ORDER BY p.url COLLATE "C"
"""  # noqa: S608  our own expressions


@dataclass(frozen=True, slots=True)
class PageVersion:
    """One version of a page. until: when the next version was first seen; None for the newest.

    change: ADDED, CHANGED or RESTORED; None if it is not stored, as for a URL list.
    magnitude: the share of the page that changed, 0 to 1; None if unknown.
    body_bytes: the size before compression; None if the body is not stored.  is_stored: text and body are stored.
    """

    number: int
    at: datetime
    until: datetime | None
    change: EventKind | None
    parts: tuple[BlockKind, ...]
    magnitude: float | None
    distance_bits: int | None
    title: str
    language: str
    content_type: str
    text_bytes: int
    body_bytes: int | None
    is_rendered: bool
    is_stored: bool


class StoredHeaders(Struct, frozen=True):
    """The stored parts of the response with a version (core/http/stored_headers.py).

    status: None if the visit is no longer stored.  etag, last_modified: for the newest version only, from the last
    successful visit.  others: names and values in the order of the response; empty for URL lists and for versions that
    an earlier recrawl stored.
    """

    status: int | None
    content_type: str
    etag: str | None
    last_modified: str | None
    others: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class VersionContent:
    """A version of a page with its stored content.

    state, state_at: the state of the page at the requested instant, and since when it had it.
    content: the content text, what a reader would call the page.  confidence: of its choice, 0 to 1.
    text: the main text, whose changes are reported.  metadata: see `read_metadata`.
    body: the response body or the rendered document; None if it is not stored.
    """

    url: Url
    version: PageVersion
    state: State
    state_at: datetime | None
    headers: StoredHeaders
    content: str = field(repr=False)
    confidence: float
    text: str = field(repr=False)
    metadata: dict[str, Any] = field(repr=False)
    body: bytes | None = field(repr=False)


class PastPage(Struct, frozen=True):
    """A page at an instant. state_at: since when it had this state; None if unknown."""

    url: Url
    state: State
    state_at: datetime | None
    version: int
    version_at: datetime
    title: str
    text_bytes: int


async def list_versions(
    db: Database, domain: Domain, url: Url, *, max_count: int = 100, before: int | None = None
) -> list[PageVersion]:
    """Return the versions of a page, the newest first. before: only versions with a lower number (keyset paging)."""
    values = {"domain_id": domain.id, "key": compute_page_key(url), "most": max_count, "before": before}
    return await fetch_values(db, PageVersion, VERSIONS, values)


async def read_version(
    db: Database, domain: Domain, url: Url, *, number: int | None = None, at: datetime | None = None
) -> VersionContent | None:
    """Return a version by number, or else the newest one at an instant (None: now), or None if there is none."""
    values = {"domain_id": domain.id, "key": compute_page_key(url), "number": number, "at": at}
    async with db.transaction() as connection:
        version = next(iter(await fetch_values(connection, PageVersion, ONE_VERSION, values)), None)
        if version is None:
            return None
        (content,) = await fetch_dicts(connection, CONTENT, values | {"number": version.number})
        last = await fetch_row(connection, STATE_AT.format(key="%(key)s"), values)
        body = await read_body(connection, domain.id, content["body_digest"]) if version.is_stored else None
    return VersionContent(
        url=url,
        version=version,
        state=State(last[0]) if last else State.FETCHED,
        state_at=last[1] if last else None,
        headers=StoredHeaders(
            content_type=version.content_type,
            others=parse_headers(content["headers"]),
            **{name: content[name] for name in ("status", "etag", "last_modified")},
        ),
        body=body,
        **{name: content[name] for name in ("content", "confidence", "text", "metadata")},
    )


async def list_pages_at(db: Database, domain: Domain, *, at: datetime, max_count: int = 1000) -> list[PastPage]:
    """Return the pages of a domain as they were at an instant, ordered by URL."""
    return await fetch_values(db, PastPage, PAGES_AT, {"domain_id": domain.id, "at": at, "most": max_count})


def parse_headers(lines: str) -> tuple[tuple[str, str], ...]:
    """Return the names and values of headers that are stored one per line."""
    split = [line.partition(": ") for line in lines.splitlines()]
    return tuple((name, value) for name, _, value in split)
