"""What a look is held against: the page's last Snapshot, and the page as it is seconds later."""

from dataclasses import replace
from datetime import datetime

from crawler.core.change.change import Understood
from crawler.core.http.response import Fetched
from crawler.core.page.outline import Outline
from crawler.core.visit.again import is_again
from crawler.core.visit.soft_errors import with_signs
from crawler.core.visit.visit import Earlier, Known, Target
from crawler.crawl.parser_pool import Lens
from crawler.crawl.robots import Ask
from crawler.store.record.content import Kept


async def earlier_of(
    kept: Kept | None, target: Target, answer: Fetched, understood: Understood, *, readers: Lens
) -> Earlier | None:
    """The page's last Snapshot, piece by piece; None where it is not kept, or nothing of it can be told.

    kept: its body.  answer, understood: what the page says now.
    """
    if kept is None:
        return None
    before = await readers.outline(replace(answer, body=kept.body, content_type=kept.content_type), target.url)
    if not before:
        return None
    earlier = Earlier(before, kept.at, kept.has_returned)
    return with_signs(earlier, understood.reading, kept.body, content_type=kept.content_type)


async def look_again(
    target: Target, first: Understood, ask: Ask, readers: Lens, *, now: datetime, known: Known
) -> Outline | None:
    """The page as it is a moment later; nothing where what came is not it, None where no request could be had."""
    answer = await ask(target.url)
    if answer is None:
        return None
    if not isinstance(answer, Fetched) or not 200 <= answer.status < 300:
        return ()
    second = await readers.read(answer, target.url, outlined=True)
    if second is None or not is_again(target, first, second, now=now, known=known):
        return ()
    return second.outline
