"""recrawl for programs: open a store, add domains, crawl, and read changes, pages, texts, versions and freshness.

    import recrawl

    with recrawl.open_store() as store:
        store.add("https://docs.example.com")
        store.crawl("docs.example.com")
        for page in store.pages("docs.example.com"):
            print(page.url, page.text)

`async with recrawl.open_store()` gives the same verbs for asyncio. Each calls what the command of its name calls, and
raises CrawlerError with the sentence that the command prints. What stands here stays; the other packages of this
distribution may change with any version. docs/python.md has the whole.
"""

from crawler import __version__
from crawler.api import (
    BadInput,
    BlockingStore,
    CrawlerError,
    Domain,
    DomainReport,
    DomainSettings,
    EventKind,
    FeedItem,
    PageVersion,
    SearchHit,
    ShiftResult,
    State,
    Store,
    StoreUnavailable,
    TakenPage,
    VersionContent,
    open_store,
)

__all__ = [
    "BadInput",
    "BlockingStore",
    "CrawlerError",
    "Domain",
    "DomainReport",
    "DomainSettings",
    "EventKind",
    "FeedItem",
    "PageVersion",
    "SearchHit",
    "ShiftResult",
    "State",
    "Store",
    "StoreUnavailable",
    "TakenPage",
    "VersionContent",
    "__version__",
    "open_store",
]
