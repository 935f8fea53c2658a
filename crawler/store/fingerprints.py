"""Fingerprints as a BIGINT column holds them."""

from crawler.core.page.fingerprint import Fingerprint


def from_signed(number: int | None) -> Fingerprint | None:
    """A Fingerprint is unsigned everywhere but in its column."""
    return None if number is None else Fingerprint(number & 0xFFFF_FFFF_FFFF_FFFF)


def to_signed(fingerprint: Fingerprint | None) -> int | None:
    """The same the other way round."""
    return None if fingerprint is None else fingerprint - (1 << 64) if fingerprint >= 1 << 63 else fingerprint
