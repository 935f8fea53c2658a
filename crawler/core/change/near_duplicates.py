"""Near-duplicate search among fingerprints, and grouping of near duplicates."""

from array import array
from collections import defaultdict
from collections.abc import Iterator, Mapping

import numpy as np
from msgspec import Struct

from crawler.core.page.fingerprint import Fingerprint, count_distance_bits

# Maximum number of the 64 bits that differ in near duplicates (Manku, Jain, Das Sarma, WWW 2007). The search by
# quarters finds all of them: if at most three bits differ, at least one of the four quarters is equal.
NEAR_BITS = 3
QUARTERS = 4
MIN_VECTOR_SIZE = 50  # fingerprints in one band; with fewer, a loop is faster than numpy
MIN_TEXT_BYTES = 100  # of main text, about 16 words; shorter texts ("Loading") are equal by chance


class DuplicateGroup(Struct, frozen=True):
    """A group of near duplicates: a canonical fingerprint and those near it.

    distances: the distance from the canonical fingerprint to each member, itself included, nearest first.
    pages: the number of pages in the group.
    """

    canonical: Fingerprint
    distances: Mapping[Fingerprint, int]
    pages: int


def compute_bands(fingerprint: Fingerprint) -> Iterator[int]:
    """Yield the four bands of a fingerprint: each of its 16-bit quarters, prefixed with its number (0 to 262143).

    Fingerprints that differ in at most NEAR_BITS bits have a band in common.
    """
    for quarter in range(QUARTERS):
        yield quarter << 16 | fingerprint >> (48 - 16 * quarter) & 0xFFFF


class BandIndex:
    """An in-memory index of fingerprints by band."""

    def __init__(self) -> None:
        self._by_band: defaultdict[int, array[int]] = defaultdict(lambda: array("Q"))

    def add(self, fingerprint: Fingerprint) -> None:
        for band in compute_bands(fingerprint):
            self._by_band[band].append(fingerprint)

    def find_near(self, fingerprint: Fingerprint, *, tolerance_bits: int) -> dict[Fingerprint, int]:
        """Return the fingerprints within tolerance_bits (0 to NEAR_BITS) of one, each with its distance in bits."""
        distances: dict[Fingerprint, int] = {}
        for others in filter(None, map(self._by_band.get, compute_bands(fingerprint))):
            distances.update(_find_within(tolerance_bits, fingerprint, others))
        return distances


def _find_within(max_bits: int, fingerprint: Fingerprint, others: "array[int]") -> Iterator[tuple[Fingerprint, int]]:
    if len(others) < MIN_VECTOR_SIZE:
        for other in others:
            bits = (fingerprint ^ other).bit_count()
            if bits <= max_bits:
                yield Fingerprint(other), bits
        return
    distances = np.bitwise_count(np.frombuffer(others, dtype=np.uint64) ^ np.uint64(fingerprint))
    for at in np.flatnonzero(distances <= max_bits):
        yield Fingerprint(others[at]), int(distances[at])


def group_duplicates(pages: Mapping[Fingerprint, int], *, tolerance_bits: int) -> list[DuplicateGroup]:
    """Group near duplicates, the largest group first; groups of a single page are left out.

    pages: the number of pages per fingerprint.
    tolerance_bits: the maximum distance from a group's canonical fingerprint, 0 to NEAR_BITS.
    The fingerprint with the most pages becomes canonical; each fingerprint near a canonical one joins the nearest.
    Distances do not chain: pages that differ gradually form many groups. Canonical fingerprints are never near each
    other. If all fingerprints near a canonical one of a single page joined other groups, its group contains them too.
    So every page that is near another page is in a group.
    """
    members_by_canonical: dict[Fingerprint, list[Fingerprint]] = {}
    index, joined = BandIndex(), BandIndex()
    for each in sorted(pages, key=lambda fingerprint: (-pages[fingerprint], fingerprint)):
        near = index.find_near(each, tolerance_bits=tolerance_bits)
        if near:
            members_by_canonical[min(near, key=lambda canonical: (near[canonical], canonical))].append(each)
            joined.add(each)
        else:
            members_by_canonical[each] = [each]
            index.add(each)
    for canonical, members in members_by_canonical.items():
        if len(members) == 1 and pages[canonical] == 1:
            members.extend(joined.find_near(canonical, tolerance_bits=tolerance_bits))
    groups: list[DuplicateGroup] = []
    for canonical, members in members_by_canonical.items():
        bits_and_members = sorted((count_distance_bits(canonical, each), each) for each in set(members))
        distances = {each: bits for bits, each in bits_and_members}
        groups.append(DuplicateGroup(canonical, distances, sum(map(pages.__getitem__, distances))))
    return sorted((each for each in groups if each.pages > 1), key=lambda group: (-group.pages, group.canonical))
