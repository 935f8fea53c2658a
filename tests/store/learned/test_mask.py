"""The noise mask of a domain is stored and read back unchanged."""

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import msgpack
from msgspec.structs import replace

from crawler.core.change.mask import NO_MASK, NoiseMask, learn_variants
from crawler.core.domain import Domain
from crawler.store import compression
from crawler.store.database import Database
from crawler.store.learned.domain_memory import MASK, pack_mask, read_mask, write_memory
from tests.core import pages

texts = st.lists(st.sampled_from(["at 10:15", "at 10:16", "5 days", "sale", "boots é 漢", "6 days"]), max_size=4)


def taught(visits: list[list[str]]) -> NoiseMask:
    """Return the mask after visits of a page with these paragraphs, each fetched twice."""
    domain = pages.Domain()
    shown = ["".join(f"<p>{text}<a href='/x?sid={n}'>x</a>" for text in look) for n, look in enumerate(visits)]
    for n, markup in enumerate(shown):
        domain.first(markup, path=str(n))
        domain.visit(shown[max(n - 1, 0)], markup, shown[max(n - 2, 0)])
    variants = learn_variants({}, removed={len(text) for look in visits for text in look}, added={-1, 2}, at=domain.now)
    return replace(domain.mask, variants=variants)


@settings(max_examples=40)
@given(visits=st.lists(texts, max_size=4))
def test_a_packed_mask_keeps_its_content_and_order(visits: list[list[str]]) -> None:
    mask = taught(visits)

    found = MASK.unpack(pack_mask(mask))

    assert found == mask
    assert pack_mask(found) == pack_mask(mask)
    assert list(found.volatile.noise_counts) == list(mask.volatile.noise_counts)  # the oldest are removed first
    assert list(found.boilerplate.counts) == list(mask.boilerplate.counts)


def test_a_mask_that_is_too_large_loses_its_oldest_texts() -> None:
    domain = pages.Domain()
    for n in range(20):
        text = "".join(f"<p>said on page {n} in line {'a' * line} at NOW" for line in range(10))
        domain.visit(*(text.replace("NOW", said) for said in ("ax", "bx", "cx", "dx")), path=str(n))
        domain.visit(*(text.replace("NOW", said) for said in ("ax", "bx", "cx", "dx")), path=f"other {n}")
    whole = len(compression.decompress(pack_mask(domain.mask), max_bytes=MASK.max_bytes))

    packed = pack_mask(domain.mask, max_bytes=whole - 1)

    assert len(compression.decompress(packed, max_bytes=MASK.max_bytes)) < whole
    kept, every = (list(known.volatile.patterns.values()) for known in (MASK.unpack(packed), domain.mask))
    assert kept
    assert [pattern for same in kept for pattern in same] == [p for same in every for p in same][-sum(map(len, kept)) :]


def test_a_stored_mask_that_is_too_large_is_ignored() -> None:
    long = msgpack.encode((MASK.number, "x" * MASK.max_bytes))

    assert MASK.unpack(compression.compress(long)) == NO_MASK


def test_a_mask_of_another_form_is_learnt_anew() -> None:
    for stored in ((MASK.number + 1, "otherwise"), (MASK.number, "otherwise"), {"form": 12}):
        assert MASK.unpack(compression.compress(msgpack.encode(stored))) == NO_MASK


async def test_a_mask_is_stored_and_replaced(db: Database, domain: Domain) -> None:
    first, second = taught([["at 10:15"], ["at 10:16"]]), taught([["sale"], ["boots é 漢"]])
    assert await read_mask(db, domain.id) == NO_MASK

    for mask in (first, second):
        async with db.transaction() as connection:
            await write_memory(connection, domain.id, mask)
        assert await read_mask(db, domain.id) == mask
