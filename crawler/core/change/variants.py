"""Variants of a page: blocks that go and come back, such as the halves of an A/B test that hold for a day each.

A second fetch, seconds later, does not show them. A block that came back once proves nothing: an edit that is taken
back is a change. A block that comes back again and again, each time within weeks, is a variant and no change.
"""

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import datetime, timedelta

from crawler.core.http.urls import PageKey
from crawler.core.noise.bounds import newest
from crawler.core.noise.words import NUMBER, Words, numberless
from crawler.core.page.fingerprint import number_of

MOST_VARIANTS = 2048  # blocks of one domain's pages that went or came; the oldest are forgotten first
MOST_BLOCKS = 64  # of one look; a page that is written anew has no variants
ENOUGH_RETURNS = 2  # of a block, to call it a variant
WITHIN = timedelta(days=30)  # since a block last went or came; later, its returns are counted anew


@dataclass(frozen=True, slots=True)
class Variant:
    """A block of one page that went or came. returns: how often it came back.  last: when it went or came."""

    returns: int
    last: datetime
    is_gone: bool


Variants = Mapping[int, Variant]  # by variant_of


def variant_of(page: PageKey, form: int) -> int:
    return number_of(f"{page.hex()} {form}")


def numbers_of(words: Iterable[str]) -> Words:
    """The words that have a digit: a price that goes up and down is a change each time."""
    return tuple(word for word in words if NUMBER in numberless(word))


def learn_variants(known: Variants, *, went: AbstractSet[int], came: AbstractSet[int], at: datetime) -> Variants:
    """The variants after one more look. went, came: significant blocks of the page, by variant_of."""
    if not went | came or len(went | came) > MOST_BLOCKS:
        return known
    variants = dict(known)
    for key in sorted(went | came):
        variant = variants.pop(key, None)
        is_gone = key not in came
        if variant is None or at - variant.last > WITHIN:
            variants[key] = Variant(0, at, is_gone)
        else:
            variants[key] = Variant(variant.returns + (variant.is_gone and not is_gone), at, is_gone)
    return newest(variants, MOST_VARIANTS)


def returns_of(known: Variants, key: int) -> int:
    """How often a block came back to its page."""
    variant = known.get(key)
    return variant.returns if variant is not None else 0
