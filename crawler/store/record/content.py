"""Content-addressed storage of bodies, once per domain and digest."""

import asyncio
import logging
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from msgspec import Struct

from crawler.store import compression
from crawler.store.database import Connection, Database
from crawler.store.rows import copy_rows, fetch_row, fetch_rows

log = logging.getLogger("recrawl.content")

MIN_COMPRESSED_BYTES = 256  # shorter bodies are not compressed

STORED_DIGESTS = "SELECT digest FROM content WHERE domain_id = %s AND digest = ANY(%b)"
READ_BODY = "SELECT encoding, body_bytes, data FROM content WHERE domain_id = %s AND digest = %s"
CONTENT_COLUMNS = "domain_id int8, digest bytea, encoding text, body_bytes int4, data bytea"

VERSION = """
    SELECT s.body_digest, s.content_type, s.at,
           EXISTS (SELECT FROM snapshot e
                    WHERE e.domain_id = %(domain_id)s AND e.key = %(key)s AND e.number < %(number)s
                      AND e.text_digest = %(text_digest)s)
      FROM snapshot s
     WHERE s.domain_id = %(domain_id)s AND s.key = %(key)s AND s.number = %(number)s
"""


async def store_bodies(connection: Connection, domain_id: int, bodies: Mapping[bytes, bytes]) -> None:
    """Store bodies by digest. Bodies that exist already are neither compressed nor sent.

    The transaction must have locked the domain's row, so that no other process adds bodies: this allows COPY, which
    takes a tenth of the time of an INSERT of an array. Compression runs in a thread.
    """
    if not bodies:
        return
    stored = await fetch_rows(connection, STORED_DIGESTS, (domain_id, list(bodies)), binary=True)
    new_bodies = {digest: bodies[digest] for digest in bodies.keys() - {digest for (digest,) in stored}}
    if not new_bodies:
        return
    rows = await asyncio.to_thread(_build_content_rows, domain_id, new_bodies)
    await copy_rows(connection, "content", CONTENT_COLUMNS, rows)


def _build_content_rows(domain_id: int, bodies: Mapping[bytes, bytes]) -> list[tuple[Any, ...]]:
    """Return the rows of bodies, compressed unless they are short."""
    rows = []
    for digest, body in bodies.items():
        is_long = len(body) >= MIN_COMPRESSED_BYTES
        encoding, data = ("zstd", compression.compress(body)) if is_long else ("identity", body)
        rows.append((domain_id, digest, encoding, len(body), data))
    return rows


class StoredBody(Struct, frozen=True):
    """The body of a version. at: when the version was first seen.  has_returned: see load_stored_body."""

    body: bytes
    content_type: str
    at: datetime
    has_returned: bool


async def load_stored_body(
    db: Database, domain_id: int, key: bytes, number: int, *, text_digest: bytes
) -> StoredBody | None:
    """Return the body of version `number` of a page; None if it is not stored.

    text_digest: the digest of another text of the page; `has_returned` is whether a version before `number` had it.
    """
    async with db.transaction() as connection:
        values = {"domain_id": domain_id, "key": key, "number": number, "text_digest": text_digest}
        row = await fetch_row(connection, VERSION, values)
        if row is None:
            return None
        body = await read_body(connection, domain_id, row[0])
        return None if body is None else StoredBody(body, row[1], row[2], row[3])


async def read_body(connection: Connection, domain_id: int, digest: bytes) -> bytes | None:
    """Return the body with a digest, or None if it is not stored or cannot be decompressed (this is logged)."""
    row = await fetch_row(connection, READ_BODY, (domain_id, digest))
    return None if row is None else decompress_body(domain_id, digest, *row)


def decompress_body(domain_id: int, digest: bytes, encoding: str, size: int, data: bytes) -> bytes | None:
    """Return the decompressed body, or None if it cannot be decompressed (this is logged)."""
    if encoding != "zstd":
        return data
    try:
        return compression.decompress(data, max_bytes=size)
    except compression.ZstdError as error:  # treated like a body that is not stored, so the crawl continues
        facts = {"domain": domain_id, "digest": digest.hex(), "error": str(error)}
        log.warning("content.broken", extra={"content": facts})
        return None
