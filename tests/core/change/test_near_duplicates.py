"""In-memory search for near fingerprints: bands find them all, and groups do not chain."""

import itertools
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.core.change.near_duplicates import MIN_VECTOR_SIZE, NEAR_BITS, BandIndex, compute_bands, group_duplicates
from crawler.core.page.fingerprint import Fingerprint, count_distance_bits

fingerprints = st.integers(0, 2**64 - 1).map(Fingerprint)


def flipped(fingerprint: int, *places: int) -> Fingerprint:
    for place in places:
        fingerprint ^= 1 << place
    return Fingerprint(fingerprint)


def index_of(*given: Fingerprint) -> BandIndex:
    index = BandIndex()
    for each in given:
        index.add(each)
    return index


@given(one=fingerprints, places=st.sets(st.integers(0, 63), max_size=NEAR_BITS))
def test_fingerprints_within_three_bits_share_a_band(one: Fingerprint, places: set[int]) -> None:
    other = flipped(one, *places)

    assert set(compute_bands(one)) & set(compute_bands(other))
    assert index_of(other).find_near(one, tolerance_bits=NEAR_BITS) == {other: len(places)}


@given(one=fingerprints, places=st.sets(st.integers(0, 63), min_size=1, max_size=20))
def test_fingerprints_beyond_the_tolerance_are_not_found(one: Fingerprint, places: set[int]) -> None:
    other = flipped(one, *places)

    for tolerance in range(min(len(places), NEAR_BITS + 1)):
        assert index_of(other).find_near(one, tolerance_bits=tolerance) == {}


def test_large_and_small_bands_give_the_same_results() -> None:
    crowd = [flipped(0, *places) for places in itertools.combinations(range(20), 3)]
    one = flipped(0, 1, 2, 40)

    found = index_of(*crowd).find_near(one, tolerance_bits=3)

    assert len(crowd) > 10 * MIN_VECTOR_SIZE
    assert found == {each: bits for each in crowd if (bits := count_distance_bits(one, each)) <= 3}
    assert found


def test_bands_are_the_four_quarters_with_their_numbers() -> None:
    assert list(compute_bands(Fingerprint(0x0001_8000_FFFF_0002))) == [0x00001, 0x18000, 0x2FFFF, 0x30002]


def test_most_frequent_fingerprint_is_canonical_and_largest_group_is_first() -> None:
    lone, few, many = Fingerprint(0), Fingerprint(0xFFFF_0000_FFFF_0000), Fingerprint(0xFFFF_FFFF_0000_0000)

    found = group_duplicates(
        {lone: 1, few: 2, flipped(many, 1): 1, many: 5, flipped(many, 1, 2, 3): 1}, tolerance_bits=3
    )

    assert [(group.canonical, group.pages) for group in found] == [(many, 7), (few, 2)]
    assert list(found[0].distances.items()) == [(many, 0), (flipped(many, 1), 1), (flipped(many, 1, 2, 3), 3)]


def test_chain_of_near_pages_is_not_one_group() -> None:
    chain = [flipped(0, *range(length)) for length in range(0, 64, 2)]

    found = group_duplicates(dict.fromkeys(chain, 1), tolerance_bits=3)

    assert max(group.pages for group in found) <= 3
    assert {each for group in found for each in group.distances} == set(chain)


def test_tolerance_of_zero_groups_only_equal_pages() -> None:
    found = group_duplicates({Fingerprint(0): 3, Fingerprint(1): 1, Fingerprint(2): 2}, tolerance_bits=0)

    assert [(group.canonical, dict(group.distances), group.pages) for group in found] == [
        (0, {0: 0}, 3),
        (2, {2: 0}, 2),
    ]


@pytest.mark.parametrize("tolerance", range(NEAR_BITS + 1))
@pytest.mark.parametrize("seed", range(20))
def test_exactly_the_pages_with_near_duplicates_are_in_groups(seed: int, tolerance: int) -> None:
    chance = random.Random(seed)
    centres = [chance.getrandbits(64) for _ in range(20)]
    pages = {
        flipped(chance.choice(centres), *chance.sample(range(64), chance.randint(0, 5))): chance.choice([1, 1, 1, 2])
        for _ in range(150)
    }

    found = group_duplicates(pages, tolerance_bits=tolerance)

    near = {
        one
        for one in pages
        if pages[one] > 1 or any(0 < count_distance_bits(one, other) <= tolerance for other in pages)
    }
    assert {each for group in found for each in group.distances} == near
    for group in found:
        assert all(
            bits == count_distance_bits(group.canonical, each) <= tolerance for each, bits in group.distances.items()
        )
        assert group.pages == sum(pages[each] for each in group.distances) >= 2
