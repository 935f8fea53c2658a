"""What people ask of the store: pages, reports, changes, explanations, duplicates, checks.

`domain_report` says how fresh a domain is, `explain` why a page was or was not looked at, `newest_changes` and
`read_feed` what changed, `version_of` what a page said at an instant, `check` whether the invariants hold. Nothing here
is called by a crawl but `stamp_feed`. Uses all rooms before it.
"""

from crawler.store.report.announced import announcements
from crawler.store.report.checks import Finding, check, count_domains
from crawler.store.report.domain_reports import DomainReport, domain_report, traffic
from crawler.store.report.duplicates import Alike, Near, alike, fill, near
from crawler.store.report.explain import Explanation, PageFacts, PriorLevel, PriorSource, Waiting, explain
from crawler.store.report.feed import (
    ChangeFilter,
    Edit,
    EventKind,
    FeedItem,
    count_changes,
    domains_with_changes,
    end_of_feed,
    feed_source,
    forgotten_until,
    last_of,
    newest_changes,
    read_feed,
    read_on,
    require_kept,
    stamp_feed,
)
from crawler.store.report.figures import (
    ALL,
    FAILING,
    HOWEVER_OLD,
    KEPT_FOR,
    RENDERED,
    Counting,
    count_after,
    counting_of,
    keep_figures,
    tracked_pages,
    usual_alike,
)
from crawler.store.report.gauges import CalibrationGauge, DomainGauge, domain_gauges
from crawler.store.report.history import PastFreshness, freshness_over_time
from crawler.store.report.lists import GivenDate, ListReport, SourceFacts, dates_given, lists_of, signal_sources
from crawler.store.report.pages import PageLine, pages, target_of
from crawler.store.report.reports import IMPORTANCE, MIX, Workload, holders, pages_beneath, workload
from crawler.store.report.sql import Answered, ReaderRole, answer_to, grant_reading, revoke_reading
from crawler.store.report.taken import (
    FIRST_VERSION,
    TakenPage,
    VersionKey,
    changes_to_take,
    pages_to_take,
    shared_digests,
    versions_to_take,
)
from crawler.store.report.versions import (
    KeptHeaders,
    PageVersion,
    PastPage,
    VersionContent,
    pages_at,
    version_of,
    versions_of,
)
