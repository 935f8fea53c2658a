"""What renders of each domain's pages have brought, kept from lease to lease as the soft errors are."""

import json
from dataclasses import astuple
from typing import Any

import zstandard

from crawler.core.http import PageKey
from crawler.core.rendering.memory import NO_RENDERS, RenderMemory, TemplateRenders
from crawler.store.database import Connection

FORM = 2  # of what is stored; another one is learnt anew
MOST_BYTES = 1 << 20  # unpacked
LEVEL = 3

PUT = """
    INSERT INTO domain_renders (domain_id, memory) VALUES (%s, %s)
    ON CONFLICT (domain_id) DO UPDATE SET memory = excluded.memory
"""


async def put_renders(connection: Connection, domain_id: int, renders: RenderMemory) -> None:
    """Store the memory, within a transaction of the caller's."""
    await connection.execute(PUT, (domain_id, pack_renders(renders)))


def pack_renders(renders: RenderMemory) -> bytes:
    """The memory in its stored form."""
    plain = {
        "form": FORM,
        "templates": {name: list(astuple(each)) for name, each in renders.templates.items()},
        "additions": list(renders.additions.items()),
        "raw": [(key.hex(), name) for key, name in renders.raw.items()],
        "counts": [renders.pages, renders.gained, renders.in_vain],
    }
    return zstandard.ZstdCompressor(level=LEVEL).compress(json.dumps(plain, separators=(",", ":")).encode())


def unpack_renders(data: bytes) -> RenderMemory:
    """The memory of its stored form; an empty one where the form is an older one, or too long."""
    if zstandard.frame_content_size(data) > MOST_BYTES:
        return NO_RENDERS
    plain: dict[str, Any] = json.loads(zstandard.ZstdDecompressor().decompress(data, max_output_size=MOST_BYTES))
    if plain.get("form") != FORM:
        return NO_RENDERS
    pages, gained, in_vain = plain["counts"]
    return RenderMemory(
        templates={name: TemplateRenders(*numbers) for name, numbers in plain["templates"].items()},
        additions=dict(plain["additions"]),
        raw={PageKey(bytes.fromhex(key)): name for key, name in plain["raw"]},
        pages=pages,
        gained=gained,
        in_vain=in_vain,
    )
