"""Families of metrics, by Prometheus' conventions for names and units: of counts, processes, domains, subscriptions."""

import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime

import psutil
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric

from crawler.core.change.change import Change
from crawler.runtime.children import tagged
from crawler.runtime.metrics import counted
from crawler.runtime.metrics.counted import Tally
from crawler.store.report import CalibrationGauge, DomainGauge
from crawler.store.subscriptions import Subscription

OUTCOMES = (*(change.value for change in Change if change is not Change.UNKNOWN), counted.FAILED, counted.DEAD_LINK)
ENDS = (counted.DONE, counted.HELD, counted.LOST, counted.BROKEN, counted.GIVEN_BACK)
# By the name in Tally.sums; the suffix _total is Prometheus' own.
SUMS = {
    "requests": ("recrawl_requests", "Requests sent, robots.txt and repeats among them."),
    "received_bytes": ("recrawl_received_bytes", "Bytes received in bodies and headers."),
    "saved_bytes": ("recrawl_saved_bytes", "Bytes that a 304 or a HEAD spared, as large as the page was last."),
    "not_modified": ("recrawl_not_modified", "Looks answered by 304 Not Modified."),
    "new": ("recrawl_new_pages", "Pages heard of for the first time."),
    "read": ("recrawl_read_bodies", "Bodies that had to be read."),
    "rendered": ("recrawl_rendered_pages", "Pages shown by a browser."),
    "refused": ("recrawl_refused_pages", "Pages not asked for, by robots.txt or their user's wish."),
}
# By what stands in a command line; the first that fits.
ROLES = {
    "parser_process": "reader",
    "helper_process": "helper",
    "chrom": "browser",
    "prefect.engine": "run",
    "prefect worker": "worker",
    "prefect_server": "server",
}
OTHER, SELF = "other", "self"
ALL_ROLES = (SELF, *dict.fromkeys(ROLES.values()), OTHER)

MOST_DOMAINS = 100  # each has a dozen time series; further ones are told of together

GAUGES: tuple[tuple[str, str, Callable[[DomainGauge], float | None]], ...] = (
    ("recrawl_domain_freshness_ratio", "Freshness, weighted by importance.", lambda d: d.freshness),
    ("recrawl_domain_freshness_target_ratio", "What its user wants of it.", lambda d: d.target_freshness),
    ("recrawl_domain_known_pages", "Pages that were read and are there.", lambda d: d.pages_known),
    ("recrawl_domain_unread_pages", "Pages heard of and never read.", lambda d: d.pages_new),
    ("recrawl_domain_gone_pages", "Pages that are gone.", lambda d: d.pages_gone),
    ("recrawl_domain_dead_links", "Addresses that lead to nothing, and never led to a page.", lambda d: d.dead_links),
    ("recrawl_domain_withheld_pages", "Pages whose new content is withheld.", lambda d: d.pages_withheld),
    ("recrawl_domain_due_pages", "Known pages whose time has come.", lambda d: d.due),
    ("recrawl_domain_oldest_look_seconds", "Since the look of the page unseen longest.", lambda d: d.oldest_look_s),
    ("recrawl_domain_leased", "Domains that are being crawled.", lambda d: d.leased),
    ("recrawl_domain_held", "Domains that are left alone.", lambda d: d.held),
    ("recrawl_domain_waiting", "Domains that wait for a worker.", lambda d: d.waiting),
    ("recrawl_domains", "Domains told of.", lambda d: d.domains),
)

MOST_SUBSCRIPTIONS = 100  # those that have been waiting longest; each has four time series


def crawl_families(tally: Tally) -> Iterator[Metric]:
    """All counts; what has never happened is there as 0, so that a rate begins where it should."""
    yield _counters("recrawl_looks", "Looks recorded, by what they found.", "outcome", OUTCOMES, tally.looks)
    yield _counters("recrawl_failed_looks", "Looks that failed, by reason.", "reason", (), tally.failures)
    yield _counters("recrawl_leases", "Leases ended, by how.", "end", ENDS, tally.leases)
    for name, (family, meaning) in SUMS.items():
        yield CounterMetricFamily(family, meaning, value=tally.sums[name])
    yield _lease_seconds(tally)


def _lease_seconds(tally: Tally) -> Metric:
    buckets, below = [], 0
    for place, bound in enumerate(counted.LEASE_BUCKETS):
        below += tally.lease_seconds[str(place)]
        buckets.append((str(float(bound)), below))
    buckets.append(("+Inf", tally.lease_seconds.total()))
    sum_seconds = tally.sums["lease_milliseconds"] / 1000
    return HistogramMetricFamily(
        "recrawl_lease_seconds", "How long leases lasted.", buckets=buckets, sum_value=sum_seconds
    )


def _counters(name: str, meaning: str, label: str, always: tuple[str, ...], counts: Mapping[str, int]) -> Metric:
    family = CounterMetricFamily(name, meaning, labels=[label])
    for value in (*always, *sorted(counts.keys() - set(always))):
        family.add_metric([value], counts.get(value, 0))
    return family


def process_families(tag: str | None) -> Iterator[Metric]:
    """Gauges by role, of this process and of all that bear the tag of a service."""
    many, memory, seconds = (defaultdict[str, float](float) for _ in range(3))
    own = os.getpid()
    for pid in {own, *(each.pid for each in (tagged(tag) if tag else ()))}:
        try:
            each = psutil.Process(pid)
            with each.oneshot():
                command = " ".join(each.cmdline())
                role = SELF if pid == own else next((role for sign, role in ROLES.items() if sign in command), OTHER)
                held, used = each.memory_info().rss, each.cpu_times()
        except psutil.Error:
            continue  # it has ended since
        many[role] += 1
        memory[role] += held
        seconds[role] += used.user + used.system
    # What processes share is counted with each: the sum of memory is an upper bound.
    for name, meaning, values in (
        ("recrawl_processes", "Processes, by what they do.", many),
        ("recrawl_memory_bytes", "Resident memory of the processes that live now.", memory),
        ("recrawl_cpu_seconds", "Processor time that the processes that live now have used.", seconds),
    ):
        yield _gauges(name, meaning, "role", ((role, values.get(role, 0)) for role in ALL_ROLES))


def domain_families(domains: Sequence[DomainGauge], calibration: Sequence[CalibrationGauge]) -> Iterator[Metric]:
    """The gauges; a figure that is not known is left out."""
    for name, meaning, value_of in GAUGES:
        yield _gauges(name, meaning, "domain", ((each.domain, value_of(each)) for each in domains))
    found = [("audit" if each.audit else "other", each) for each in calibration]
    looks = ((kind, each.looks) for kind, each in found)
    yield _gauges("recrawl_calibration_looks", "Looks of the last week that told.", "looks", looks)
    changes = GaugeMetricFamily(
        "recrawl_calibration_changes", "Changes in them: as expected before, and found.", labels=["looks", "changes"]
    )
    for kind, each in found:
        changes.add_metric([kind, "expected"], each.expected)
        changes.add_metric([kind, "found"], each.found)
    yield changes
    deviations = ((kind, each.deviations) for kind, each in found)
    meaning = "By how many deviations more was found than expected."
    yield _gauges("recrawl_calibration_deviations", meaning, "looks", deviations)


def subscription_families(found: Sequence[Subscription], *, at: datetime) -> Iterator[Metric]:
    """The gauges of subscriptions at an instant."""

    def untold_s(subscription: Subscription) -> float:
        since = subscription.untold_since(at=at)
        return (at - since).total_seconds() if since is not None else 0.0

    gauges: tuple[tuple[str, str, Callable[[Subscription], float]], ...] = (
        ("recrawl_subscription_failures", "Failures of its receiver, in a row.", lambda s: s.failures),
        ("recrawl_subscription_waiting_changes", "Changes that it was not told yet.", lambda s: s.waiting),
        ("recrawl_subscription_untold_seconds", "Since the oldest change that it should have been told.", untold_s),
        ("recrawl_subscription_dead_letters", "Messages that were given up.", lambda s: s.dead),
    )
    told = sorted(found, key=lambda s: (-untold_s(s), -s.dead, s.id))[:MOST_SUBSCRIPTIONS]
    for name, meaning, value_of in gauges:
        values = ((str(each.id), value_of(each)) for each in sorted(told, key=lambda s: s.id))
        yield _gauges(name, meaning, "subscription", values)


def _gauges(name: str, meaning: str, label: str, values: Iterable[tuple[str, float | None]]) -> Metric:
    """Return a gauge for each value of a label; a figure that is not known is left out."""
    family = GaugeMetricFamily(name, meaning, labels=[label])
    for of, value in values:
        if value is not None:
            family.add_metric([of], value)
    return family
