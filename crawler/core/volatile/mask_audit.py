"""What a mask hides of a page that differs, and when a pair is taken for it all the same: no proof is for ever."""

from collections.abc import Sequence

from crawler.core.http import PageKey
from crawler.core.page import Block, BlockList, number_of
from crawler.core.volatile.volatile import Volatile
from crawler.core.volatile.words import words_of

TESTED_EVERY = 50  # looks at which nothing but what is masked differs; that is what a proof costs while it holds
DOUBTED_EVERY = 5  # of those that hide what stood still in the last pair


def hidden_by_mask(before: BlockList, after: BlockList, volatile: Volatile) -> Sequence[Block]:
    """What a page says that it did not say before, as far as it is volatile."""
    before, after = volatile.named(before), volatile.named(after)
    said = set(before)
    return [place for place in after if place not in said and _is_masked(place, volatile)]


def _is_masked(place: Block, volatile: Volatile) -> bool:
    return volatile.is_noise(place) or volatile.masked(place) != words_of(place)


def wants_test(places: Sequence[Block], volatile: Volatile, *, page: PageKey, looks: int) -> bool:
    """Whether it is time to see if what is hidden still differs within seconds.

    looks: at the domain so far. Which of them are tests does not depend on chance, and favours no page.
    """
    if not places:
        return False
    every = DOUBTED_EVERY if any(map(volatile.is_doubted, places)) else TESTED_EVERY
    return number_of(f"{page.hex()} {looks}") % every == 0
