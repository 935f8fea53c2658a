"""Families of metrics, by Prometheus' conventions for names and units: of counts, processes, domains, subscriptions."""

import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime

import psutil
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric

from crawler.core.change.change import Change
from crawler.runtime.children import list_tagged
from crawler.runtime.metrics import counting
from crawler.runtime.metrics.counting import CrawlCounts
from crawler.store.report import CalibrationGauge, DomainGauge
from crawler.store.subscriptions import Subscription

OUTCOMES = (
    *(change.value for change in Change if change is not Change.UNKNOWN),
    counting.FAILED_VISIT,
    counting.DEAD_LINK,
)
LEASE_OUTCOMES = (counting.DONE, counting.SUSPENDED, counting.LOST, counting.BROKEN, counting.GIVEN_BACK)
# By the name in CrawlCounts.sums; the suffix _total is Prometheus' own.
SUMS = {
    "requests": ("recrawl_requests", "Requests sent, robots.txt and repeats among them."),
    "received_bytes": ("recrawl_received_bytes", "Bytes received in bodies and headers."),
    "saved_bytes": ("recrawl_saved_bytes", "Bytes that a 304 or a HEAD spared, as large as the page was last."),
    "not_modified": ("recrawl_not_modified", "Looks answered by 304 Not Modified."),
    "new_pages": ("recrawl_new_pages", "Pages found for the first time."),
    "parsed_bodies": ("recrawl_parsed_bodies", "Bodies that were parsed."),
    "rendered": ("recrawl_rendered_pages", "Pages shown by a browser."),
    "excluded": ("recrawl_excluded_pages", "Pages excluded by robots.txt or by the scope of their domain."),
}
# By what stands in a command line; the first that fits.
ROLES = {
    "parser_process": "reader",
    "worker_process": "helper",
    "chrom": "browser",
    "prefect.engine": "run",
    "prefect worker": "worker",
    "prefect_server": "server",
}
OTHER, SELF = "other", "self"
ALL_ROLES = (SELF, *dict.fromkeys(ROLES.values()), OTHER)

MAX_DOMAINS = 100  # each has a dozen time series; further ones are told of together

GAUGES: tuple[tuple[str, str, Callable[[DomainGauge], float | None]], ...] = (
    ("recrawl_domain_freshness_ratio", "Freshness, weighted by importance.", lambda d: d.freshness),
    ("recrawl_domain_freshness_target_ratio", "What its user wants of it.", lambda d: d.target_freshness),
    ("recrawl_domain_known_pages", "Pages that were read and are there.", lambda d: d.pages_fetched),
    ("recrawl_domain_unread_pages", "Pages heard of and never read.", lambda d: d.pages_unfetched),
    ("recrawl_domain_gone_pages", "Pages that are gone.", lambda d: d.pages_gone),
    ("recrawl_domain_dead_links", "Addresses that lead to nothing, and never led to a page.", lambda d: d.dead_links),
    ("recrawl_domain_withheld_pages", "Pages whose new content is withheld.", lambda d: d.pages_withheld),
    ("recrawl_domain_due_pages", "Known pages whose time has come.", lambda d: d.due),
    ("recrawl_domain_oldest_look_seconds", "Since the look of the page unseen longest.", lambda d: d.oldest_visit_s),
    ("recrawl_domain_leased", "Domains that are being crawled.", lambda d: d.leased),
    ("recrawl_domain_held", "Domains that are left alone.", lambda d: d.held),
    ("recrawl_domain_waiting", "Domains that wait for a worker.", lambda d: d.waiting),
    ("recrawl_domains", "Domains told of.", lambda d: d.domains),
)

MAX_SUBSCRIPTIONS = 100  # those that have been waiting longest; each has four time series


def build_crawl_families(counts: CrawlCounts) -> Iterator[Metric]:
    """All counts; what has never happened is there as 0, so that a rate begins where it should."""
    yield _build_counters("recrawl_visits", "Looks recorded, by what they found.", "outcome", OUTCOMES, counts.visits)
    yield _build_counters("recrawl_failed_visits", "Looks that failed, by reason.", "reason", (), counts.failures)
    yield _build_counters("recrawl_leases", "Leases ended, by how.", "end", LEASE_OUTCOMES, counts.leases)
    for name, (family, meaning) in SUMS.items():
        yield CounterMetricFamily(family, meaning, value=counts.sums[name])
    yield _build_lease_seconds(counts)


def _build_lease_seconds(counts: CrawlCounts) -> Metric:
    buckets, below = [], 0
    for index, bound in enumerate(counting.LEASE_BUCKETS):
        below += counts.lease_seconds[str(index)]
        buckets.append((str(float(bound)), below))
    buckets.append(("+Inf", counts.lease_seconds.total()))
    sum_seconds = counts.sums["lease_milliseconds"] / 1000
    return HistogramMetricFamily(
        "recrawl_lease_seconds", "How long leases lasted.", buckets=buckets, sum_value=sum_seconds
    )


def _build_counters(name: str, meaning: str, label: str, always: tuple[str, ...], counts: Mapping[str, int]) -> Metric:
    family = CounterMetricFamily(name, meaning, labels=[label])
    for value in (*always, *sorted(counts.keys() - set(always))):
        family.add_metric([value], counts.get(value, 0))
    return family


def build_process_families(tag: str | None) -> Iterator[Metric]:
    """Gauges by role, of this process and of all that bear the tag of a service."""
    counts, memory, seconds = (defaultdict[str, float](float) for _ in range(3))
    own_pid = os.getpid()
    for pid in {own_pid, *(each.pid for each in (list_tagged(tag) if tag else ()))}:
        try:
            each = psutil.Process(pid)
            with each.oneshot():
                command = " ".join(each.cmdline())
                role = (
                    SELF if pid == own_pid else next((role for sign, role in ROLES.items() if sign in command), OTHER)
                )
                resident_bytes, cpu_times = each.memory_info().rss, each.cpu_times()
        except psutil.Error:
            continue  # it has ended since
        counts[role] += 1
        memory[role] += resident_bytes
        seconds[role] += cpu_times.user + cpu_times.system
    # What processes share is counted with each: the sum of memory is an upper bound.
    for name, meaning, values in (
        ("recrawl_processes", "Processes, by what they do.", counts),
        ("recrawl_memory_bytes", "Resident memory of the processes that live now.", memory),
        ("recrawl_cpu_seconds", "Processor time that the processes that live now have used.", seconds),
    ):
        yield _build_gauges(name, meaning, "role", ((role, values.get(role, 0)) for role in ALL_ROLES))


def build_domain_families(domains: Sequence[DomainGauge], calibration: Sequence[CalibrationGauge]) -> Iterator[Metric]:
    """The gauges; a figure that is not known is left out."""
    for name, meaning, get_value in GAUGES:
        yield _build_gauges(name, meaning, "domain", ((each.domain, get_value(each)) for each in domains))
    gauges_by_kind = [("audit" if each.audit else "other", each) for each in calibration]
    visits = ((kind, each.visits) for kind, each in gauges_by_kind)
    yield _build_gauges("recrawl_calibration_visits", "Looks of the last week that told.", "visits", visits)
    changes = GaugeMetricFamily(
        "recrawl_calibration_changes", "Changes in them: as expected before, and found.", labels=["visits", "changes"]
    )
    for kind, each in gauges_by_kind:
        changes.add_metric([kind, "expected"], each.expected)
        changes.add_metric([kind, "found"], each.found)
    yield changes
    deviations = ((kind, each.deviations) for kind, each in gauges_by_kind)
    meaning = "By how many deviations more was found than expected."
    yield _build_gauges("recrawl_calibration_deviations", meaning, "visits", deviations)


def build_subscription_families(subscriptions: Sequence[Subscription], *, at: datetime) -> Iterator[Metric]:
    """The gauges of subscriptions at an instant."""

    def compute_unnotified_seconds(subscription: Subscription) -> float:
        since = subscription.get_overdue_since(at=at)
        return (at - since).total_seconds() if since is not None else 0.0

    gauges: tuple[tuple[str, str, Callable[[Subscription], float]], ...] = (
        ("recrawl_subscription_failures", "Failures of its receiver, in a row.", lambda s: s.failures),
        ("recrawl_subscription_waiting_changes", "Changes that it was not told yet.", lambda s: s.waiting),
        (
            "recrawl_subscription_untold_seconds",
            "Since the oldest change that it should have been told.",
            compute_unnotified_seconds,
        ),
        ("recrawl_subscription_dead_letters", "Messages that were given up.", lambda s: s.dead),
    )
    listed = sorted(subscriptions, key=lambda s: (-compute_unnotified_seconds(s), -s.dead, s.id))[:MAX_SUBSCRIPTIONS]
    for name, meaning, get_value in gauges:
        values = ((str(each.id), get_value(each)) for each in sorted(listed, key=lambda s: s.id))
        yield _build_gauges(name, meaning, "subscription", values)


def _build_gauges(name: str, meaning: str, label: str, values: Iterable[tuple[str, float | None]]) -> Metric:
    """Return a gauge for each value of a label; a figure that is not known is left out."""
    family = GaugeMetricFamily(name, meaning, labels=[label])
    for label_value, value in values:
        if value is not None:
            family.add_metric([label_value], value)
    return family
