"""What visits have taught of each domain, kept from lease to lease: its noise mask, soft errors, renders, new pages.

All of it can be learned again. So it is written when it has changed, a crash loses at most what the last batch taught,
and what is stored in an older form is left unread. A value is stored as compressed JSON, by the types of its fields;
hashes of what new pages said are stored as they are, since they do not compress.
"""

import json
from array import array
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from datetime import datetime, timedelta
from functools import cache
from operator import attrgetter
from struct import Struct
from types import GenericAlias, NoneType, UnionType
from typing import Any, Generic, NamedTuple, TypeVar, get_args, get_origin, get_type_hints

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
NOVELTY_FORMAT = 1  # of what is stored; another one is learnt anew
NOVELTY_HEADER = Struct("<7I")  # the form, and how many hashes each generation has


async def load_memories(db: Database, domain_id: int) -> tuple[NoiseMask, SoftErrorMemory, RenderMemory]:
    """Return all that visits have taught of a domain: its noise mask, its soft errors, and what a browser brought."""
    stored: dict[str, bytes] = dict(
        await fetch_rows(db, READ_MEMORIES, (domain_id, ["mask", "soft_errors", "renders"]))
    )
    return (
        MASK.unpack(stored.get("mask")),
        SOFT_ERRORS.unpack(stored.get("soft_errors")),
        RENDERS.unpack(stored.get("renders")),
    )


async def read_mask(db: Database, domain_id: int) -> NoiseMask:
    """Return the domain's noise mask; an empty one at first."""
    stored: dict[str, bytes] = dict(await fetch_rows(db, READ_MEMORIES, (domain_id, ["mask"])))
    return MASK.unpack(stored.get("mask"))


async def read_novelty_memory(connection: Connection, domain_id: int) -> NoveltyMemory:
    """Return what the domain's new pages have said."""
    stored: dict[str, bytes] = dict(await fetch_rows(connection, READ_MEMORIES, (domain_id, ["novelty"]), binary=True))
    return unpack_novelty(stored["novelty"]) if stored else NoveltyMemory()


async def write_memory(
    connection: Connection, domain_id: int, memory: NoiseMask | SoftErrorMemory | RenderMemory | NoveltyMemory
) -> None:
    """Store a memory in place of the one of its kind, within a transaction of the caller's."""
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
    """The memory in its stored form: hashes do not compress."""
    seen = (memory.texts, memory.admitted_urls, memory.read_urls)
    hashes = [array("I", generation) for each in seen for generation in (each.newer, each.older)]
    parameters = {name: [evidence.visits, evidence.novelty_sum] for name, evidence in memory.parameters.items()}
    next_time = memory.next_time and memory.next_time.isoformat()
    rest = json.dumps(
        {"next": next_time, "queries": memory.has_queries, "parameters": parameters}, separators=(",", ":")
    ).encode()
    head = NOVELTY_HEADER.pack(NOVELTY_FORMAT, *map(len, hashes))
    return head + b"".join(each.tobytes() for each in hashes) + rest


def unpack_novelty(data: bytes) -> NoveltyMemory:
    """The memory of its stored form; an empty one where the form is an older one."""
    format_number, *lengths = NOVELTY_HEADER.unpack_from(data)
    if format_number != NOVELTY_FORMAT:
        return NoveltyMemory()
    at = NOVELTY_HEADER.size
    generations: list[set[int]] = []
    for length in lengths:
        generations.append(set(array("I", data[at : at + 4 * length])))
        at += 4 * length
    rest = json.loads(data[at:])
    return NoveltyMemory(
        texts=SeenHashes(generations[0], generations[1]),
        admitted_urls=SeenHashes(generations[2], generations[3]),
        read_urls=SeenHashes(generations[4], generations[5]),
        parameters={name: NoveltyEvidence(visits, novelty) for name, (visits, novelty) in rest["parameters"].items()},
        next_time=rest["next"] and datetime.fromisoformat(rest["next"]),
        has_queries=rest["queries"],
    )


@dataclass(frozen=True, slots=True)
class MemoryFormat(Generic[Memory]):
    """The form in which a memory is stored. number: another one is learned again.  max_bytes: unpacked."""

    empty: Memory
    number: int
    max_bytes: int

    @property
    def codec(self) -> "Codec":
        """How its values are written."""
        kind: Any = type(self.empty)
        return build_codec(kind)

    def encode_json(self, memory: Memory) -> bytes:
        """Return the memory as JSON."""
        plain = {"form": self.number, "memory": self.codec.encode(memory)}
        return json.dumps(plain, separators=(",", ":")).encode()

    def pack(self, memory: Memory) -> bytes:
        """Return the memory as it is stored."""
        return compression.compress(self.encode_json(memory))

    def unpack(self, data: bytes | None) -> Memory:
        """Return a stored memory; an empty one where there is none, or its form is another one, or it is too long."""
        if data is None or compression.read_size(data) > self.max_bytes:
            return self.empty
        unpacked = compression.decompress(data, max_bytes=self.max_bytes)
        stored: dict[str, Any] = json.loads(unpacked)
        if stored.get("form") != self.number:
            return self.empty
        memory: Memory = self.codec.decode(stored["memory"])
        return memory


MASK = MemoryFormat(NO_MASK, number=11, max_bytes=16 << 20)
SOFT_ERRORS = MemoryFormat(NO_SOFT_ERRORS, number=4, max_bytes=1 << 20)
RENDERS = MemoryFormat(NO_RENDERS, number=3, max_bytes=1 << 20)


def pack_mask(mask: NoiseMask, *, max_bytes: int = MASK.max_bytes) -> bytes:
    """Return the mask as it is stored. A mask that is too long loses its oldest texts.

    Site edits that are not recorded yet are not stored: `record` writes them with the mask that forgets them.
    """
    mask, chars = replace(mask, edits=replace(mask.edits, pending={})), MAX_CHARS
    written = MASK.encode_json(mask)
    while len(written) > max_bytes and chars:
        chars //= 2
        written = MASK.encode_json(replace(mask, volatile=trim_volatile(mask.volatile, max_chars=chars)))
    return compression.compress(written)


class Codec(NamedTuple):
    """How values of a type are written in JSON, and read again."""

    encode: Callable[[Any], Any]
    decode: Callable[[Any], Any]


IDENTITY = Codec(lambda value: value, lambda value: value)
SCALARS: dict[Any, Codec] = {
    bytes: Codec(bytes.hex, bytes.fromhex),
    datetime: Codec(datetime.isoformat, datetime.fromisoformat),
    timedelta: Codec(timedelta.total_seconds, lambda value: timedelta(seconds=value)),
}


@cache
def build_codec(kind: Any) -> Codec:
    """Return the codec of a type: a scalar, one that may be None, a dataclass, or a mapping, tuple or set of such."""
    kind = getattr(kind, "__supertype__", kind)  # of a NewType
    if isinstance(kind, type) and is_dataclass(kind):
        hints, build = get_type_hints(kind), kind
        names = [each.name for each in fields(kind)]
        return _build_parts_codec([hints[name] for name in names], attrgetter(*names), lambda parts: build(*parts))
    origin, args = get_origin(kind), get_args(kind)
    if origin is UnionType:
        (each,) = (build_codec(arg) for arg in args if arg is not NoneType)
        return Codec(
            lambda value: None if value is None else each.encode(value),
            lambda value: None if value is None else each.decode(value),
        )
    if origin is Mapping:
        pair = build_codec(GenericAlias(tuple, args))
        return Codec(
            lambda value: [pair.encode(each) for each in value.items()],
            lambda value: dict(map(pair.decode, value)),
        )
    if origin is frozenset or (origin is tuple and args[-1] is Ellipsis):
        each, order = build_codec(args[0]), sorted if origin is frozenset else list
        return Codec(lambda value: order(map(each.encode, value)), lambda value: origin(map(each.decode, value)))
    return _build_parts_codec(args, tuple, tuple) if origin is tuple else SCALARS.get(kind, IDENTITY)


def _build_parts_codec(kinds: Sequence[Any], get_parts: Callable[[Any], Any], build: Callable[[Any], Any]) -> Codec:
    """Return the codec of a value of parts. get_parts, build: gives the parts of a value, and a value of its parts."""
    codecs = [(n, build_codec(kind)) for n, kind in enumerate(kinds)]
    coded_parts = [(n, codec) for n, codec in codecs if codec is not IDENTITY]

    def encode(value: Any) -> list[Any]:
        parts = list(get_parts(value))
        for n, codec in coded_parts:
            parts[n] = codec.encode(parts[n])
        return parts

    def decode(parts: list[Any]) -> Any:
        for n, codec in coded_parts:
            parts[n] = codec.decode(parts[n])
        return build(parts)

    return Codec(encode, decode) if coded_parts else Codec(get_parts, build)
