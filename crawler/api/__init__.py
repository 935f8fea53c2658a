"""OFFERS: the verbs of recrawl to other programs, by names that stay: Python, and what is built on it.

    from crawler import api

    with api.open_store() as store:
        store.add("https://docs.example.com")
        store.crawl("docs.example.com")
        for page in store.pages("docs.example.com"):
            print(page.url, page.text)

`async with api.open_store()` gives the same verbs for asyncio. Each calls what the command of its name calls, and
raises CrawlerError with the sentence that the command prints; the values are those of the store's reports. Other rooms
of this distribution may change with any version. docs/python.md has the whole. Uses the verbs of the command, and the
rooms below it.
"""

from crawler.api.blocking import BlockingStore
from crawler.api.opening import open_store
from crawler.api.store import Store
from crawler.core.domain import Domain
from crawler.core.domain_settings import DomainSettings
from crawler.core.visit import State
from crawler.engine import ShiftResult
from crawler.errors import BadInput, CrawlerError, CursorAhead, CursorTooOld, StoreUnavailable
from crawler.export import SearchHit
from crawler.store.report import DomainReport, EventKind, FeedItem, PageVersion, TakenPage, VersionContent

__all__ = [
    "BadInput",
    "BlockingStore",
    "CrawlerError",
    "CursorAhead",
    "CursorTooOld",
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
    "open_store",
]
