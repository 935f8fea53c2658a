"""Extra requests: fetch a page again seconds later, probe a URL that cannot exist, check whether the domain is up."""

from collections.abc import Awaitable, Callable
from datetime import datetime

from msgspec.structs import replace

from crawler.core.http.response import Fetched, Unreached
from crawler.core.http.urls import Url
from crawler.core.page.block import BlockList
from crawler.core.page.fingerprint import compute_digest
from crawler.core.page.snapshot import Parsed
from crawler.core.soft_errors import TextSketch
from crawler.core.visit.soft_errors import add_soft_error_signs, is_same_page, read_not_found_text
from crawler.core.visit.state import NETWORK_FAILURES
from crawler.core.visit.visit import Baseline, DomainKnowledge, Target, Visit, find_exclusion
from crawler.engine.parsing.parser_pool import DomainParser
from crawler.engine.rendering.page_reader import PageReader
from crawler.engine.requests.breaker import CircuitBreaker
from crawler.engine.requests.robots import RequestUrl
from crawler.engine.store_port import LeasedStore

# Reads a second response for a page in the same way as the first.
RereadPage = Callable[[Fetched], Awaitable[Parsed | None]]


async def load_baseline(
    store: LeasedStore, target: Target, response: Fetched, parsed: Parsed, *, parser: DomainParser
) -> Baseline | None:
    """Load the blocks of the page's last snapshot; None if its body is not stored or has no readable blocks.

    response, parsed: the page as it is now.
    """
    stored = await store.load_stored_body(target, parsed)
    if stored is None:
        return None
    old_response = replace(response, body=stored.body, content_type=stored.content_type)
    old_blocks = await parser.parse_blocks(old_response, target.url)
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
    """Refetch the page and return its blocks: () if that fails or gets another page, None if no request may be sent."""
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
    """Fetch a URL that cannot exist and return a sketch of the text of the response.

    Return None if the URL may not be fetched, or if the response reveals nothing.
    is_rendered: whether to render the response in a browser.
    """
    # An impossible name in the folder of the target. It begins with a digit because comparisons ignore numbers.
    folder = target.url.partition("?")[0].rpartition("/")[0]
    url = Url(f"{folder}/0{compute_digest(target.key).hex()}")
    if find_exclusion(url, depth=target.depth, knowledge=knowledge):
        return None
    response = await request_url(url)
    if not isinstance(response, Fetched):
        return None
    absent, parsed = replace(target, url=url, version=None), None
    if 200 <= response.status < 300:
        parsed = await reader.reread_page(absent, response, knowledge, is_rendered=is_rendered)
    return read_not_found_text(response, parsed, knowledge=knowledge)


async def settle_pending(
    breaker: CircuitBreaker, request_url: RequestUrl, *, root: Url, knowledge: DomainKnowledge
) -> list[Visit]:
    """Decide whether pages or their domain caused the breaker's pending visits, and return the visits to record.

    If the domain responds, the pages are at fault.  root: the URL of the domain's front page.
    """
    is_in_doubt, suspects = breaker.is_in_doubt, breaker.release_as_page_faults()
    are_page_faults = breaker.suspension is None
    if are_page_faults and is_in_doubt and any(visit.is_server_error for visit in suspects):
        is_root_suspect = any(visit.target.url == root for visit in suspects)
        are_page_faults = not is_root_suspect and await _is_domain_up(request_url, root=root, knowledge=knowledge)
    elif are_page_faults and any(visit.no_response for visit in suspects):
        # If the budget allows no request for robots.txt, the domain is assumed to work.
        response = await request_url(Url(f"{root}robots.txt"))
        are_page_faults = not (isinstance(response, Unreached) and response.reason in NETWORK_FAILURES)
    if not are_page_faults:
        return breaker.release_as_outage(suspects)
    breaker.is_half_open = False  # the domain works: allow parallel fetches again
    return suspects


async def _is_domain_up(request_url: RequestUrl, *, root: Url, knowledge: DomainKnowledge) -> bool:
    """Fetch the front page, or robots.txt if that is excluded; return False on a network failure or a 5xx status."""
    is_excluded = find_exclusion(root, depth=0, knowledge=knowledge)
    response = await request_url(Url(f"{root}robots.txt") if is_excluded else root)
    if isinstance(response, Unreached):
        return response.reason not in NETWORK_FAILURES
    return not (isinstance(response, Fetched) and response.status >= 500)
