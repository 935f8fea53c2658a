"""The noise mask of each domain (volatile places and boilerplate), kept from lease to lease.

A mask can be learnt again. So it is written when it has grown, and a crash loses at most what the last batch taught.
"""

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

import zstandard

from crawler.core.change.boilerplate import BlockCount, Boilerplate
from crawler.core.change.edits import Edits, TemplateEdit
from crawler.core.change.mask import NO_MASK, NoiseMask
from crawler.core.change.variants import Variant
from crawler.core.http import PageKey
from crawler.core.noise.noise import MOST_CHARS, Volatile, trimmed
from crawler.core.noise.session_params import Parameter
from crawler.core.noise.stability import CounterStats, PathStats, ShapeStats, StampStats, VolatilityCount
from crawler.core.noise.words import Pattern
from crawler.store.database import Connection, Database

FORM = 10  # of what is stored; another one is learnt anew
MOST_BYTES = 16 << 20  # unpacked
LEVEL = 3

GET = "SELECT mask FROM domain_mask WHERE domain_id = %s"
PUT = """
    INSERT INTO domain_mask (domain_id, mask) VALUES (%s, %s)
    ON CONFLICT (domain_id) DO UPDATE SET mask = excluded.mask
"""


async def mask_of(db: Database, domain_id: int) -> NoiseMask:
    """The domain's mask; an empty one at first."""
    async with db.transaction() as connection:
        row = await (await connection.execute(GET, (domain_id,))).fetchone()
    return NO_MASK if row is None else unpack_mask(row[0])


async def put_mask(connection: Connection, domain_id: int, mask: NoiseMask) -> None:
    """Store the mask, within a transaction of the caller's."""
    await connection.execute(PUT, (domain_id, pack_mask(mask)))


def pack_mask(mask: NoiseMask, *, most_bytes: int = MOST_BYTES) -> bytes:
    """The mask in its stored form. A mask that is too long loses its oldest texts.

    Site edits that are not recorded yet are not stored: `record` writes them with the mask that forgets them.
    """
    written, chars = _written(mask), MOST_CHARS
    while len(written) > most_bytes and chars:
        chars //= 2
        written = _written(replace(mask, volatile=trimmed(mask.volatile, chars=chars)))
    return zstandard.ZstdCompressor(level=LEVEL).compress(written)


def _written(mask: NoiseMask) -> bytes:
    volatile, boilerplate = mask.volatile, mask.boilerplate
    plain = {
        "form": FORM,
        "patterns": [[path, list(pattern)] for (path, _), same in volatile.patterns.items() for pattern in same],
        "once": [[path, list(pattern)] for (path, _), same in volatile.once.items() for pattern in same],
        "anywhere": [[path, length, list(gaps.items())] for (path, length), gaps in volatile.anywhere.items()],
        "parameters": [[name, _proofs(each.behind), list(each.still)] for name, each in volatile.parameters.items()],
        "noise": _proofs(volatile.noise),
        "volatility": _proofs(volatile.proofs),
        "own": list(volatile.own),
        "path_stats": [
            [path, s.steady, s.swung, s.mixed, [page.hex() for page in s.pages]]
            for path, s in volatile.path_stats.items()
        ],
        "counters": [
            [key, c.times, sorted(c.units), sorted(c.growths), *_hexes(c.pages, c.ones), c.missed]
            for key, c in volatile.counters.items()
        ],
        "shape_stats": [[key, trial.steady, trial.changes] for key, trial in volatile.shape_stats.items()],
        "stamps": [[key, stamp.times, stamp.missed] for key, stamp in volatile.stamps.items()],
        "aliases": list(volatile.aliases.items()),
        "boilerplate": [
            [form, s.path, [page.hex() for page in s.pages], s.first, s.last, s.looks, s.was_boilerplate]
            for form, s in boilerplate.counts.items()
        ],
        "looks": list(boilerplate.looks.items()),
        "turned": list(boilerplate.turned.items()),
        "pairs": mask.second_fetches,
        "compared": mask.compared,
        "all_looks": mask.looks,
        "met": [[key, [page.hex() for page in pages]] for key, pages in mask.edits.met.items()],
        "told": list(mask.edits.reported),
        "turns": [[path, many, last.isoformat()] for path, (many, last) in mask.edits.repeats.items()],
        "template_edits": [
            [key, e.language, e.was, e.is_target, [page.hex() for page in e.pages], e.last.isoformat(), e.kept]
            for key, e in mask.template_edits.items()
        ],
        "variants": [[key, v.returns, v.last.isoformat(), v.is_gone] for key, v in mask.variants.items()],
    }
    return json.dumps(plain, separators=(",", ":")).encode()


def unpack_mask(data: bytes) -> NoiseMask:
    """The mask of its stored form; an empty one where the form is an older one, or too long."""
    if zstandard.frame_content_size(data) > MOST_BYTES:
        return NO_MASK
    plain: dict[str, Any] = json.loads(zstandard.ZstdDecompressor().decompress(data, max_output_size=MOST_BYTES))
    if plain.get("form") != FORM:
        return NO_MASK
    volatile = Volatile(
        patterns=_patterns(plain["patterns"]),
        once=_patterns(plain["once"]),
        anywhere={(path, length): dict(gaps) for path, length, gaps in plain["anywhere"]},
        parameters={
            name: Parameter(_proven(behind), dict.fromkeys(still)) for name, behind, still in plain["parameters"]
        },
        noise=_proven(plain["noise"]),
        proofs=_proven(plain["volatility"]),
        own=dict.fromkeys(plain["own"]),
        path_stats={
            path: PathStats(steady, swung, mixed, _pages(pages))
            for path, steady, swung, mixed, pages in plain["path_stats"]
        },
        counters={
            key: CounterStats(times, frozenset(units), frozenset(growths), _pages(pages), _pages(ones), missed)
            for key, times, units, growths, pages, ones, missed in plain["counters"]
        },
        shape_stats={key: ShapeStats(*trial) for key, *trial in plain["shape_stats"]},
        stamps={key: StampStats(*stamp) for key, *stamp in plain.get("stamps", ())},
        aliases=dict(plain["aliases"]),
    )
    boilerplate = Boilerplate(
        counts={
            form: BlockCount(path, _pages(pages), first, last, looks, was)
            for form, path, pages, first, last, looks, was in plain["boilerplate"]
        },
        looks=dict(plain["looks"]),
        turned=dict(plain["turned"]),
        total=plain["all_looks"],
    )
    edits = Edits(
        met={key: _pages(pages) for key, pages in plain["met"]},
        reported=dict.fromkeys(plain["told"]),
        repeats={path: (many, datetime.fromisoformat(last)) for path, many, last in plain["turns"]},
    )
    variants = {
        key: Variant(returns, datetime.fromisoformat(last), is_gone)
        for key, returns, last, is_gone in plain["variants"]
    }
    template_edits = {
        key: TemplateEdit(language, was, is_target, _pages(pages), datetime.fromisoformat(last), kept)
        for key, language, was, is_target, pages, last, kept in plain["template_edits"]
    }
    counts = plain["pairs"], plain["compared"], plain["all_looks"]
    return NoiseMask(volatile, boilerplate, *counts, edits, template_edits, variants)


def _hexes(*pages: tuple[PageKey, ...]) -> list[list[str]]:
    return [[page.hex() for page in each] for each in pages]


def _proofs(known: Mapping[int, VolatilityCount]) -> list[list[int]]:
    return [[key, proof.moved, proof.steady] for key, proof in known.items()]


def _proven(written: list[list[int]]) -> dict[int, VolatilityCount]:
    return {key: VolatilityCount(*proof) for key, *proof in written}


def _pages(written: list[str]) -> tuple[PageKey, ...]:
    return tuple(PageKey(bytes.fromhex(page)) for page in written)


def _patterns(written: list[tuple[int, list[str]]]) -> dict[tuple[int, int], tuple[Pattern, ...]]:
    found: dict[tuple[int, int], tuple[Pattern, ...]] = {}
    for path, pattern in written:
        same = (path, len(pattern))
        found[same] = (*found.get(same, ()), tuple(pattern))
    return found
