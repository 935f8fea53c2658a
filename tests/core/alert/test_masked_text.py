"""The text of a page that conditions use."""

from crawler.core.alert.condition import mask_text
from crawler.core.change.mask import NO_MASK, NoiseMask
from crawler.core.http.urls import PageKey
from crawler.core.noise.second_fetch import learn_from_second_fetch
from crawler.core.page.block import Block, BlockKind

PAGE = (
    Block(1, "Kettle", BlockKind.TITLE),
    Block(2, "Costs 1,299.00 crowns"),
    Block(3, "Seen by 812 people today"),
    Block(4, "https://x.test/basket", BlockKind.LINK),
)


def test_text_and_titles_count_and_links_do_not() -> None:
    assert mask_text(PAGE, NO_MASK) == "Kettle\nCosts 1,299.00 crowns\nSeen by 812 people today"


def test_volatile_text_is_excluded() -> None:
    again = (*PAGE[:2], Block(3, "Seen by 815 people today"), PAGE[3])
    volatile = NO_MASK.volatile
    for page in (b"a" * 16, b"b" * 16, b"c" * 16):
        volatile = learn_from_second_fetch(
            volatile, page=PageKey(page), differing=[(PAGE[2], again[2])], first=PAGE, second=again
        )

    text = mask_text(again, NoiseMask(volatile=volatile))

    assert text == "Kettle\nCosts 1,299.00 crowns\nSeen by \u2026 people today"
