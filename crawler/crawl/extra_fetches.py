"""Requests beside the look itself: the page once more seconds later, and a page that cannot exist."""

from dataclasses import replace
from datetime import datetime

from crawler.core.http import Fetched, Url
from crawler.core.page import Outline, Understood, digest
from crawler.core.soft_errors import Sketch
from crawler.core.visit import Earlier, Known, Target, absent_of, is_again, refusal_of, with_signs
from crawler.crawl.parser_pool import Lens
from crawler.crawl.robots import Ask
from crawler.store.record import Kept


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


def nowhere(target: Target) -> Url:
    """A page that nobody can have made, beside this one. Its name begins with a digit: numbers prove nothing later."""
    folder = target.url.partition("?")[0].rpartition("/")[0]
    return Url(f"{folder}/0{digest(target.key).hex()}")


async def ask_nowhere(target: Target, ask: Ask, readers: Lens, *, known: Known) -> Sketch | None:
    """What the domain says where nothing can be; None if it did not tell, or may not be asked."""
    url = nowhere(target)
    if refusal_of(url, depth=target.depth, known=known):
        return None
    answer = await ask(url)
    if not isinstance(answer, Fetched):
        return None
    is_good = 200 <= answer.status < 300
    return absent_of(answer, await readers.read(answer, url) if is_good else None, known=known)
