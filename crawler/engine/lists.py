"""URL lists (sitemaps and feeds) in a crawl: where to find them, and how to admit their entries to the store."""

from msgspec.structs import replace

from crawler.core.domain import Lease
from crawler.core.http.response import FailureReason, RequestLimits
from crawler.core.http.urls import Url
from crawler.core.page.lists.url_list import MAX_LIST_BYTES, ListEntry, UrlList
from crawler.core.visit.lists import get_signal_source, is_same_list, resolve_entries
from crawler.core.visit.visit import DomainKnowledge, ListResult, Target
from crawler.engine.store_port import LeasedStore
from crawler.store.record import ListChunk, ListChunkResult

DEFAULT_SITEMAP_PATHS = ("sitemap.xml", "sitemap_index.xml")  # tried if robots.txt names none
MAX_ROBOTS_SITEMAPS = 1000  # per robots.txt
CHUNK_ENTRIES = 1000  # entries admitted in one transaction
LIST_LIMITS = RequestLimits(first_bytes=MAX_LIST_BYTES)  # only the beginning of a longer list is read


async def admit_list(store: LeasedStore, target: Target, found: UrlList, *, knowledge: DomainKnowledge) -> ListResult:
    """Admit the entries of a list to the store and return their counts. An unchanged sitemap is skipped."""
    assert found.kind is not None
    result = ListResult(found.kind, entries=len(found.entries), unusable=found.unusable, finding=found.finding)
    if is_same_list(target, found):
        return replace(result, is_same=True)
    depth = target.depth + 1
    for begin in range(0, len(found.entries), CHUNK_ENTRIES):
        entries = found.entries[begin : begin + CHUNK_ENTRIES]
        links = list(resolve_entries(entries, depth=depth, knowledge=knowledge))
        own_links = [link for link in links if link is not None]
        admissible = [each for each in own_links if each.link.exclusion in {"", FailureReason.ROBOTS.value}]
        chunk_result = ListChunkResult()
        if admissible:
            chunk = ListChunk(admissible, depth=depth, source=get_signal_source(found.kind), list_key=target.key)
            chunk_result = await store.admit_list_chunk(chunk)
        result = replace(
            result,
            new_pages=result.new_pages + chunk_result.new_pages,
            new_lists=result.new_lists + chunk_result.new_lists,
            hints=result.hints + len(chunk_result.signals),
            others=result.others + len(links) - len(own_links),
            excluded=result.excluded + sum(bool(each.link.exclusion) for each in own_links),
        )
    return result


def find_site_lists(lease: Lease, knowledge: DomainKnowledge, *, tries_default_paths: bool) -> ListChunk:
    """Return the lists that robots.txt names or, if it names none, the default sitemap URLs.

    Lists outside of this domain, and those that may not be fetched, are omitted.
    """
    urls, found_by = knowledge.rules.sitemaps[:MAX_ROBOTS_SITEMAPS], "robots"
    if not urls and tries_default_paths:
        urls, found_by = tuple(Url(lease.domain.root + path) for path in DEFAULT_SITEMAP_PATHS), "usual"
    entries = [ListEntry(url, is_list=True) for url in urls]
    links = resolve_entries(entries, depth=1, knowledge=knowledge)
    own_links = [link for link in links if link is not None and not link.link.exclusion]
    return ListChunk(own_links, depth=1, found_by=found_by)
