"""The soft errors that each domain is known for, kept from lease to lease.

They can be learnt again, as masks can. So they are written when they have changed, and a crash loses at most what one
batch taught.
"""

import json
from datetime import datetime, timedelta
from typing import Any

import zstandard

from crawler.core.change.mask import NO_MASK, NoiseMask
from crawler.core.rendering import NO_RENDERS, RenderMemory
from crawler.core.soft_errors import NO_SOFT_ERRORS, SharedText, SoftErrorMemory
from crawler.store.database import Connection, Database
from crawler.store.learned.mask import unpack_mask
from crawler.store.learned.renders import unpack_renders

FORM = 3  # of what is stored; another one is learnt anew
MOST_BYTES = 1 << 20  # unpacked
LEVEL = 3

GET = """
    SELECT (SELECT mask FROM domain_mask WHERE domain_id = %(domain_id)s),
           (SELECT memory FROM domain_soft_errors WHERE domain_id = %(domain_id)s),
           (SELECT memory FROM domain_renders WHERE domain_id = %(domain_id)s)
"""
PUT = """
    INSERT INTO domain_soft_errors (domain_id, memory) VALUES (%s, %s)
    ON CONFLICT (domain_id) DO UPDATE SET memory = excluded.memory
"""


async def learnt_of(db: Database, domain_id: int) -> tuple[NoiseMask, SoftErrorMemory, RenderMemory]:
    """All that looks have taught of a domain: its noise mask, its soft errors, and what a browser brought."""
    async with db.transaction() as connection:
        row = await (await connection.execute(GET, {"domain_id": domain_id})).fetchone()
    assert row is not None
    mask, soft_errors, renders = row
    return (
        NO_MASK if mask is None else unpack_mask(mask),
        NO_SOFT_ERRORS if soft_errors is None else unpack_soft_errors(soft_errors),
        NO_RENDERS if renders is None else unpack_renders(renders),
    )


async def put_soft_errors(connection: Connection, domain_id: int, soft_errors: SoftErrorMemory) -> None:
    """Store the memory, within a transaction of the caller's."""
    await connection.execute(PUT, (domain_id, pack_soft_errors(soft_errors)))


def pack_soft_errors(soft_errors: SoftErrorMemory) -> bytes:
    """The memory in its stored form."""
    plain = {
        "form": FORM,
        "shared_texts": [
            [sorted(seen.sketch), [before.hex() for before in seen.befores], seen.last_at.isoformat()]
            for seen in soft_errors.shared_texts
        ],
        "absent": sorted(soft_errors.absent),
        "answered_at": soft_errors.answered_at and soft_errors.answered_at.isoformat(),
        "front": sorted(soft_errors.front),
        "is_front": soft_errors.is_front,
        "probed_at": soft_errors.probed_at and soft_errors.probed_at.isoformat(),
        "wait_s": soft_errors.wait.total_seconds(),
        "good": soft_errors.good,
        "replaced": sorted(soft_errors.replaced),
    }
    return zstandard.ZstdCompressor(level=LEVEL).compress(json.dumps(plain, separators=(",", ":")).encode())


def unpack_soft_errors(data: bytes) -> SoftErrorMemory:
    """The memory of its stored form; an empty one where the form is an older one, or too long."""
    if zstandard.frame_content_size(data) > MOST_BYTES:
        return NO_SOFT_ERRORS
    plain: dict[str, Any] = json.loads(zstandard.ZstdDecompressor().decompress(data, max_output_size=MOST_BYTES))
    if plain.get("form") != FORM:
        return NO_SOFT_ERRORS
    return SoftErrorMemory(
        shared_texts=tuple(
            SharedText(frozenset(words), tuple(bytes.fromhex(before) for before in befores), datetime.fromisoformat(at))
            for words, befores, at in plain["shared_texts"]
        ),
        absent=frozenset(plain["absent"]),
        answered_at=datetime.fromisoformat(plain["answered_at"]) if plain["answered_at"] else None,
        front=frozenset(plain["front"]),
        is_front=plain["is_front"],
        probed_at=datetime.fromisoformat(plain["probed_at"]) if plain["probed_at"] else None,
        wait=timedelta(seconds=plain["wait_s"]),
        good=plain["good"],
        replaced=frozenset(plain.get("replaced", ())),
    )
