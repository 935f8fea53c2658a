"""Requests beside the look itself: the page seconds later, a page that cannot exist, and is the domain there at all?"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import datetime

from crawler.core.http.response import Fetched, Unreached
from crawler.core.http.urls import Url
from crawler.core.page.fingerprint import compute_digest
from crawler.core.page.outline import BlockList
from crawler.core.page.snapshot import Parsed
from crawler.core.soft_errors import TextSketch
from crawler.core.visit.soft_errors import add_soft_error_signs, is_same_page, read_not_found_text
from crawler.core.visit.visit import NETWORK_FAILURES, Baseline, DomainKnowledge, Target, Visit, find_exclusion
from crawler.engine.parsing.parser_pool import DomainParser
from crawler.engine.rendering.page_reader import PageReader
from crawler.engine.requests.breaker import CircuitBreaker
from crawler.engine.requests.robots import RequestUrl
from crawler.engine.store_port import LeasedStore

# Reads a second answer for a page in the way in which the first was read.
RereadPage = Callable[[Fetched], Awaitable[Parsed | None]]


async def load_baseline(
    store: LeasedStore, target: Target, response: Fetched, parsed: Parsed, *, parser: DomainParser
) -> Baseline | None:
    """The page's last Snapshot, block by block; None where it is not kept, or nothing in it can be read.

    response, parsed: what the page says now.
    """
    stored = await store.load_stored_body(target, parsed)
    if stored is None:
        return None
    old_blocks = await parser.parse_blocks(
        replace(response, body=stored.body, content_type=stored.content_type), target.url
    )
    if not old_blocks:
        return None
    baseline = Baseline(old_blocks, stored.at, stored.has_returned)
    return add_soft_error_signs(baseline, parsed.content, stored.body, content_type=stored.content_type)


async def refetch_page(
    target: Target,
    first: Parsed,
    request_url: RequestUrl,
    read_again: RereadPage,
    *,
    now: datetime,
    knowledge: DomainKnowledge,
) -> BlockList | None:
    """The page as it is a moment later; empty where another page came, None where no request could be had."""
    response = await request_url(target.url)
    if response is None:
        return None
    if not isinstance(response, Fetched) or not 200 <= response.status < 300:
        return ()
    second = await read_again(response)
    if second is None or not is_same_page(target, first, second, now=now, knowledge=knowledge):
        return ()
    return second.blocks


async def probe_not_found(
    target: Target, request_url: RequestUrl, reader: PageReader, *, knowledge: DomainKnowledge, is_rendered: bool
) -> TextSketch | None:
    """What the domain answers for a URL that cannot exist; None if it gave no answer, or may not be asked.

    is_rendered: the answer is read as a browser shows it.
    """
    # A page that nobody can have made, beside this one. Its name begins with a digit, since differing numbers prove
    # nothing when texts are compared later.
    folder = target.url.partition("?")[0].rpartition("/")[0]
    url = Url(f"{folder}/0{compute_digest(target.key).hex()}")
    if find_exclusion(url, depth=target.depth, knowledge=knowledge):
        return None
    response = await request_url(url)
    if not isinstance(response, Fetched):
        return None
    absent = replace(target, url=url, version=None)
    is_good = 200 <= response.status < 300
    parsed = await reader.reread_page(absent, response, knowledge, is_rendered=is_rendered) if is_good else None
    return read_not_found_text(response, parsed, knowledge=knowledge)


async def settle_pending(
    breaker: CircuitBreaker, request_url: RequestUrl, *, root: Url, knowledge: DomainKnowledge
) -> list[Visit]:
    """Say whose fault silence and errors are, and give the visits as they are recorded.

    If the domain is there and well, it was the pages' own.  root: the domain's front page.
    """
    is_in_doubt, suspects = breaker.is_in_doubt, breaker.release_as_page_faults()
    are_page_faults = breaker.suspension is None
    if are_page_faults and is_in_doubt and any(visit.is_server_error for visit in suspects):
        are_page_faults = await _is_domain_up(suspects, request_url, root=root, knowledge=knowledge)
    elif are_page_faults and any(visit.no_response for visit in suspects):
        # Without a budget for robots.txt, nothing is known against the domain.
        response = await request_url(Url(f"{root}robots.txt"))
        are_page_faults = not (isinstance(response, Unreached) and response.reason in NETWORK_FAILURES)
    if not are_page_faults:
        return breaker.release_as_outage(suspects)
    breaker.is_half_open = False  # the domain is there: any number of looks at a time
    return suspects


async def _is_domain_up(
    suspects: Sequence[Visit], request_url: RequestUrl, *, root: Url, knowledge: DomainKnowledge
) -> bool:
    """Ask for the front page, unless that is one of the suspects; whether there is an answer that is no 5xx."""
    if any(visit.target.url == root for visit in suspects) or find_exclusion(root, depth=0, knowledge=knowledge):
        return False
    response = await request_url(root)
    if isinstance(response, Unreached):
        return response.reason not in NETWORK_FAILURES
    return not (isinstance(response, Fetched) and response.status >= 500)
