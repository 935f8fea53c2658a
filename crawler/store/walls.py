"""What each domain shows in place of its pages, kept from lease to lease.

As with masks, it can be learnt again: it is written when it has changed, and a crash loses at most one batch's part.
"""

import json
from datetime import datetime, timedelta
from typing import Any

import zstandard

from crawler.core.domain import Lease
from crawler.core.walls import NO_WALLS, Sighting, Walls
from crawler.store.database import Database

FORM = 1  # of what is stored; another one is learnt anew
MOST_BYTES = 1 << 20  # unpacked
LEVEL = 3

GET = "SELECT walls FROM domain_walls WHERE domain_id = %s"
PUT = """
    INSERT INTO domain_walls (domain_id, walls)
    SELECT domain_id, %(walls)s FROM domain_state WHERE domain_id = %(domain_id)s AND lease_token = %(token)s
    ON CONFLICT (domain_id) DO UPDATE SET walls = excluded.walls
"""


async def walls_of(db: Database, domain_id: int) -> Walls:
    """What is known of a domain; nothing at first."""
    async with db.transaction() as connection:
        row = await (await connection.execute(GET, (domain_id,))).fetchone()
    return NO_WALLS if row is None else unpack(row[0])


async def put(db: Database, lease: Lease, walls: Walls) -> None:
    """Keep it, as long as the lease is held."""
    async with db.transaction() as connection:
        await connection.execute(PUT, {"domain_id": lease.domain.id, "token": lease.token, "walls": pack(walls)})


def pack(walls: Walls) -> bytes:
    """What is known as it is stored."""
    plain = {
        "form": FORM,
        "sightings": [
            [sorted(seen.sketch), [before.hex() for before in seen.befores], seen.last_at.isoformat()]
            for seen in walls.sightings
        ],
        "absent": sorted(walls.absent),
        "is_told": walls.is_told,
        "front": sorted(walls.front),
        "is_front": walls.is_front,
        "asked_at": walls.asked_at and walls.asked_at.isoformat(),
        "wait_s": walls.wait.total_seconds(),
        "good": walls.good,
    }
    return zstandard.ZstdCompressor(level=LEVEL).compress(json.dumps(plain, separators=(",", ":")).encode())


def unpack(data: bytes) -> Walls:
    """The same the other way round; nothing is known where it was stored in another form."""
    plain: dict[str, Any] = json.loads(zstandard.ZstdDecompressor().decompress(data, max_output_size=MOST_BYTES))
    if plain.get("form") != FORM:
        return NO_WALLS
    return Walls(
        sightings=tuple(
            Sighting(frozenset(words), tuple(bytes.fromhex(before) for before in befores), datetime.fromisoformat(at))
            for words, befores, at in plain["sightings"]
        ),
        absent=frozenset(plain["absent"]),
        is_told=plain["is_told"],
        front=frozenset(plain["front"]),
        is_front=plain["is_front"],
        asked_at=datetime.fromisoformat(plain["asked_at"]) if plain["asked_at"] else None,
        wait=timedelta(seconds=plain["wait_s"]),
        good=plain["good"],
    )
