"""Pages for export, with their newest version or all stored ones, in the order of their keys or of the feed."""

from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from psycopg.rows import TupleRow

from crawler.core.domain import Domain
from crawler.core.http.urls import PageKey, Url
from crawler.core.visit.state import State
from crawler.store.database import PREFER_KEY_LOOKUPS, Connection, Database
from crawler.store.record import decompress_body
from crawler.store.report.feed import require_stored
from crawler.store.report.versions import parse_headers
from crawler.store.rows import fetch_dicts, fetch_row, fetch_rows

# URL lists are not exported as pages, except feeds.
PAGE = """
    SELECT p.key, p.url, f.state, p.version, p.status, v.at AS version_at, p.last_good_at AS seen_at,
           p.last_change_at AS changed_at, coalesce(v.title, '') AS title, coalesce(v.language, '') AS language,
           coalesce(v.content_type, '') AS content_type,
           coalesce(version_content(v.text, v.content, v.content_ranges), '') AS content,
           coalesce(v.confidence, 0) AS confidence, coalesce(v.line_ranges, '{}') AS line_ranges,
           coalesce(v.meta, '{}') AS metadata,
           v.body_digest AS digest,
           coalesce(v.headers, '') AS headers, coalesce(v.is_rendered, false) AS is_rendered, p.etag, p.last_modified,
           (SELECT r.importance FROM report_page r WHERE r.domain_id = %(domain_id)s AND r.key = p.key) AS importance,
           CASE WHEN %(bodies)s THEN visit_status(p.domain_id, p.key, v.at) END AS version_status,
           c.encoding, c.body_bytes, c.data
      FROM page p
      JOIN frontier f ON f.domain_id = p.domain_id AND f.key = p.key
      LEFT JOIN snapshot v ON v.domain_id = p.domain_id AND v.key = p.key AND v.number = p.version
      LEFT JOIN content c ON %(bodies)s AND c.domain_id = p.domain_id AND c.digest = v.body_digest
     WHERE p.domain_id = %(domain_id)s
       AND NOT EXISTS (SELECT FROM url_list u
                        WHERE u.domain_id = p.domain_id AND u.key = p.key AND u.kind IN ('sitemap', 'index', 'text'))
"""
# All versions whose text is stored, including those of gone pages. Validators are stored for the newest one only.
VERSION = """
    SELECT p.key, p.url, f.state, v.number AS version, p.status, v.at AS version_at, p.last_good_at AS seen_at,
           p.last_change_at AS changed_at, v.title, v.language, v.content_type,
           version_content(v.text, v.content, v.content_ranges) AS content, v.confidence, v.line_ranges,
           v.meta AS metadata, v.body_digest AS digest, v.headers, v.is_rendered,
           CASE WHEN v.number = p.version THEN p.etag END AS etag,
           CASE WHEN v.number = p.version THEN p.last_modified END AS last_modified, NULL::float8 AS importance,
           CASE WHEN %(bodies)s THEN visit_status(%(domain_id)s, w.key, v.at) END AS version_status,
           c.encoding, c.body_bytes, c.data, true AS is_of_all
      FROM ({which}) w
      JOIN snapshot v ON v.domain_id = %(domain_id)s AND v.key = w.key AND v.number = w.number
      JOIN page p ON p.domain_id = %(domain_id)s AND p.key = w.key
      JOIN frontier f ON f.domain_id = %(domain_id)s AND f.key = w.key
      LEFT JOIN content c ON %(bodies)s AND c.domain_id = %(domain_id)s AND c.digest = v.body_digest
     WHERE v.is_stored AND NOT EXISTS (SELECT FROM url_list u
                        WHERE u.domain_id = %(domain_id)s AND u.key = w.key AND u.kind IN ('sitemap', 'index', 'text'))
     ORDER BY w.place, w.key, w.number
"""
VERSIONS_IN_ORDER = VERSION.format(
    which="""SELECT key, number, 0 AS place FROM snapshot
              WHERE domain_id = %(domain_id)s AND (key, number) > (%(after)s, %(number)s)
              ORDER BY key, number LIMIT %(most)s"""
)
VERSIONS_CHOSEN = VERSION.format(
    which="""SELECT key, number, min(place) AS place
               FROM unnest(%(keys)s::bytea[], %(numbers)s::int[]) WITH ORDINALITY AS x(key, number, place)
              GROUP BY key, number"""
)
LAST_OF_VERSIONS = """
    SELECT key, number FROM snapshot
     WHERE domain_id = %(domain_id)s AND (key, number) > (%(after)s, %(number)s)
     ORDER BY key, number OFFSET %(most)s - 1 LIMIT 1
"""
PAGES_IN_ORDER = f"""
    {PAGE} AND p.key > %(after)s AND p.version > 0 AND f.state NOT IN ('gone', 'moved', 'excluded')
     ORDER BY p.key LIMIT %(most)s
"""
PAGES_CHOSEN = f"{PAGE} AND p.key = ANY(%(keys)s)"
# A range of the feed with the pages of its changes; NULL for template, deferred, resumed and hint.
FEED_CHANGES = """
    SELECT f.position, e.key, e.version, e.change
      FROM (SELECT position, domain_id, number FROM feed
             WHERE position > %(after)s AND position <= %(until)s AND domain_id = %(domain_id)s
             ORDER BY position LIMIT %(most)s) f
      LEFT JOIN LATERAL (SELECT key, version, change FROM event e
                     WHERE e.domain_id = %(domain_id)s AND e.number = f.number
                       AND e.change IN ('added', 'changed', 'moved', 'gone', 'excluded', 'restored') OFFSET 0) e ON true
     ORDER BY f.position
"""
SHARED_DIGESTS = """
    SELECT body_digest FROM {} AND domain_id = %(domain_id)s GROUP BY body_digest HAVING count(*) > 1
"""
REMOVALS = frozenset({"gone", "moved", "excluded"})  # changes without a new version
VersionKey = tuple[PageKey, int]  # a page and the number of one of its versions
FIRST_VERSION: VersionKey = (PageKey(b""), 0)  # comes before all versions


@dataclass(frozen=True, slots=True)
class ExportedPage:
    """A page with its newest version, or with one of its versions. A removed page has its last version.

    status: the status of the last visit.  version_status: the status of the response with this version; None if it is
    not stored or bodies were not requested.  version_at: when the version was first seen.  seen_at: the last successful
    visit.  changed_at: the last change, or None.  importance: the mean of the domain is 1; None outside the OPIC
    economy.  content: the content text.  confidence: of its choice, 0 to 1.  line_ranges: its lines, see PageContent.
    metadata: see `read_metadata`.  digest: the digest of the body.  body: the response body or the rendered document;
    None if not requested or not stored.  headers: the stored headers of the response with this version, in order
    (core/http/stored_headers.py), without etag and last_modified.  is_of_all: this is one of all stored versions of the
    page; then importance is None.
    """

    key: PageKey = field(repr=False)
    url: Url
    state: State
    version: int
    status: int | None
    version_at: datetime | None
    seen_at: datetime | None
    changed_at: datetime | None
    title: str
    language: str
    content_type: str
    importance: float | None
    is_rendered: bool
    version_status: int | None
    etag: str | None
    last_modified: str | None
    headers: tuple[tuple[str, str], ...] = field(repr=False)
    digest: bytes | None = field(repr=False)
    content: str = field(repr=False)
    confidence: float
    line_ranges: list[int] = field(repr=False)
    metadata: dict[str, Any] = field(repr=False)
    body: bytes | None = field(default=None, repr=False)
    is_of_all: bool = False

    @property
    def is_available(self) -> bool:
        """Return whether the page can currently be fetched, as far as is known."""
        return self.version > 0 and self.state not in {State.GONE, State.MOVED, State.EXCLUDED}

    @property
    def has_content(self) -> bool:
        """Return whether to export its content: removed pages are exported only with all their versions."""
        return self.is_of_all or self.is_available


async def read_pages_to_export(
    db: Database, domain: Domain, *, after: PageKey, max_count: int, with_bodies: bool = False
) -> list[ExportedPage]:
    """Return the available pages of a domain by key. after: only pages after this key (keyset paging)."""
    values = {"domain_id": domain.id, "after": after, "most": max_count, "bodies": with_bodies}
    async with db.transaction() as connection:
        return await _read_pages(connection, PAGES_IN_ORDER, values)


async def read_versions_to_export(
    db: Database, domain: Domain, *, after: VersionKey, max_count: int, with_bodies: bool = False
) -> tuple[list[ExportedPage], VersionKey | None]:
    """Return versions of a domain's pages by key and number, and the key of the last one; None instead at the end.

    after: FIRST_VERSION, or the key returned by the last call (keyset paging).
    """
    key, number = after
    values = {"domain_id": domain.id, "after": key, "number": number, "most": max_count, "bodies": with_bodies}
    async with db.transaction() as connection:
        last = await fetch_row(connection, LAST_OF_VERSIONS, values)
        pages = await _read_pages(connection, VERSIONS_IN_ORDER, values)
    return pages, (PageKey(last[0]), last[1]) if last is not None else None


async def read_changes_to_export(
    db: Database,
    domain: Domain,
    *,
    after: int,
    until: int,
    max_count: int,
    with_bodies: bool = False,
    with_versions: bool = False,
) -> tuple[list[ExportedPage], int]:
    """Return the pages that changed between two cursors of the feed, and the cursor after them.

    Each page that was added, changed or removed is returned once. With `with_versions`, all new versions that are still
    stored are returned, then each removed page that is not restored, as version 0 without content.
    Raise CursorTooOld or CursorAhead (see `require_stored`).  max_count: the number of changes to read.
    """
    values = {"domain_id": domain.id, "after": after, "until": until, "most": max_count, "bodies": with_bodies}
    async with db.transaction() as connection:
        changes = await fetch_rows(connection, FEED_CHANGES, values)
        await require_stored(connection, domain.id, since=after)
        if with_versions:
            pages = await _read_new_versions(connection, changes, values)
        else:
            pages = await _read_chosen(connection, [key for _, key, _, _ in changes if key is not None], values)
    return pages, changes[-1][0] if changes else until


async def _read_new_versions(
    connection: Connection, changes: list[TupleRow], values: dict[str, Any]
) -> list[ExportedPage]:
    new_versions = [(key, number) for _, key, number, change in changes if key is not None and change not in REMOVALS]
    numbers = {"keys": [key for key, _ in new_versions], "numbers": [number for _, number in new_versions]}
    pages = await _read_pages(connection, VERSIONS_CHOSEN, values | numbers)
    removed_keys = [key for _, key, _, change in changes if change in REMOVALS]
    removed_pages = await _read_chosen(connection, removed_keys, values | {"bodies": False})
    texts: dict[str, Any] = dict.fromkeys(("title", "language", "content_type", "content"), "")
    gone = [page for page in removed_pages if not page.is_available]
    return pages + [replace(page, version=0, version_at=None, digest=None, **texts) for page in gone]


async def _read_chosen(connection: Connection, keys: list[PageKey], values: dict[str, Any]) -> list[ExportedPage]:
    """Return the pages with these keys, each once, in the order in which the keys are given."""
    order = {key: n for n, key in enumerate(dict.fromkeys(keys))}
    pages = await _read_pages(connection, PAGES_CHOSEN, values | {"keys": list(order)}) if order else []
    return sorted(pages, key=lambda page: order[page.key])


async def read_shared_digests(db: Database, domain: Domain, *, include_versions: bool = False) -> frozenset[bytes]:
    """Return the digests of bodies that several pages of a domain share.

    include_versions: also count bodies that several versions of pages share.
    """
    statement = SHARED_DIGESTS.format("snapshot WHERE is_stored" if include_versions else "page WHERE version > 0")
    return frozenset(digest for (digest,) in await fetch_rows(db, statement, {"domain_id": domain.id}))


async def _read_pages(connection: Connection, statement: str, values: dict[str, Any]) -> list[ExportedPage]:
    # With merge joins, each batch would read the texts and states of all pages from the first one of the domain on.
    await connection.execute(PREFER_KEY_LOOKUPS)
    pages = []
    for row in await fetch_dicts(connection, statement, values):
        stored = [row.pop(name) for name in ("encoding", "body_bytes", "data")]
        body = decompress_body(values["domain_id"], row["digest"], *stored) if stored[-1] is not None else None
        special = {"state": State(row["state"]), "headers": parse_headers(row["headers"]), "body": body}
        pages.append(ExportedPage(**row | special))
    return pages
