"""Writing the pages of a batch: their columns, due times, links and versions."""

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any

from psycopg.types.json import Jsonb

from crawler.core.change.change import Change
from crawler.core.freshness.prior import subtract_prior
from crawler.core.freshness.visit_terms import RequestReason
from crawler.core.http.urls import PageKey
from crawler.core.page.snapshot import Version
from crawler.core.visit.state import BULK_REDIRECT, State
from crawler.core.visit.visit import Visit
from crawler.store.database import Connection
from crawler.store.record import content
from crawler.store.record.opic import OpicBatch
from crawler.store.record.text_parts import find_parts
from crawler.store.rows import (
    build_unnest,
    build_upsert_set,
    clean_text,
    copy_rows,
    encode_fingerprint,
    split_into_columns,
)

PAGE_COLUMNS = """
    key bytea, at timestamptz, status smallint, reason text, failures smallint, soft_errors smallint,
    withheld_since timestamptz, rate_a float8, rate_b float8, magnitude_total float8, magnitude_changes float8,
    moved_to bytea, led_to bytea, good bool, missing_since timestamptz, changed bool, announced float8, rereads bool,
    renews bool, etag text, last_modified text, body_bytes int, number int, body_digest bytea, text_digest bytea,
    main_digest bytea, shape_digest bytea, fingerprint bigint, is_rendered bool
"""
# Fields of a visit with the same name.
COPIED_FIELDS = ("at", "status", "soft_errors", "led_to", "missing_since", "body_bytes")
VERSION_COLUMNS = list(Version.__struct_fields__)
# The columns that a visit writes. x: the values of the visit; p: the row before. Where coalesce is used, a null
# parameter leaves the column unchanged.
WRITTEN_COLUMNS = {
    **{name: f"x.{name}" for name in ("status", "reason", "failures", "soft_errors", "withheld_since")},
    **{name: f"x.{name}" for name in ("rate_a", "rate_b", "magnitude_total", "magnitude_changes")},
    **{name: f"coalesce(x.{name}, p.{name})" for name in ("text_digest", "main_digest", "shape_digest", "is_rendered")},
    **{name: f"CASE WHEN x.renews THEN x.{name} ELSE p.{name} END" for name in ("etag", "last_modified")},
    "last_visit_at": "x.at",
    "visits": "p.visits + 1",
    "signals": "CASE WHEN x.good THEN '' ELSE p.signals END",
    "moved_to": "CASE WHEN x.good AND x.reason <> %(bulk_redirect)s THEN x.moved_to "
    "ELSE coalesce(x.moved_to, p.moved_to) END",
    "led_to": "coalesce(x.led_to, p.led_to)",  # the target of its last redirect; bulk redirects are found by it
    "last_good_at": "CASE WHEN x.good THEN x.at ELSE p.last_good_at END",
    "missing_since": "CASE WHEN x.good THEN NULL ELSE x.missing_since END",
    "last_change_at": "CASE WHEN x.changed THEN x.at ELSE p.last_change_at END",
    "changes": "p.changes + x.changed::int",
    "announces": "CASE WHEN x.changed AND NOT x.rereads "
    "THEN p.announces + (x.announced - p.announces) / least(p.changes + 2, %(most)s) ELSE p.announces END",
    "received_bytes": "coalesce(x.body_bytes, p.received_bytes)",
    "version": "coalesce(x.number, p.version)",
    # rereads: replace the digest that was cleared for a full recrawl.
    "body_digest": "CASE WHEN x.rereads THEN (SELECT s.body_digest FROM snapshot s "
    "WHERE s.domain_id = %(domain_id)s AND s.key = p.key AND s.number = p.version) "
    "ELSE coalesce(x.body_digest, p.body_digest) END",
    "fingerprint": "CASE WHEN x.number IS NULL THEN p.fingerprint ELSE x.fingerprint END",
}
# All rows exist. Upserts find each by its key; for a join, Postgres would compare all keys with all pages of the domain
# until it has statistics of the tables. psycopg parses statements of more than 4,096 characters at each execution.
WRITE_PAGES = f"""
    INSERT INTO page (domain_id, key, url, first_seen_at, {", ".join(WRITTEN_COLUMNS)})
    SELECT p.domain_id, p.key, p.url, p.first_seen_at, {", ".join(WRITTEN_COLUMNS.values())}
      FROM {build_unnest(PAGE_COLUMNS)}
     CROSS JOIN LATERAL (SELECT * FROM page WHERE domain_id = %(domain_id)s AND key = x.key OFFSET 0) p
    ON CONFLICT (domain_id, key) DO UPDATE SET {build_upsert_set(WRITTEN_COLUMNS)}
"""  # noqa: S608  only our own columns are inserted
WRITE_FRONTIER = f"""
    INSERT INTO frontier AS f (domain_id, key, state, due_at, request_reason)
    SELECT %(domain_id)s, x.* FROM {build_unnest("key bytea, state text, due_at timestamptz, request_reason smallint")}
    ON CONFLICT (domain_id, key) DO UPDATE
       SET {build_upsert_set(("state", "due_at", "request_reason"))},
           rank = CASE WHEN excluded.state = 'unfetched' THEN f.rank ELSE 0 END
"""  # noqa: S608  likewise
LOWER_DEPTHS = f"""
    INSERT INTO frontier AS f (domain_id, key, state, depth)
    SELECT %(domain_id)s, x.key, 'unfetched', x.depth FROM {build_unnest("key bytea, depth smallint")}
    ON CONFLICT (domain_id, key) DO UPDATE SET depth = excluded.depth WHERE f.depth > excluded.depth
"""  # noqa: S608  likewise
LINK_COLUMNS = "key bytea, targets bytea, external_domains text, external_link_counts text"
WRITE_LINKS = f"""
    INSERT INTO page_links (domain_id, key, targets, external_domains, external_link_counts)
    SELECT %(domain_id)s, x.key, x.targets, string_to_array(x.external_domains, ' '),
           string_to_array(x.external_link_counts, ' ')::int[]
      FROM {build_unnest(LINK_COLUMNS)}
    ON CONFLICT (domain_id, key) DO UPDATE
       SET {build_upsert_set(("targets", "external_domains", "external_link_counts"))}
"""  # noqa: S608  likewise
SNAPSHOT_COLUMNS = """
    domain_id int8, key bytea, number int4, at timestamptz, title text, language text, content_type text, text text,
    content text, content_ranges int4[], confidence float8, line_ranges int4[], meta jsonb, body_digest bytea,
    text_digest bytea, main_digest bytea, fingerprint int8, distance_bits int2, is_rendered bool, headers text
"""
REQUEST_RENDERS = """
    UPDATE frontier SET due_at = least(due_at, %(at)s), request_reason = %(request_reason)s
     WHERE domain_id = %(domain_id)s AND key = ANY(%(keys)s::bytea[]) AND state = 'fetched'
       AND request_reason NOT IN (1, 4, 5)
"""
# Number of changes over which page.announces is averaged; it starts from one assumed change without new pages.
CHANGES_REMEMBERED = 20
# Replaces the digest of the body to request a full recrawl (inbox.py, MAKE_DUE): the page is parsed even if unchanged.
FORGOTTEN_DIGEST = b""


async def write_pages(connection: Connection, domain_id: int, opic_batch: OpicBatch, visits: Sequence[Visit]) -> None:
    """Update the rows of the visited pages in tables page and frontier."""
    rows = [_build_page_row(visit, opic_batch) for visit in visits]
    columns: dict[str, Any] = {name: [row[name] for row in rows] for name in rows[0]}
    columns |= {"domain_id": domain_id, "bulk_redirect": BULK_REDIRECT, "most": CHANGES_REMEMBERED}
    await connection.execute(WRITE_PAGES, columns, binary=True)
    await connection.execute(WRITE_FRONTIER, columns)


async def request_renders(connection: Connection, domain_id: int, keys: Collection[PageKey], *, at: datetime) -> None:
    """Make pages due that are stored without the content added by their scripts."""
    if keys:
        values = {"domain_id": domain_id, "keys": list(keys), "at": at, "request_reason": RequestReason.TO_RENDER.value}
        await connection.execute(REQUEST_RENDERS, values)


def _build_page_row(visit: Visit, opic_batch: OpicBatch) -> dict[str, Any]:
    """Return the values for WRITE_PAGES and WRITE_FRONTIER of a visited page."""
    successor = visit.moved_to.key if visit.moved_to else None
    version = visit.snapshot.version if visit.snapshot else None
    prior = visit.target.terms.prior
    before, validators = visit.target.version, visit.validators
    is_read_again = visit.is_good and visit.links is not None and not version
    rates = subtract_prior(visit.rate_estimate.a, visit.rate_estimate.b, prior.a, prior.b)
    return {
        "key": visit.target.key,
        **{name: getattr(visit, name) for name in COPIED_FIELDS},
        "reason": clean_text(visit.reason),
        "failures": min(visit.failures, 32_000),
        "withheld_since": None if visit.is_good else visit.withheld_since,
        "rate_a": float(rates[0]),
        "rate_b": float(rates[1]),
        "magnitude_total": visit.magnitudes.total,
        "magnitude_changes": visit.magnitudes.changes,
        # None if the target is out of scope or was not admitted.
        "moved_to": successor if successor in opic_batch.positions else None,
        "good": visit.is_good,
        "changed": visit.change is Change.CHANGED,
        "announced": opic_batch.announced.get(visit.target.key, 0.0),
        "rereads": is_read_again and before is not None and before.body_digest == FORGOTTEN_DIGEST,
        "renews": validators is not None,
        "etag": clean_text(validators.etag) if validators else None,
        "last_modified": clean_text(validators.last_modified) if validators else None,
        "state": visit.state.value,
        "due_at": None if visit.state is State.UNFETCHED else visit.due_at,
        "request_reason": visit.next_request.value,
        **{name: getattr(version, name) if version else None for name in VERSION_COLUMNS},
        "fingerprint": encode_fingerprint(version.fingerprint) if version else None,
    }


async def write_links(connection: Connection, domain_id: int, opic_batch: OpicBatch, visits: Sequence[Visit]) -> None:
    """Write the links of pages whose links have changed, and the depths that links have lowered."""
    read = (visit for visit in visits if visit.links is not None)
    found = ((visit.target, (visit.recipients or (), visit.external_links or ())) for visit in read)
    changed = {target.key: links for target, links in found if links != (target.outlinks, target.external_links)}
    if changed:
        # Joined texts, because an array of arrays must be rectangular. Authorities contain no spaces.
        rows = [
            (key, b"".join(keys), " ".join(name for name, _ in others), " ".join(str(count) for _, count in others))
            for key, (keys, others) in changed.items()
        ]
        columns = split_into_columns(LINK_COLUMNS, rows)
        await connection.execute(WRITE_LINKS, columns | {"domain_id": domain_id}, binary=True)
    nearer = {key: position.depth for key, position in opic_batch.positions.items() if position.is_nearer}
    if nearer:
        values = {"domain_id": domain_id, "key": list(nearer), "depth": list(nearer.values())}
        await connection.execute(LOWER_DEPTHS, values)


async def write_versions(connection: Connection, domain_id: int, visits: Sequence[Visit]) -> None:
    """Write the new versions of the visited pages with their bodies."""
    new_versions = [(visit, visit.snapshot) for visit in visits if visit.snapshot is not None]
    if not new_versions:
        return
    await content.store_bodies(connection, domain_id, {s.version.body_digest: s.body for _, s in new_versions})
    rows: list[tuple[Any, ...]] = []
    for visit, snapshot in new_versions:
        version = snapshot.version
        texts = map(clean_text, (snapshot.title, snapshot.language, snapshot.content_type, snapshot.text))
        digests = (version.body_digest, version.text_digest, version.main_digest)
        others = (encode_fingerprint(version.fingerprint), snapshot.distance_bits, version.is_rendered)
        reading = (snapshot.confidence, list(snapshot.line_ranges), Jsonb(snapshot.metadata))
        choice = _encode_content(*map(clean_text, (snapshot.text, snapshot.reading)))
        facts = (domain_id, visit.target.key, version.number, visit.at, *texts, *choice, *reading, *digests, *others)
        rows.append((*facts, clean_text(snapshot.headers)))
    await copy_rows(connection, "snapshot", SNAPSHOT_COLUMNS, rows)


def _encode_content(text: str, chosen: str) -> tuple[str | None, list[int]]:
    """Return the columns content and content_ranges for a content text. text: the whole text."""
    if chosen == text:
        return None, []
    ranges = find_parts(text.encode(), chosen.encode())
    return (None, ranges) if ranges else (chosen, [])
