"""The memory of soft errors is stored and read back, up to its limit."""

import json
from datetime import UTC, datetime, timedelta

from crawler.core.http.urls import PageKey
from crawler.core.rendering.memory import RenderMemory, TemplateRenders
from crawler.core.soft_errors import MAX_SHARED_TEXTS, MIN_PAGES, NO_SOFT_ERRORS, SharedText, SoftErrorMemory
from crawler.store import compression
from crawler.store.learned.domain_memory import RENDERS, SOFT_ERRORS

NOON = datetime(2026, 3, 4, 12, tzinfo=UTC)


def test_a_full_memory_survives_packing() -> None:
    sketch = frozenset(range(1 << 31, (1 << 31) + 256))
    befores = tuple(bytes([n]) * 32 for n in range(MIN_PAGES))
    known = SoftErrorMemory(
        shared_texts=(SharedText(sketch, befores, NOON),) * MAX_SHARED_TEXTS,
        not_found_text=sketch,
        front_page_text=sketch,
        probed_at=NOON,
        probe_wait=timedelta(days=1),
    )

    assert SOFT_ERRORS.unpack(SOFT_ERRORS.pack(known)) == known


def test_a_memory_beyond_the_limit_is_ignored() -> None:
    long = json.dumps({"form": SOFT_ERRORS.number, "sightings": "x" * SOFT_ERRORS.max_bytes}).encode()

    assert SOFT_ERRORS.unpack(compression.compress(long)) == NO_SOFT_ERRORS


def test_a_memory_of_renders_survives_packing() -> None:
    known = RenderMemory(
        templates={"/a/*": TemplateRenders(tests=2, weight=1.5)},
        additions={1 << 40: 3},
        unrendered={PageKey(b"\x00" * 16): "/a/*"},
        pages=3,
    )

    assert RENDERS.unpack(RENDERS.pack(known)) == known
