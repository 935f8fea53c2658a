"""Requests beside the look itself: the page seconds later, a page that cannot exist, and is the domain there at all?"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import datetime

from crawler.core.http.response import Fetched, Unreached
from crawler.core.http.urls import Url
from crawler.core.page.fingerprint import digest
from crawler.core.page.outline import BlockList
from crawler.core.page.snapshot import Parsed
from crawler.core.soft_errors import TextSketch
from crawler.core.visit.soft_errors import is_same_page, not_found_text, with_soft_error_signs
from crawler.core.visit.visit import NETWORK_FAILURES, Baseline, Known, Target, Visit, refusal_of
from crawler.engine.parsing.parser_pool import DomainParser
from crawler.engine.rendering.page_reader import PageReader
from crawler.engine.requests.breaker import CircuitBreaker
from crawler.engine.requests.robots import Ask
from crawler.engine.store_port import LeasedStore

# Reads a second answer for a page in the way in which the first was read.
ReadAgain = Callable[[Fetched], Awaitable[Parsed | None]]


async def baseline_of(
    store: LeasedStore, target: Target, answer: Fetched, parsed: Parsed, *, readers: DomainParser
) -> Baseline | None:
    """The page's last Snapshot, block by block; None where it is not kept, or nothing in it can be read.

    answer, parsed: what the page says now.
    """
    kept = await store.stored_body(target, parsed)
    if kept is None:
        return None
    before = await readers.blocks(replace(answer, body=kept.body, content_type=kept.content_type), target.url)
    if not before:
        return None
    baseline = Baseline(before, kept.at, kept.has_returned)
    return with_soft_error_signs(baseline, parsed.content, kept.body, content_type=kept.content_type)


async def fetch_again(
    target: Target, first: Parsed, ask: Ask, read: ReadAgain, *, now: datetime, known: Known
) -> BlockList | None:
    """The page as it is a moment later; empty where another page came, None where no request could be had."""
    answer = await ask(target.url)
    if answer is None:
        return None
    if not isinstance(answer, Fetched) or not 200 <= answer.status < 300:
        return ()
    second = await read(answer)
    if second is None or not is_same_page(target, first, second, now=now, known=known):
        return ()
    return second.blocks


async def probe_not_found(
    target: Target, ask: Ask, reader: PageReader, *, known: Known, is_rendered: bool
) -> TextSketch | None:
    """What the domain answers for a URL that cannot exist; None if it gave no answer, or may not be asked.

    is_rendered: the answer is read as a browser shows it.
    """
    # A page that nobody can have made, beside this one. Its name begins with a digit, since differing numbers prove
    # nothing when texts are compared later.
    folder = target.url.partition("?")[0].rpartition("/")[0]
    url = Url(f"{folder}/0{digest(target.key).hex()}")
    if refusal_of(url, depth=target.depth, known=known):
        return None
    answer = await ask(url)
    if not isinstance(answer, Fetched):
        return None
    absent = replace(target, url=url, version=None)
    is_good = 200 <= answer.status < 300
    parsed = await reader.read_again(absent, answer, known, is_rendered=is_rendered) if is_good else None
    return not_found_text(answer, parsed, known=known)


async def settle_pending(breaker: CircuitBreaker, ask: Ask, *, root: Url, known: Known) -> list[Visit]:
    """Say whose fault silence and errors are, and give the visits as they are recorded.

    If the domain is there and well, it was the pages' own. root: the domain's front page.
    """
    is_in_doubt, suspects = breaker.is_in_doubt, breaker.release_as_page_faults()
    are_page_faults = breaker.hold is None
    if are_page_faults and is_in_doubt and any(visit.is_server_error for visit in suspects):
        are_page_faults = await _is_well(suspects, ask, root=root, known=known)
    elif are_page_faults and any(visit.no_response for visit in suspects):
        # Without a budget for robots.txt, nothing is known against the domain.
        answer = await ask(Url(f"{root}robots.txt"))
        are_page_faults = not (isinstance(answer, Unreached) and answer.reason in NETWORK_FAILURES)
    if not are_page_faults:
        return breaker.release_as_outage(suspects)
    breaker.is_half_open = False  # the domain is there: any number of looks at a time
    return suspects


async def _is_well(suspects: Sequence[Visit], ask: Ask, *, root: Url, known: Known) -> bool:
    """Ask for the front page, unless that is one of the suspects; whether there is an answer that is no 5xx."""
    if any(visit.target.url == root for visit in suspects) or refusal_of(root, depth=0, known=known):
        return False
    answer = await ask(root)
    if isinstance(answer, Unreached):
        return answer.reason not in NETWORK_FAILURES
    return not (isinstance(answer, Fetched) and answer.status >= 500)
