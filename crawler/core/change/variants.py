"""What a page says by turns: pieces that go and come back, as the halves of an A/B test do that each hold for a day.

Two looks seconds apart tell nothing of these. That a piece came back once proves nothing either: an edit that is taken
back is news. One that comes back again and again, each time within weeks, was seen before and is told no more.
"""

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import datetime, timedelta

from crawler.core.http import PageKey
from crawler.core.page import number_of
from crawler.core.volatile import NUMBER, Words, newest, numberless

MOST_VARIANTS = 2048  # pieces of one domain's pages that went or came; the oldest are forgotten first
MOST_PIECES = 64  # of one look; a page that is written anew has no variants
ENOUGH_RETURNS = 2
WITHIN = timedelta(days=30)  # of what was met of it last


@dataclass(frozen=True, slots=True)
class Variant:
    """A piece of one page that went or came. returns: how often it came back.  last: when it went or came."""

    returns: int
    last: datetime
    is_gone: bool


Variants = Mapping[int, Variant]  # by variant_of


def variant_of(page: PageKey, form: int) -> int:
    return number_of(f"{page.hex()} {form}")


def numbers_of(words: Iterable[str]) -> Words:
    """The words that have a digit: a price that goes up and down is news each time."""
    return tuple(word for word in words if NUMBER in numberless(word))


def learn_variants(known: Variants, *, went: AbstractSet[int], came: AbstractSet[int], at: datetime) -> Variants:
    """What one look teaches. went, came: of what is news of a page, each by variant_of."""
    if not went | came or len(went | came) > MOST_PIECES:
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
    """How often a piece came back to its page."""
    variant = known.get(key)
    return variant.returns if variant is not None else 0
