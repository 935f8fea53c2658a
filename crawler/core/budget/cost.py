"""The cost of a visit in requests and bytes, by kind of request, learned per domain."""

from enum import StrEnum
from typing import cast

from msgspec import Struct
from msgspec.structs import replace

ROUND_TRIP_BYTES = 14_600  # the initial congestion window (RFC 6928); more bytes take more round trips
MEMORY_VISITS = 200  # visits over which the mean fades, so that it adapts to a redesign


class RequestKind(StrEnum):
    """The kind of request that fetches a page."""

    FULL = "full"
    CONDITIONAL = "conditional"  # with validators, whatever the response
    HEAD = "head"  # a HEAD first, then a GET unless the HEAD shows that the page is unchanged
    RENDER = "render"  # in a browser, with all resources of the page


class Cost(Struct, frozen=True):
    """The mean cost of one visit. requests: includes redirects and retries.  visits: the number of visits measured."""

    requests: float
    received_bytes: float
    visits: int = 0


class ShadowPrice(Struct, frozen=True):
    """The shadow price of a request and of a byte, in importance x days."""

    per_request: float
    per_byte: float = 0.0

    def compute_min_value(self, cost: Cost) -> float:
        """Return the minimum value of a visit with this cost."""
        return self.per_request * cost.requests + self.per_byte * cost.received_bytes


class Costs(Struct, frozen=True):
    """The costs of a domain, one field per RequestKind. A default is a guess until the first visit of that kind."""

    conditional: Cost = Cost(requests=1.0, received_bytes=500.0)
    full: Cost = Cost(requests=1.0, received_bytes=30_000.0)
    head: Cost = Cost(requests=1.25, received_bytes=7_500.0)
    render: Cost = Cost(requests=20.0, received_bytes=1_000_000.0)

    def get_cost(self, kind: RequestKind) -> Cost:
        return cast("Cost", getattr(self, kind.value))


# In round trips. If neither requests nor bytes are scarce, both cost time: one per request or per ROUND_TRIP_BYTES.
TIME_PRICE = ShadowPrice(per_request=1.0, per_byte=1 / ROUND_TRIP_BYTES)


def is_head_cheaper(shadow_price: ShadowPrice, costs: Costs, *, body_bytes: int) -> bool:
    """Return whether a HEAD, followed by a GET as often as measured, costs less than a GET each time."""
    followed = costs.head.requests - 1
    head, get = Cost(1 + followed, followed * body_bytes), Cost(1, body_bytes)
    return shadow_price.compute_min_value(head) < shadow_price.compute_min_value(get)


def learn_cost(costs: Costs, kind: RequestKind, *, requests: int, received_bytes: int) -> Costs:
    """Update a mean cost with one visit. The first visit replaces the guess; old visits fade (MEMORY_VISITS)."""
    before = costs.get_cost(kind)
    part = 1 / min(before.visits + 1, MEMORY_VISITS)
    after = Cost(
        requests=before.requests + part * (requests - before.requests),
        received_bytes=before.received_bytes + part * (received_bytes - before.received_bytes),
        visits=before.visits + 1,
    )
    return replace(costs, **{kind.value: after})
