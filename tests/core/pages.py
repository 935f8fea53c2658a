"""Pages in a few words of HTML, as blocks, and a domain's mask that looks at them have taught."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from crawler.core.change.difference import NO_DIFFERENCE, Difference, compute_difference, select_significant
from crawler.core.change.mask import NO_MASK, NoiseMask
from crawler.core.change.observation import Observation, update_mask
from crawler.core.http.urls import Url, compute_page_key
from crawler.core.page.content import extract_content
from crawler.core.page.outline import Block, BlockKind, BlockList, extract_blocks
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
    """A domain whose mask learns look by look, as in decide()."""

    mask: NoiseMask = NO_MASK
    now: datetime = NOON

    def first(self, markup: str, *, path: str = "a") -> None:
        """A page that was not known."""
        url = Url(f"https://example.com/{path}")
        self.mask = update_mask(self.mask, Observation(compute_page_key(url), blocks(markup, url=url), self.now))

    def look(self, before: str, after: str, *again: str, path: str = "a", later: timedelta = DAY) -> Difference:
        """A look `later` than the last Snapshot, and what of it is significant. again: second fetches of the page."""
        url = Url(f"https://example.com/{path}")
        old, new = blocks(before, url=url), blocks(after, url=url)
        if old == new:
            return NO_DIFFERENCE
        second_fetches = tuple(blocks(each, url=url) for each in again)
        then = self.now - later
        self.mask = update_mask(self.mask, Observation(compute_page_key(url), new, self.now, old, then, second_fetches))
        return select_significant(compute_difference(old, new, self.mask.volatile), self.mask, then=then, now=self.now)
