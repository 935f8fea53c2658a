"""What the new pages of each domain have said of late, kept from lease to lease."""

import json
from array import array
from datetime import datetime
from struct import Struct

from crawler.core.novelty import NoveltyEvidence, NoveltyMemory, SeenHashes
from crawler.store.database import Connection

FORM = 1  # of what is stored; another one is learnt anew
HEAD = Struct("<7I")  # the form, and how many hashes each generation has

MEMORY = "SELECT memory FROM domain_novelty WHERE domain_id = %s"
PUT_MEMORY = """
    INSERT INTO domain_novelty (domain_id, memory) VALUES (%s, %s)
    ON CONFLICT (domain_id) DO UPDATE SET memory = excluded.memory
"""


async def novelty_memory_of(connection: Connection, domain_id: int) -> NoveltyMemory:
    """What the domain's new pages have said."""
    row = await (await connection.execute(MEMORY, (domain_id,), binary=True)).fetchone()
    return NoveltyMemory() if row is None else unpack_memory(row[0])


async def put_novelty_memory(connection: Connection, domain_id: int, memory: NoveltyMemory) -> None:
    """Store it, within a transaction of the caller's."""
    await connection.execute(PUT_MEMORY, (domain_id, pack_memory(memory)), binary=True)


def pack_memory(memory: NoveltyMemory) -> bytes:
    """The memory in its stored form: hashes do not compress."""
    hashes = [array("I", each) for each in _generations(memory)]
    parameters = {name: [known.looks, known.found] for name, known in memory.parameters.items()}
    next_time = memory.next_time and memory.next_time.isoformat()
    rest = json.dumps(
        {"next": next_time, "queries": memory.has_queries, "parameters": parameters}, separators=(",", ":")
    ).encode()
    head = HEAD.pack(FORM, *map(len, hashes))
    return head + b"".join(each.tobytes() for each in hashes) + rest


def unpack_memory(data: bytes) -> NoveltyMemory:
    """The memory of its stored form; an empty one where the form is an older one."""
    form, *lengths = HEAD.unpack_from(data)
    if form != FORM:
        return NoveltyMemory()
    at = HEAD.size
    generations: list[set[int]] = []
    for many in lengths:
        generations.append(set(array("I", data[at : at + 4 * many])))
        at += 4 * many
    rest = json.loads(data[at:])
    return NoveltyMemory(
        texts=SeenHashes(generations[0], generations[1]),
        admitted=SeenHashes(generations[2], generations[3]),
        read=SeenHashes(generations[4], generations[5]),
        parameters={name: NoveltyEvidence(looks, found) for name, (looks, found) in rest["parameters"].items()},
        next_time=rest["next"] and datetime.fromisoformat(rest["next"]),
        has_queries=rest["queries"],
    )


def _generations(memory: NoveltyMemory) -> list[set[int]]:
    return [each for seen in (memory.texts, memory.admitted, memory.read) for each in (seen.newer, seen.older)]
