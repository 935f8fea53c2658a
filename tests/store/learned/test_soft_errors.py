"""What is known of a domain's walls comes back from the store, up to its bound."""

import json
from datetime import UTC, datetime, timedelta

import zstandard

from crawler.core.soft_errors import (
    ENOUGH_PAGES,
    MOST_SHARED_TEXTS,
    NO_SOFT_ERRORS,
    SharedText,
    SoftErrorMemory,
)
from crawler.store.learned.soft_errors import (
    FORM,
    MOST_BYTES,
    pack_soft_errors,
    unpack_soft_errors,
)

NOON = datetime(2026, 3, 4, 12, tzinfo=UTC)


def test_as_much_as_is_ever_known_comes_back_as_it_was() -> None:
    sketch = frozenset(range(1 << 31, (1 << 31) + 256))
    befores = tuple(bytes([n]) * 32 for n in range(ENOUGH_PAGES))
    known = SoftErrorMemory(
        shared_texts=(SharedText(sketch, befores, NOON),) * MOST_SHARED_TEXTS,
        absent=sketch,
        front=sketch,
        probed_at=NOON,
        wait=timedelta(days=1),
    )

    assert unpack_soft_errors(pack_soft_errors(known)) == known


def test_more_than_that_is_learnt_anew() -> None:
    long = json.dumps({"form": FORM, "sightings": "x" * MOST_BYTES}).encode()

    assert unpack_soft_errors(zstandard.ZstdCompressor().compress(long)) == NO_SOFT_ERRORS
