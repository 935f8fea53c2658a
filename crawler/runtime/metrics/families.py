"""Metric families of crawls, processes, domains and subscriptions, with the naming conventions of Prometheus."""

import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime

import psutil
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric

from crawler.core.change.change import Change
from crawler.runtime.background_processes import list_tagged
from crawler.runtime.metrics import counting
from crawler.runtime.metrics.counting import DEAD_LINK, FAILED_VISIT, CrawlCounts
from crawler.store.report import CalibrationGauge, DomainGauge
from crawler.store.subscriptions import Subscription

OUTCOMES = (*(change.value for change in Change if change is not Change.UNKNOWN), FAILED_VISIT, DEAD_LINK)
LEASE_OUTCOMES = (counting.DONE, counting.SUSPENDED, counting.LOST, counting.BROKEN, counting.GIVEN_BACK)
# Family and help text by the name in CrawlCounts.sums; prometheus_client adds the suffix _total.
SUMS = {
    "requests": ("recrawl_requests", "Requests sent, including robots.txt and retries."),
    "received_bytes": ("recrawl_received_bytes", "Bytes received in response bodies, as transferred."),
    "saved_bytes": (
        "recrawl_saved_bytes",
        "Bytes not transferred thanks to 304 or HEAD, by the last size of the page.",
    ),
    "not_modified": ("recrawl_not_modified", "Visits with a 304 Not Modified response."),
    "new_pages": ("recrawl_new_pages", "Pages found for the first time."),
    "parsed_bodies": ("recrawl_parsed_bodies", "Bodies that were parsed."),
    "rendered": ("recrawl_rendered_pages", "Pages rendered in a browser."),
    "excluded": ("recrawl_excluded_pages", "Pages excluded by robots.txt or by the scope of their domain."),
}
# The role of a process by a substring of its command line; the first match counts.
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

MAX_DOMAINS = 100  # each has a dozen time series; further domains are summed up

GAUGES: tuple[tuple[str, str, Callable[[DomainGauge], float | None]], ...] = (
    ("recrawl_domain_freshness_ratio", "Freshness, weighted by importance.", lambda d: d.freshness),
    ("recrawl_domain_freshness_target_ratio", "Freshness target.", lambda d: d.target_freshness),
    ("recrawl_domain_fetched_pages", "Fetched pages that exist.", lambda d: d.pages_fetched),
    ("recrawl_domain_unfetched_pages", "Discovered pages that were never fetched.", lambda d: d.pages_unfetched),
    ("recrawl_domain_gone_pages", "Pages that are gone.", lambda d: d.pages_gone),
    ("recrawl_domain_dead_links", "Linked URLs that never were a page.", lambda d: d.dead_links),
    ("recrawl_domain_withheld_pages", "Pages whose new content is withheld.", lambda d: d.pages_withheld),
    ("recrawl_domain_due_pages", "Fetched pages that are due.", lambda d: d.due),
    ("recrawl_domain_oldest_visit_seconds", "Longest time since a page's last visit.", lambda d: d.oldest_visit_s),
    ("recrawl_domain_leased", "Domains that are being crawled.", lambda d: d.leased),
    ("recrawl_domain_suspended", "Domains that are suspended.", lambda d: d.held),
    ("recrawl_domain_waiting", "Domains that wait to be crawled.", lambda d: d.waiting),
    ("recrawl_domains", "Number of domains that the label stands for.", lambda d: d.domains),
)

MAX_SUBSCRIPTIONS = 100  # the longest overdue ones; each has four time series


def build_crawl_families(counts: CrawlCounts) -> Iterator[Metric]:
    """Yield all counters and the histogram; outcomes that have not occurred are 0, so that rates start correctly."""
    yield _build_counters("recrawl_visits", "Recorded visits, by outcome.", "outcome", OUTCOMES, counts.visits)
    yield _build_counters("recrawl_failed_visits", "Failed visits, by reason.", "reason", (), counts.failures)
    yield _build_counters("recrawl_leases", "Ended leases, by outcome.", "end", LEASE_OUTCOMES, counts.leases)
    for name, (family, meaning) in SUMS.items():
        yield CounterMetricFamily(family, meaning, value=counts.sums[name])
    yield _build_lease_seconds(counts)


def _build_lease_seconds(counts: CrawlCounts) -> Metric:
    buckets, below = [], 0
    for index, bound in enumerate(counting.LEASE_BUCKETS):
        below += counts.lease_seconds[str(index)]
        buckets.append((str(float(bound)), below))
    buckets.append(("+Inf", counts.lease_seconds.total()))
    total = counts.sums["lease_milliseconds"] / 1000
    return HistogramMetricFamily("recrawl_lease_seconds", "How long leases lasted.", buckets=buckets, sum_value=total)


def _build_counters(name: str, meaning: str, label: str, always: tuple[str, ...], counts: Mapping[str, int]) -> Metric:
    family = CounterMetricFamily(name, meaning, labels=[label])
    for value in (*always, *sorted(counts.keys() - set(always))):
        family.add_metric([value], counts.get(value, 0))
    return family


def build_process_families(tag: str | None) -> Iterator[Metric]:
    """Yield the gauges of this process and of all processes with a tag, by role."""
    counts, memory, seconds = (defaultdict[str, float](float) for _ in range(3))
    own_pid = os.getpid()
    for pid in {own_pid, *(each.pid for each in (list_tagged(tag) if tag else ()))}:
        try:
            each = psutil.Process(pid)
            with each.oneshot():
                command = " ".join(each.cmdline())
                found = (role for part, role in ROLES.items() if part in command)
                role = SELF if pid == own_pid else next(found, OTHER)
                resident_bytes, cpu_times = each.memory_info().rss, each.cpu_times()
        except psutil.Error:
            continue  # the process has ended
        counts[role] += 1
        memory[role] += resident_bytes
        seconds[role] += cpu_times.user + cpu_times.system
    # Shared memory counts in each process, so the sum is an upper bound.
    for name, meaning, values in (
        ("recrawl_processes", "Processes, by role.", counts),
        ("recrawl_memory_bytes", "Resident memory of the running processes.", memory),
        ("recrawl_cpu_seconds", "CPU time used by the running processes.", seconds),
    ):
        yield _build_gauges(name, meaning, "role", ((role, values.get(role, 0)) for role in ALL_ROLES))


def build_domain_families(domains: Sequence[DomainGauge], calibration: Sequence[CalibrationGauge]) -> Iterator[Metric]:
    """Yield the gauges of domains, without unknown values."""
    for name, meaning, get_value in GAUGES:
        yield _build_gauges(name, meaning, "domain", ((each.domain, get_value(each)) for each in domains))
    gauges_by_kind = [("audit" if each.audit else "other", each) for each in calibration]
    visits = ((kind, each.visits) for kind, each in gauges_by_kind)
    meaning = "Visits of the last week that show whether a page has changed."
    yield _build_gauges("recrawl_calibration_visits", meaning, "visits", visits)
    meaning = "Changes in these visits: expected before, and found."
    changes = GaugeMetricFamily("recrawl_calibration_changes", meaning, labels=["visits", "changes"])
    for kind, each in gauges_by_kind:
        changes.add_metric([kind, "expected"], each.expected)
        changes.add_metric([kind, "found"], each.found)
    yield changes
    deviations = ((kind, each.deviations) for kind, each in gauges_by_kind)
    meaning = "Standard deviations by which the found changes exceed the expected ones."
    yield _build_gauges("recrawl_calibration_deviations", meaning, "visits", deviations)


def build_subscription_families(subscriptions: Sequence[Subscription], *, at: datetime) -> Iterator[Metric]:
    """Yield the gauges of subscriptions at an instant."""

    def compute_unnotified_seconds(subscription: Subscription) -> float:
        since = subscription.get_overdue_since(at=at)
        return (at - since).total_seconds() if since is not None else 0.0

    gauges: tuple[tuple[str, str, Callable[[Subscription], float]], ...] = (
        ("recrawl_subscription_failures", "Consecutive failures of the receiver.", lambda s: s.failures),
        ("recrawl_subscription_waiting_changes", "Changes that wait for delivery.", lambda s: s.waiting),
        ("recrawl_subscription_delay_seconds", "Time since the oldest overdue change.", compute_unnotified_seconds),
        ("recrawl_subscription_dead_letters", "Messages that could not be delivered.", lambda s: s.dead),
    )
    listed = sorted(subscriptions, key=lambda s: (-compute_unnotified_seconds(s), -s.dead, s.id))[:MAX_SUBSCRIPTIONS]
    for name, meaning, get_value in gauges:
        values = ((str(each.id), get_value(each)) for each in sorted(listed, key=lambda s: s.id))
        yield _build_gauges(name, meaning, "subscription", values)


def _build_gauges(name: str, meaning: str, label: str, values: Iterable[tuple[str, float | None]]) -> Metric:
    """Return a gauge family with the values of a label, without unknown values."""
    family = GaugeMetricFamily(name, meaning, labels=[label])
    for label_value, value in values:
        if value is not None:
            family.add_metric([label_value], value)
    return family
