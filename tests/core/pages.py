"""Blocks of short HTML pages, and a domain whose mask learns from visits of such pages."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from crawler.core.change.difference import NO_DIFFERENCE, Difference, compute_difference, select_significant
from crawler.core.change.mask import NO_MASK, NoiseMask
from crawler.core.change.mask_learning import Observation, update_mask
from crawler.core.http.urls import Url, compute_page_key
from crawler.core.page.block import Block, BlockKind, BlockList
from crawler.core.page.content import extract_content
from crawler.core.page.outline import extract_blocks
from crawler.core.page.selectors import FULL_VIEW, View

NOON = datetime(2026, 3, 4, 12, tzinfo=UTC)
DAY = timedelta(days=1)
HERE = Url("https://example.com/docs/a.html")


def blocks(
    markup: str | bytes, *, url: Url = HERE, content_type: str = "text/html; charset=utf-8", view: View = FULL_VIEW
) -> BlockList:
    body = markup.encode() if isinstance(markup, str) else markup
    content = extract_content(body, url=url, content_type=content_type)
    return extract_blocks(body, content, url=url, content_type=content_type, view=view)


def texts(found: BlockList, kind: BlockKind = BlockKind.TEXT) -> list[str]:
    return [block.text for block in found if block.kind is kind]


def paragraph(text: str) -> Block:
    (block,) = blocks(f"<p>{text}</p>")
    return block


@dataclass(slots=True)
class Domain:
    """A domain whose mask learns visit by visit, as in decide_visit()."""

    mask: NoiseMask = NO_MASK
    now: datetime = NOON

    def first(self, markup: str, *, path: str = "a") -> None:
        """Visit a new page."""
        url = Url(f"https://example.com/{path}")
        self.mask = update_mask(self.mask, Observation(compute_page_key(url), blocks(markup, url=url), self.now))

    def visit(self, before: str, after: str, *again: str, path: str = "a", later: timedelta = DAY) -> Difference:
        """Visit a page `later` after its last Snapshot; return the significant difference. again: second fetches."""
        url = Url(f"https://example.com/{path}")
        old, new = blocks(before, url=url), blocks(after, url=url)
        if old == new:
            return NO_DIFFERENCE
        second_fetches = tuple(blocks(each, url=url) for each in again)
        then = self.now - later
        self.mask = update_mask(self.mask, Observation(compute_page_key(url), new, self.now, old, then, second_fetches))
        return select_significant(compute_difference(old, new, self.mask.volatile), self.mask, then=then, now=self.now)
