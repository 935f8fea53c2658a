"""URL lists in a crawl: where they are looked for, and how what they name gets into the store, chunk by chunk."""

from dataclasses import replace

from crawler.core.domain import Lease
from crawler.core.http.response import Bounds, Reason
from crawler.core.http.urls import Url
from crawler.core.page.lists.url_list import MAX_LIST_BYTES, ListEntry, UrlList
from crawler.core.visit.lists import is_same_list, listed_links, source_of
from crawler.core.visit.visit import Known, ListNews, Target
from crawler.engine.store_port import LeasedStore
from crawler.store.record import ChunkNews, ListChunk

USUAL_PLACES = ("sitemap.xml", "sitemap_index.xml")  # where a site has one without saying so
MOST_NAMED = 1000  # lists that one robots.txt names
CHUNK_ENTRIES = 1000  # admitted in one transaction
LIST_BOUNDS = Bounds(first_bytes=MAX_LIST_BYTES)  # of a longer list the beginning counts


async def admit_list(store: LeasedStore, target: Target, found: UrlList, *, known: Known) -> ListNews:
    """Have the store admit what a list names; what that brought. One that says what it said brings nothing."""
    assert found.kind is not None
    news = ListNews(kind=found.kind, entries=len(found.entries), unusable=found.unusable, finding=found.finding)
    if is_same_list(target, found):
        return replace(news, is_same=True)
    depth = target.depth + 1
    for begin in range(0, len(found.entries), CHUNK_ENTRIES):
        entries = found.entries[begin : begin + CHUNK_ENTRIES]
        links = list(listed_links(entries, depth=depth, known=known))
        own = [link for link in links if link is not None]
        wanted = [each for each in own if each.link.refusal in {"", Reason.ROBOTS.value}]
        brought = ChunkNews()
        if wanted:
            chunk = ListChunk(wanted, depth=depth, source=source_of(found.kind), list_key=target.key)
            brought = await store.admit_listed(chunk)
        news = replace(
            news,
            new_pages=news.new_pages + brought.new_pages,
            new_lists=news.new_lists + brought.new_lists,
            hints=news.hints + len(brought.signals),
            others=news.others + len(links) - len(own),
            refused=news.refused + sum(bool(each.link.refusal) for each in own),
        )
    return news


def lists_of_site(lease: Lease, known: Known, *, asks_usual_places: bool) -> ListChunk:
    """The lists that robots.txt names or, where it names none, those in the usual places.

    Lists on other hosts are not this domain's to ask for.
    """
    named = [ListEntry(url, is_list=True) for url in known.rules.sitemaps[:MOST_NAMED]]
    found_by = "robots"
    if not named and asks_usual_places:
        found_by = "usual"
        named = [ListEntry(Url(lease.domain.root + place), is_list=True) for place in USUAL_PLACES]
    links = [link for link in listed_links(named, depth=1, known=known) if link is not None and not link.link.refusal]
    return ListChunk(links, depth=1, found_by=found_by)
