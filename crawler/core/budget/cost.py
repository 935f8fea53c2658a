"""The cost of a look in requests and bytes, by kind of request, learnt per domain."""

from dataclasses import dataclass, replace
from enum import StrEnum

ROUND_TRIP_BYTES = 14_600  # of a body that come with the headers (RFC 6928); more bytes take more round trips
MEMORY_VISITS = 200  # the mean reaches back over about so many looks, so that a redesign is learnt


class RequestKind(StrEnum):
    """Kind of request by which a page is asked for."""

    FULL = "full"
    CONDITIONAL = "conditional"  # with validators, whatever the answer was
    HEAD = "head"  # a HEAD first, and a body only if that differs
    RENDER = "render"  # in a browser, with all that the page loads


@dataclass(frozen=True, slots=True)
class Cost:
    """The mean cost of one look. requests: with redirect hops and retries.  visits: how many the mean has seen."""

    requests: float
    received_bytes: float
    visits: int = 0


@dataclass(frozen=True, slots=True)
class ShadowPrice:
    """The shadow price of a request and of a byte, in importance x days; 0 for one that is not scarce."""

    per_request: float
    per_byte: float = 0.0

    def compute_min_value(self, cost: Cost) -> float:
        """The value that a look of this cost must have."""
        return self.per_request * cost.requests + self.per_byte * cost.received_bytes


@dataclass(frozen=True, slots=True)
class Costs:
    """A domain's costs, a field for each RequestKind.

    Until they are learnt: a 304 is some headers, a page some kilobytes, a render many files.
    """

    conditional: Cost = Cost(requests=1.0, received_bytes=500.0)
    full: Cost = Cost(requests=1.0, received_bytes=30_000.0)
    head: Cost = Cost(requests=1.25, received_bytes=7_500.0)
    render: Cost = Cost(requests=20.0, received_bytes=1_000_000.0)

    def get_cost(self, kind: RequestKind) -> Cost:
        cost: Cost = getattr(self, kind.value)
        return cost


# Where neither requests nor bytes are scarce, both cost time: a round trip for each request or ROUND_TRIP_BYTES.
TIME_PRICE = ShadowPrice(per_request=1.0, per_byte=1 / ROUND_TRIP_BYTES)


def is_head_cheaper(shadow_price: ShadowPrice, costs: Costs, *, body_bytes: int) -> bool:
    """Whether a HEAD, with a body after it as often as was measured, costs less than the body each time."""
    followed = costs.head.requests - 1
    return shadow_price.compute_min_value(Cost(1 + followed, followed * body_bytes)) < shadow_price.compute_min_value(
        Cost(1, body_bytes)
    )


def learn_cost(costs: Costs, kind: RequestKind, *, requests: int, received_bytes: int) -> Costs:
    """The costs after one more look: a running mean, and later a fading one. The first look replaces the guess."""
    before = costs.get_cost(kind)
    part = 1 / min(before.visits + 1, MEMORY_VISITS)
    after = Cost(
        requests=before.requests + part * (requests - before.requests),
        received_bytes=before.received_bytes + part * (received_bytes - before.received_bytes),
        visits=before.visits + 1,
    )
    return replace(costs, **{kind.value: after})
