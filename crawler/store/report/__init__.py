"""What people ask of the store: pages, reports, changes, explanations, duplicates, checks.

`domain_report` says how fresh a domain is, `explain` why a page was or was not looked at, `read` what changed,
`check` whether the invariants hold. Nothing here is called by a crawl but `stamp`. Uses all rooms before it.
"""

from crawler.store.report.checks import Finding, check, count_domains
from crawler.store.report.duplicates import Alike, Near, alike, fill, near
from crawler.store.report.explain import Explanation, PageFacts, Waiting, explain
from crawler.store.report.feed import Edit, EventKind, FeedItem, last_of, read_feed, stamp_feed
from crawler.store.report.lists import GivenDate, ListReport, dates_given, lists_of
from crawler.store.report.pages import target_of
from crawler.store.report.prior_source import PriorLevel, PriorSource
from crawler.store.report.reports import (
    IMPORTANCE,
    DomainReport,
    PageLine,
    Workload,
    domain_report,
    holders,
    pages,
    pages_beneath,
    workload,
)
from crawler.store.report.sources import SourceFacts, signal_sources
from crawler.store.report.traffic import traffic

__all__ = [
    "IMPORTANCE",
    "Alike",
    "DomainReport",
    "Edit",
    "EventKind",
    "Explanation",
    "FeedItem",
    "Finding",
    "GivenDate",
    "ListReport",
    "Near",
    "PageFacts",
    "PageLine",
    "PriorLevel",
    "PriorSource",
    "SourceFacts",
    "Waiting",
    "Workload",
    "alike",
    "check",
    "count_domains",
    "dates_given",
    "domain_report",
    "explain",
    "fill",
    "holders",
    "last_of",
    "lists_of",
    "near",
    "pages",
    "pages_beneath",
    "read_feed",
    "signal_sources",
    "stamp_feed",
    "target_of",
    "traffic",
    "workload",
]
