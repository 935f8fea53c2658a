"""Who is not told of changes, as families of metrics. Targets are named by their numbers alone."""

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime

from prometheus_client.core import GaugeMetricFamily, Metric

from crawler.store.subscriptions import SubscriptionState

MOST_SUBSCRIPTIONS = 100  # those that have been waiting longest; each has four time series


def subscription_families(states: Sequence[SubscriptionState], *, at: datetime) -> Iterator[Metric]:
    """The gauges of subscriptions at an instant."""

    def untold_s(state: SubscriptionState) -> float:
        since = state.untold_since(at=at)
        return (at - since).total_seconds() if since is not None else 0.0

    gauges: tuple[tuple[str, str, Callable[[SubscriptionState], float]], ...] = (
        ("recrawl_subscription_failures", "Failures of its receiver, in a row.", lambda s: s.failures),
        ("recrawl_subscription_waiting_changes", "Changes that it was not told yet.", lambda s: s.waiting),
        ("recrawl_subscription_untold_seconds", "Since the oldest change that it should have been told.", untold_s),
        ("recrawl_subscription_dead_letters", "Messages that were given up.", lambda s: s.dead),
    )
    told = sorted(states, key=lambda s: (-untold_s(s), -s.dead, s.subscription))[:MOST_SUBSCRIPTIONS]
    for name, meaning, value_of in gauges:
        family = GaugeMetricFamily(name, meaning, labels=["subscription"])
        for state in sorted(told, key=lambda s: s.subscription):
            family.add_metric([str(state.subscription)], value_of(state))
        yield family
