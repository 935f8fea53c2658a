"""Pages in a few words of HTML, as places, and a domain's mask that looks at them have taught."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from crawler.core.change import NO_MASK, Difference, NoiseMask, Observation, difference, significant, update_mask
from crawler.core.change.difference import SAME
from crawler.core.http import Url, key_of
from crawler.core.page import WHOLE, Block, BlockKind, BlockList, View, block_list, extract

NOON = datetime(2026, 3, 4, 12, tzinfo=UTC)
DAY = timedelta(days=1)
HERE = Url("https://example.com/docs/a.html")


def places(
    markup: str | bytes, *, url: Url = HERE, content_type: str = "text/html; charset=utf-8", view: View = WHOLE
) -> BlockList:
    body = markup.encode() if isinstance(markup, str) else markup
    reading = extract(body, url=url, content_type=content_type)
    return block_list(body, reading, url=url, content_type=content_type, view=view)


def texts(found: BlockList, part: BlockKind = BlockKind.TEXT) -> list[str]:
    return [place.text for place in found if place.kind is part]


def paragraph(text: str) -> Block:
    (place,) = places(f"<p>{text}</p>")
    return place


@dataclass(slots=True)
class Domain:
    """What looks at the pages of one domain teach, look by look, as decide() does it."""

    mask: NoiseMask = NO_MASK
    now: datetime = NOON

    def first(self, markup: str, *, path: str = "a") -> None:
        """A page that was not known."""
        url = Url(f"https://example.com/{path}")
        self.mask = update_mask(self.mask, Observation(key_of(url), places(markup, url=url), self.now))

    def look(self, before: str, after: str, *again: str, path: str = "a", later: timedelta = DAY) -> Difference:
        """A look `later` than the last Snapshot, and what of it is news. again: what the page says seconds later."""
        url = Url(f"https://example.com/{path}")
        old, new = places(before, url=url), places(after, url=url)
        if old == new:
            return SAME
        pairs = tuple(places(each, url=url) for each in again)
        then = self.now - later
        self.mask = update_mask(self.mask, Observation(key_of(url), new, self.now, old, then, pairs))
        return significant(difference(old, new, self.mask.volatile), self.mask, then=then, now=self.now)
