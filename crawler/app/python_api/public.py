"""The names of the public Python API, which `crawler.app` exports."""

from crawler.app.crawl import CrawlResult
from crawler.app.delivery.notifications import SubscriptionRequest, SubscriptionState
from crawler.app.domains import DomainDetails
from crawler.app.imports import ImportResult
from crawler.app.page_list import PageAction, PageActionResult, PageCategory, PageListPart, PageOrder, PageQuery
from crawler.app.pages import VersionDiff
from crawler.app.python_api.app import App, BlockingApp, open_app
from crawler.app.running.users import Invitation, User
from crawler.core.domain import Domain
from crawler.core.domain_settings import DomainSettings
from crawler.core.page.selectors import View
from crawler.core.page_rules import PageRule
from crawler.core.visit.state import State
from crawler.errors import BadInput, Conflict, CrawlerError, CursorAhead, CursorTooOld, NotFound, StoreUnavailable
from crawler.export.sqlite_index import SearchHit
from crawler.store.actions import Action
from crawler.store.report import (
    DomainReport,
    EventKind,
    ExportedPage,
    FeedItem,
    PageVersion,
    ValueReading,
    VersionContent,
)
