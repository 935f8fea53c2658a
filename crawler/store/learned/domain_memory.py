"""What visits have taught about a domain, kept between leases: its noise mask, soft errors, renders and novelty.

All of it can be learned again, so memories in an older format are ignored. They are written when they change; a crash
loses at most what the last batch taught. A memory is stored as compressed MessagePack. Novelty, the hashes of the texts
and URLs of new pages, is stored uncompressed.
"""

import json
from array import array
from datetime import datetime
from struct import Struct as Layout
from typing import Generic, TypeVar

from msgspec import DecodeError, Raw, Struct, msgpack
from msgspec.structs import replace

from crawler.core.change.mask import NO_MASK, NoiseMask
from crawler.core.noise.noise import MAX_CHARS, trim_volatile
from crawler.core.novelty import NoveltyEvidence, NoveltyMemory, SeenHashes
from crawler.core.rendering.memory import NO_RENDERS, RenderMemory
from crawler.core.soft_errors import NO_SOFT_ERRORS, SoftErrorMemory
from crawler.store import compression
from crawler.store.database import Connection, Database
from crawler.store.rows import fetch_rows

WRITE_MEMORY = """
    INSERT INTO domain_memory (domain_id, kind, memory) VALUES (%s, %s, %s)
    ON CONFLICT (domain_id, kind) DO UPDATE SET memory = excluded.memory
"""
READ_MEMORIES = "SELECT kind, memory FROM domain_memory WHERE domain_id = %s AND kind = ANY(%s)"
Memory = TypeVar("Memory")
ENCODER, HEAD = msgpack.Encoder(), msgpack.Decoder(tuple[int, Raw])
NOVELTY_FORMAT = 1  # memories in other formats are learned again
NOVELTY_HEADER = Layout("<7I")  # the format, and the number of hashes in each generation


async def load_memories(db: Database, domain_id: int) -> tuple[NoiseMask, SoftErrorMemory, RenderMemory]:
    """Return the memories of a domain: its noise mask, its soft errors, and the results of rendering."""
    kinds = ["mask", "soft_errors", "renders"]
    stored: dict[str, bytes] = dict(await fetch_rows(db, READ_MEMORIES, (domain_id, kinds)))
    mask, soft_errors, renders = (stored.get(kind) for kind in kinds)
    return MASK.unpack(mask), SOFT_ERRORS.unpack(soft_errors), RENDERS.unpack(renders)


async def read_mask(db: Database, domain_id: int) -> NoiseMask:
    """Return the noise mask of a domain, or an empty one."""
    stored: dict[str, bytes] = dict(await fetch_rows(db, READ_MEMORIES, (domain_id, ["mask"])))
    return MASK.unpack(stored.get("mask"))


async def read_novelty_memory(connection: Connection, domain_id: int) -> NoveltyMemory:
    """Return the novelty memory of a domain."""
    stored: dict[str, bytes] = dict(await fetch_rows(connection, READ_MEMORIES, (domain_id, ["novelty"]), binary=True))
    return unpack_novelty(stored["novelty"]) if stored else NoveltyMemory()


async def write_memory(
    connection: Connection, domain_id: int, memory: NoiseMask | SoftErrorMemory | RenderMemory | NoveltyMemory
) -> None:
    """Replace a memory of a domain, within the caller's transaction."""
    match memory:
        case NoiseMask():
            kind, packed = "mask", pack_mask(memory)
        case SoftErrorMemory():
            kind, packed = "soft_errors", SOFT_ERRORS.pack(memory)
        case RenderMemory():
            kind, packed = "renders", RENDERS.pack(memory)
        case NoveltyMemory():
            kind, packed = "novelty", pack_novelty(memory)
    await connection.execute(WRITE_MEMORY, (domain_id, kind, packed), binary=True)


def pack_novelty(memory: NoveltyMemory) -> bytes:
    """Return the memory in its stored form."""
    seen = (memory.texts, memory.queued_urls, memory.fetched_urls)
    hashes = [array("I", generation) for each in seen for generation in (each.newer, each.older)]
    parameters = {name: [evidence.visits, evidence.novelty_sum] for name, evidence in memory.parameters.items()}
    next_time = memory.next_time and memory.next_time.isoformat()
    rest = {"next": next_time, "queries": memory.has_queries, "parameters": parameters}
    head = NOVELTY_HEADER.pack(NOVELTY_FORMAT, *map(len, hashes))
    return b"".join([head, *(each.tobytes() for each in hashes), json.dumps(rest, separators=(",", ":")).encode()])


def unpack_novelty(data: bytes) -> NoveltyMemory:
    """Return the memory from its stored form, or an empty one if this has another format."""
    format_number, *lengths = NOVELTY_HEADER.unpack_from(data)
    if format_number != NOVELTY_FORMAT:
        return NoveltyMemory()
    at = NOVELTY_HEADER.size
    sets: list[set[int]] = []
    for length in lengths:
        sets.append(set(array("I", data[at : at + 4 * length])))
        at += 4 * length
    rest = json.loads(data[at:])
    texts, queued_urls, fetched_urls = map(SeenHashes, sets[::2], sets[1::2])  # newer and older ones alternate
    return NoveltyMemory(
        *(texts, queued_urls, fetched_urls),
        parameters={name: NoveltyEvidence(visits, novelty) for name, (visits, novelty) in rest["parameters"].items()},
        next_time=rest["next"] and datetime.fromisoformat(rest["next"]),
        has_queries=rest["queries"],
    )


class MemoryFormat(Struct, Generic[Memory], frozen=True):
    """The stored format of a memory.

    empty: the memory of a new domain.  number: of the format; stored memories with another number are ignored.
    max_bytes: the maximum size, uncompressed.
    """

    empty: Memory
    number: int
    max_bytes: int

    def encode(self, memory: Memory) -> bytes:
        """Return the memory in its stored form, uncompressed."""
        return ENCODER.encode((self.number, memory))

    def pack(self, memory: Memory) -> bytes:
        """Return the memory as it is stored."""
        return compression.compress(self.encode(memory))

    def unpack(self, data: bytes | None) -> Memory:
        """Return a stored memory, or the empty one if there is none, or if it is too large or in another format."""
        if data is None or compression.read_size(data) > self.max_bytes:
            return self.empty
        try:
            number, memory = HEAD.decode(compression.decompress(data, max_bytes=self.max_bytes))
            return msgpack.decode(memory, type=type(self.empty)) if number == self.number else self.empty
        except DecodeError:
            return self.empty


MASK = MemoryFormat(NO_MASK, number=13, max_bytes=16 << 20)
SOFT_ERRORS = MemoryFormat(NO_SOFT_ERRORS, number=5, max_bytes=1 << 20)
RENDERS = MemoryFormat(NO_RENDERS, number=4, max_bytes=1 << 20)


def pack_mask(mask: NoiseMask, *, max_bytes: int = MASK.max_bytes) -> bytes:
    """Return the mask in its stored form. A mask that is too large loses its oldest volatile content.

    Pending edits of the boilerplate are not stored: the transaction that writes the mask reports them as an event.
    """
    mask, chars = replace(mask, edits=replace(mask.edits, pending={})), MAX_CHARS
    written = MASK.encode(mask)
    while len(written) > max_bytes and chars:
        chars //= 2
        written = MASK.encode(replace(mask, volatile=trim_volatile(mask.volatile, max_chars=chars)))
    return compression.compress(written)
