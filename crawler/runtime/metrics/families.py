"""The counts of crawling as families of metrics, by Prometheus' conventions for names and units."""

from collections.abc import Iterator, Mapping

from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily, Metric

from crawler.core.change.change import Change
from crawler.runtime.metrics.counted import BROKEN, DONE, GIVEN_BACK, HELD, LOST
from crawler.runtime.metrics.tally import DEAD_LINK, FAILED, LEASE_BUCKETS, Tally

OUTCOMES = (*(change.value for change in Change if change is not Change.UNKNOWN), FAILED, DEAD_LINK)
ENDS = (DONE, HELD, LOST, BROKEN, GIVEN_BACK)
# By the name in Tally.sums; the suffix _total is Prometheus' own.
SUMS = {
    "requests": ("recrawl_requests", "Requests sent, robots.txt and repeats among them."),
    "received_bytes": ("recrawl_received_bytes", "Bytes received in bodies and headers."),
    "saved_bytes": ("recrawl_saved_bytes", "Bytes that a 304 or a HEAD spared, as large as the page was last."),
    "not_modified": ("recrawl_not_modified", "Looks answered by 304 Not Modified."),
    "new_pages": ("recrawl_new_pages", "Pages heard of for the first time."),
    "read": ("recrawl_read_bodies", "Bodies that had to be read."),
    "rendered": ("recrawl_rendered_pages", "Pages shown by a browser."),
    "refused": ("recrawl_refused_pages", "Pages not asked for, by robots.txt or their user's wish."),
}


def crawl_families(tally: Tally) -> Iterator[Metric]:
    """All counts; what has never happened is there as 0, so that a rate begins where it should."""
    yield _labelled("recrawl_looks", "Looks recorded, by what they found.", "outcome", OUTCOMES, tally.looks)
    yield _labelled("recrawl_failed_looks", "Looks that failed, by reason.", "reason", (), tally.failures)
    yield _labelled("recrawl_leases", "Leases ended, by how.", "end", ENDS, tally.leases)
    for name, (family, meaning) in SUMS.items():
        yield CounterMetricFamily(family, meaning, value=tally.sums[name])
    yield _lease_seconds(tally)


def _labelled(name: str, meaning: str, label: str, always: tuple[str, ...], counts: Mapping[str, int]) -> Metric:
    family = CounterMetricFamily(name, meaning, labels=[label])
    for value in (*always, *sorted(counts.keys() - set(always))):
        family.add_metric([value], counts.get(value, 0))
    return family


def _lease_seconds(tally: Tally) -> Metric:
    buckets, below = [], 0
    for place, bound in enumerate(LEASE_BUCKETS):
        below += tally.lease_seconds[str(place)]
        buckets.append((str(float(bound)), below))
    buckets.append(("+Inf", tally.lease_seconds.total()))
    sum_seconds = tally.sums["lease_milliseconds"] / 1000
    return HistogramMetricFamily(
        "recrawl_lease_seconds", "How long leases lasted.", buckets=buckets, sum_value=sum_seconds
    )
