"""Queries for users: pages, reports, changes, explanations, duplicates, checks.

`read_domain_report` returns the freshness of a domain, `explain_url` why a page was or was not visited,
`list_newest_changes` and `read_feed` what changed, `read_version` the content of a page at an instant, and
`check_invariants` which invariants are violated. This package may use all packages of the store but plan and retention.
The names are imported on first use, because a crawl needs few of them.
"""

from typing import TYPE_CHECKING

from crawler.store.lazy_names import make_getattr

if TYPE_CHECKING:
    from crawler.store.report.checks import Finding, check_invariants, count_domains
    from crawler.store.report.domain_reports import DomainReport, read_domain_report, read_traffic
    from crawler.store.report.duplicates import (
        NearDuplicate,
        NearDuplicateGroup,
        fill_fingerprints,
        find_near_duplicate_groups,
        find_near_duplicates,
    )
    from crawler.store.report.explain import Explanation, InboxKind, PageFacts, PriorLevel, PriorSource, explain_url
    from crawler.store.report.export import (
        FIRST_VERSION,
        ExportedPage,
        VersionKey,
        read_changes_to_export,
        read_pages_to_export,
        read_shared_digests,
        read_versions_to_export,
    )
    from crawler.store.report.expressions import IMPORTANCE, MIX, Backlog, count_pages, list_holders, read_backlog
    from crawler.store.report.feed import (
        BlockChange,
        ChangeFilter,
        EventKind,
        FeedItem,
        append_to_feed,
        count_changes,
        count_unread,
        find_changed_domains,
        list_newest_changes,
        read_feed,
        read_feed_end,
        read_feed_from,
        read_feed_source,
        read_forgotten_until,
        read_last_change,
        require_stored,
    )
    from crawler.store.report.feed_listener import listen_to_feed
    from crawler.store.report.freshness import (
        ALL,
        ANY_AGE,
        FAILING,
        MAX_AGE,
        RENDERED,
        CountState,
        count_after_crawl,
        count_tracked_pages,
        read_count_state,
        read_largest_groups,
        store_figures,
    )
    from crawler.store.report.gauges import CalibrationGauge, DomainGauge, read_domain_gauges
    from crawler.store.report.history import PastFreshness, read_freshness_history
    from crawler.store.report.pages import PageLine, list_top_pages
    from crawler.store.report.sql import QueryResult, ReaderRole, grant_reading, revoke_reading, run_query
    from crawler.store.report.target import read_target
    from crawler.store.report.url_lists import (
        AnnouncedDate,
        ListReport,
        SourceReport,
        list_announced_dates,
        list_signal_sources,
        read_url_lists,
    )
    from crawler.store.report.values import ValueReading, list_numbers, read_values
    from crawler.store.report.versions import (
        PageVersion,
        PastPage,
        StoredHeaders,
        VersionContent,
        list_pages_at,
        list_versions,
        read_version,
    )

__getattr__ = make_getattr(__name__, __file__)
