"""Pages as a record writes them: what is known of each, its due time, links and versions."""

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any

from crawler.core.change.change import Change
from crawler.core.freshness import Wanted, without_prior
from crawler.core.http import PageKey
from crawler.core.visit.lifecycle import BULK_REDIRECT
from crawler.core.visit.visit import State, Visit
from crawler.store.columns import clean, copy, to_signed
from crawler.store.database import Connection
from crawler.store.record import content
from crawler.store.record.opic import OpicBatch

# What a look may leave as it was comes as null.
PAGES = """
    UPDATE page p
       SET status = x.status, reason = x.reason, failures = x.failures, soft_errors = x.soft_errors,
           withheld_since = x.withheld_since,
           last_look_at = x.at, visits = p.visits + 1, evidence_a = x.evidence_a, evidence_b = x.evidence_b,
           signals = CASE WHEN x.good THEN '' ELSE p.signals END,
           amount_total = x.amount_total, amount_changes = x.amount_changes,
           moved_to = CASE WHEN x.good AND x.reason <> %(bulk_redirect)s THEN x.moved_to
                           ELSE coalesce(x.moved_to, p.moved_to) END,
           led_to = coalesce(x.led_to, p.led_to),  -- whom a crowd went to tells the next of it
           last_good_at = CASE WHEN x.good THEN x.at ELSE p.last_good_at END,
           missing_since = CASE WHEN x.good THEN NULL ELSE x.missing_since END,
           last_change_at = CASE WHEN x.changed THEN x.at ELSE p.last_change_at END,
           changes = p.changes + x.changed::int,
           announces = CASE WHEN x.changed AND NOT x.rereads
                            THEN p.announces + (x.announced - p.announces) / least(p.changes + 2, %(most)s)
                            ELSE p.announces END,
           etag = CASE WHEN x.renews THEN x.etag ELSE p.etag END,
           last_modified = CASE WHEN x.renews THEN x.last_modified ELSE p.last_modified END,
           received_bytes = coalesce(x.body_bytes, p.received_bytes),
           version = coalesce(x.version, p.version),
           body_digest = CASE WHEN x.rereads  -- what a change of scope had made us forget
                              THEN (SELECT s.body_digest FROM snapshot s
                                     WHERE s.domain_id = %(domain_id)s AND s.key = p.key AND s.number = p.version)
                              ELSE coalesce(x.body_digest, p.body_digest) END,
           text_digest = coalesce(x.text_digest, p.text_digest),
           main_digest = coalesce(x.main_digest, p.main_digest),
           shape_digest = coalesce(x.shape_digest, p.shape_digest),
           fingerprint = CASE WHEN x.version IS NULL THEN p.fingerprint ELSE x.fingerprint END,
           is_rendered = coalesce(x.is_rendered, p.is_rendered)
      FROM unnest(%(key)s::bytea[], %(at)s::timestamptz[], %(status)s::smallint[], %(reason)s::text[],
                  %(failures)s::smallint[], %(soft_errors)s::smallint[], %(withheld_since)s::timestamptz[],
                  %(evidence_a)s::float8[],
                  %(evidence_b)s::float8[], %(amount_total)s::float8[], %(amount_changes)s::float8[],
                  %(moved_to)s::bytea[], %(led_to)s::bytea[], %(good)s::bool[],
                  %(missing_since)s::timestamptz[], %(changed)s::bool[], %(announced)s::float8[], %(rereads)s::bool[],
                  %(renews)s::bool[],
                  %(etag)s::text[], %(last_modified)s::text[],
                  %(body_bytes)s::int[], %(version)s::int[], %(body_digest)s::bytea[], %(text_digest)s::bytea[],
                  %(main_digest)s::bytea[], %(shape_digest)s::bytea[], %(fingerprint)s::bigint[],
                  %(is_rendered)s::bool[])
        AS x(key, at, status, reason, failures, soft_errors, withheld_since, evidence_a, evidence_b, amount_total,
             amount_changes, moved_to, led_to, good, missing_since, changed,
             announced, rereads, renews, etag, last_modified, body_bytes, version, body_digest, text_digest,
             main_digest, shape_digest, fingerprint, is_rendered)
     WHERE p.domain_id = %(domain_id)s AND p.key = x.key
"""
FRONTIER = """
    UPDATE frontier f
       SET state = x.state, due_at = x.due_at, wanted = x.wanted,
           rank = CASE WHEN x.state = 'new' THEN f.rank ELSE 0 END
      FROM unnest(%(key)s::bytea[], %(state)s::text[], %(due_at)s::timestamptz[], %(wanted)s::smallint[])
        AS x(key, state, due_at, wanted)
     WHERE f.domain_id = %(domain_id)s AND f.key = x.key
"""
SHALLOWER = """
    UPDATE frontier f SET depth = x.depth
      FROM unnest(%(key)s::bytea[], %(depth)s::smallint[]) AS x(key, depth)
     WHERE f.domain_id = %(domain_id)s AND f.key = x.key AND f.depth > x.depth
"""
LINKS = """
    INSERT INTO page_links (domain_id, key, targets, external_domains, external_link_counts)
    SELECT %(domain_id)s, x.key, x.targets, string_to_array(x.external_domains, ' '),
           string_to_array(x.external_link_counts, ' ')::int[]
      FROM unnest(%(key)s::bytea[], %(targets)s::bytea[], %(external_domains)s::text[],
                  %(external_link_counts)s::text[])
        AS x(key, targets, external_domains, external_link_counts)
    ON CONFLICT (domain_id, key) DO UPDATE
       SET targets = excluded.targets, external_domains = excluded.external_domains,
           external_link_counts = excluded.external_link_counts
"""
SNAPSHOTS = """
    COPY snapshot (domain_id, key, number, at, title, language, content_type, text, body_digest, text_digest,
                   main_digest, fingerprint, distance_bits, is_rendered, headers) FROM STDIN (FORMAT BINARY)
"""
TO_RENDER = """
    UPDATE frontier SET due_at = least(due_at, %(at)s), wanted = %(wanted)s
     WHERE domain_id = %(domain_id)s AND key = ANY(%(keys)s::bytea[]) AND state = 'known' AND wanted NOT IN (1, 4, 5)
"""
CHANGES_REMEMBERED = 20  # of what a page announces, about; and one at first that announced nothing
FORGOTTEN = b""  # in place of a body's digest: read it again, whatever it is (inbox.py, MAKE_DUE)


async def write_pages(connection: Connection, domain_id: int, books: OpicBatch, visits: Sequence[Visit]) -> None:
    rows = [_page_row(visit, books) for visit in visits]
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    values = {"domain_id": domain_id, "bulk_redirect": BULK_REDIRECT, "most": CHANGES_REMEMBERED}
    await connection.execute(PAGES, columns | values, binary=True)
    await connection.execute(
        FRONTIER,
        {
            "domain_id": domain_id,
            "key": columns["key"],
            "state": [visit.state.value for visit in visits],
            "due_at": [None if visit.state is State.NEW else visit.due_at for visit in visits],
            "wanted": [visit.wants.value for visit in visits],
        },
    )


async def call_for_renders(connection: Connection, domain_id: int, keys: Collection[PageKey], *, at: datetime) -> None:
    """Make pages due that are stored without what their scripts write."""
    if keys:
        values = {"domain_id": domain_id, "keys": list(keys), "at": at, "wanted": Wanted.TO_RENDER.value}
        await connection.execute(TO_RENDER, values)


def _page_row(visit: Visit, books: OpicBatch) -> dict[str, Any]:
    heir = visit.moved_to.key if visit.moved_to else None
    version = visit.snapshot.version if visit.snapshot else None
    prior = visit.target.terms.prior
    evidence = [float(number) for number in without_prior(visit.belief.a, visit.belief.b, prior.a, prior.b)]
    return {
        "key": visit.target.key,
        "at": visit.at,
        "status": visit.status,
        "reason": clean(visit.reason),
        "failures": min(visit.failures, 32_000),
        "soft_errors": visit.soft_errors,
        "withheld_since": None if visit.is_good else visit.withheld_since,
        "evidence_a": evidence[0],
        "evidence_b": evidence[1],
        "amount_total": visit.amounts.total,
        "amount_changes": visit.amounts.changes,
        "moved_to": heir if heir in books.positions else None,  # out of scope or beyond the limits: it moved away
        "led_to": visit.led_to,
        "good": visit.is_good,
        "missing_since": visit.missing_since,
        "changed": visit.change is Change.CHANGED,
        "announced": books.announced.get(visit.target.key, 0.0),
        "rereads": visit.is_good and visit.links is not None and not version and _is_forgotten(visit),
        "renews": visit.validators is not None,
        "etag": clean(visit.validators.etag) if visit.validators else None,
        "last_modified": clean(visit.validators.last_modified) if visit.validators else None,
        "body_bytes": visit.body_bytes,
        "version": version.number if version else None,
        "body_digest": version.body_digest if version else None,
        "text_digest": version.text_digest if version else None,
        "main_digest": version.main_digest if version else None,
        "shape_digest": version.shape_digest if version else None,
        "fingerprint": to_signed(version.fingerprint) if version else None,
        "is_rendered": version.is_rendered if version else None,
    }


def _is_forgotten(visit: Visit) -> bool:
    return visit.target.version is not None and visit.target.version.body_digest == FORGOTTEN


async def write_links(connection: Connection, domain_id: int, books: OpicBatch, visits: Sequence[Visit]) -> None:
    changed = {
        visit.target.key: (visit.recipients or (), visit.external_links or ())
        for visit in visits
        if visit.links is not None
        and (visit.recipients or (), visit.external_links or ()) != (visit.target.outlinks, visit.target.external_links)
    }
    if changed:
        await connection.execute(
            LINKS,
            {
                "domain_id": domain_id,
                "key": list(changed),
                "targets": [b"".join(keys) for keys, _ in changed.values()],
                # An array of arrays would have to be rectangular; an authority holds no space.
                "external_domains": [" ".join(name for name, _ in e) for _, e in changed.values()],
                "external_link_counts": [" ".join(str(many) for _, many in e) for _, e in changed.values()],
            },
            binary=True,
        )
    nearer = books.nearer
    if nearer:
        depths = [books.positions[key].depth for key in nearer]
        await connection.execute(SHALLOWER, {"domain_id": domain_id, "key": nearer, "depth": depths})


async def write_versions(connection: Connection, domain_id: int, visits: Sequence[Visit]) -> None:
    fresh = [(visit, visit.snapshot) for visit in visits if visit.snapshot is not None]
    if not fresh:
        return
    await content.put(connection, domain_id, {s.version.body_digest: s.body for _, s in fresh})
    await copy(
        connection,
        SNAPSHOTS,
        ["int8", "bytea", "int4", "timestamptz", *["text"] * 4, *["bytea"] * 3, "int8", "int2", "bool", "text"],
        (
            (
                domain_id,
                visit.target.key,
                shot.version.number,
                visit.at,
                clean(shot.title),
                clean(shot.language),
                clean(shot.content_type),
                clean(shot.text),
                shot.version.body_digest,
                shot.version.text_digest,
                shot.version.main_digest,
                to_signed(shot.version.fingerprint),
                shot.distance_bits,
                shot.version.is_rendered,
                clean(shot.headers),
            )
            for visit, shot in fresh
        ),
    )
