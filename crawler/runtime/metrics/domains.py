"""How the domains are, as families of metrics."""

from collections.abc import Callable, Iterator, Sequence

from prometheus_client.core import GaugeMetricFamily, Metric

from crawler.store.report import CalibrationGauge, DomainGauge

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


def domain_families(domains: Sequence[DomainGauge], calibration: Sequence[CalibrationGauge]) -> Iterator[Metric]:
    """The gauges; a figure that is not known is left out."""
    for name, meaning, value_of in GAUGES:
        family = GaugeMetricFamily(name, meaning, labels=["domain"])
        for each in domains:
            value = value_of(each)
            if value is not None:
                family.add_metric([each.domain], value)
        yield family
    looks = GaugeMetricFamily("recrawl_calibration_looks", "Looks of the last week that told.", labels=["looks"])
    changes = GaugeMetricFamily(
        "recrawl_calibration_changes", "Changes in them: as expected before, and found.", labels=["looks", "changes"]
    )
    deviations = GaugeMetricFamily(
        "recrawl_calibration_deviations", "By how many deviations more was found than expected.", labels=["looks"]
    )
    for found in calibration:
        kind = "audit" if found.audit else "other"
        looks.add_metric([kind], found.looks)
        changes.add_metric([kind, "expected"], found.expected)
        changes.add_metric([kind, "found"], found.found)
        if found.deviations is not None:
            deviations.add_metric([kind], found.deviations)
    yield from (looks, changes, deviations)
