"""Bodies, addressed by their digest, once per domain. Two functions, so that an object store can take their place."""

from collections.abc import Mapping

import zstandard

from crawler.store.database import Connection

SMALLEST_COMPRESSED = 256  # bytes; below, the frame outweighs the gain
LEVEL = 3

PUT = """
    INSERT INTO content (domain_id, digest, encoding, body_bytes, data)
    SELECT %(domain_id)s, *
      FROM unnest(%(digests)s::bytea[], %(encodings)s::text[], %(sizes)s::int[], %(data)s::bytea[])
    ON CONFLICT DO NOTHING
"""


async def put(connection: Connection, domain_id: int, bodies: Mapping[bytes, bytes]) -> None:
    """Keep bodies by their digests; one that is there already costs nothing."""
    if not bodies:
        return
    compressor = zstandard.ZstdCompressor(level=LEVEL)
    packed = [
        ("zstd", compressor.compress(body)) if len(body) >= SMALLEST_COMPRESSED else ("identity", body)
        for body in bodies.values()
    ]
    await connection.execute(
        PUT,
        {
            "domain_id": domain_id,
            "digests": list(bodies),
            "encodings": [encoding for encoding, _ in packed],
            "sizes": [len(body) for body in bodies.values()],
            "data": [data for _, data in packed],
        },
        binary=True,
    )


async def get(connection: Connection, domain_id: int, digest: bytes) -> bytes | None:
    """The body of that digest, or None if it is not kept (any more)."""
    cursor = await connection.execute(
        "SELECT encoding, body_bytes, data FROM content WHERE domain_id = %s AND digest = %s", (domain_id, digest)
    )
    row = await cursor.fetchone()
    if row is None:
        return None
    encoding, size, data = row
    return zstandard.ZstdDecompressor().decompress(data, max_output_size=max(size, 1)) if encoding == "zstd" else data
