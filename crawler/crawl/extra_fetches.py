"""Requests beside the look itself: the page once more seconds later, and a page that cannot exist."""

from dataclasses import replace
from datetime import datetime

from crawler.core.http import Fetched, Url
from crawler.core.page import BlockList, Parsed, digest
from crawler.core.soft_errors import TextSketch
from crawler.core.visit import Baseline, Known, Target, is_same_page, not_found_text, refusal_of, with_soft_error_signs
from crawler.crawl.parser_pool import DomainParser
from crawler.crawl.robots import Ask
from crawler.store.record import StoredBody


async def baseline_of(
    kept: StoredBody | None, target: Target, answer: Fetched, parsed: Parsed, *, readers: DomainParser
) -> Baseline | None:
    """The page's last Snapshot, piece by piece; None where it is not kept, or nothing of it can be told.

    kept: its body.  answer, understood: what the page says now.
    """
    if kept is None:
        return None
    before = await readers.blocks(replace(answer, body=kept.body, content_type=kept.content_type), target.url)
    if not before:
        return None
    baseline = Baseline(before, kept.at, kept.has_returned)
    return with_soft_error_signs(baseline, parsed.content, kept.body, content_type=kept.content_type)


async def fetch_again(
    target: Target, first: Parsed, ask: Ask, readers: DomainParser, *, now: datetime, known: Known
) -> BlockList | None:
    """The page as it is a moment later; nothing where what came is not it, None where no request could be had."""
    answer = await ask(target.url)
    if answer is None:
        return None
    if not isinstance(answer, Fetched) or not 200 <= answer.status < 300:
        return ()
    second = await readers.parse(answer, target.url, outlined=True)
    if second is None or not is_same_page(target, first, second, now=now, known=known):
        return ()
    return second.blocks


def not_found_probe(target: Target) -> Url:
    """A page that nobody can have made, beside this one. Its name begins with a digit: numbers prove nothing later."""
    folder = target.url.partition("?")[0].rpartition("/")[0]
    return Url(f"{folder}/0{digest(target.key).hex()}")


async def probe_not_found(target: Target, ask: Ask, readers: DomainParser, *, known: Known) -> TextSketch | None:
    """What the domain says where nothing can be; None if it did not tell, or may not be asked."""
    url = not_found_probe(target)
    if refusal_of(url, depth=target.depth, known=known):
        return None
    answer = await ask(url)
    if not isinstance(answer, Fetched):
        return None
    is_good = 200 <= answer.status < 300
    return not_found_text(answer, await readers.parse(answer, url) if is_good else None, known=known)
