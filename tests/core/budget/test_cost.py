import pytest

from crawler.core.budget.cost import MEMORY_VISITS, Cost, Costs, RequestKind, ShadowPrice, learn_cost


def test_the_first_look_replaces_the_guess_and_the_mean_follows() -> None:
    costs = learn_cost(Costs(), RequestKind.FULL, requests=1, received_bytes=1000)
    assert costs.full == Cost(requests=1, received_bytes=1000, visits=1)

    costs = learn_cost(costs, RequestKind.FULL, requests=3, received_bytes=3000)
    assert costs.full == Cost(requests=2, received_bytes=2000, visits=2)


@pytest.mark.parametrize("kind", RequestKind)
def test_each_kind_learns_for_itself(kind: RequestKind) -> None:
    costs = learn_cost(Costs(), kind, requests=7, received_bytes=70)

    assert [other for other in RequestKind if costs.get_cost(other) != Costs().get_cost(other)] == [kind]
    assert costs.get_cost(kind).requests == 7


def test_a_redesign_is_learnt_however_long_the_domain_is_known() -> None:
    costs = Costs(full=Cost(requests=1, received_bytes=1000, visits=10**6))
    for _ in range(3 * MEMORY_VISITS):
        costs = learn_cost(costs, RequestKind.FULL, requests=1, received_bytes=9000)

    assert costs.full.received_bytes == pytest.approx(9000, rel=0.05)


def test_what_is_scarce_has_a_price_and_the_rest_costs_nothing() -> None:
    full, unchanged = Cost(requests=1, received_bytes=50_000), Cost(requests=1, received_bytes=500)

    assert (
        ShadowPrice(per_request=2.0).compute_min_value(full)
        == ShadowPrice(per_request=2.0).compute_min_value(unchanged)
        == 2.0
    )
    assert ShadowPrice(per_request=0.0, per_byte=1e-4).compute_min_value(full) == pytest.approx(
        100 * ShadowPrice(0.0, 1e-4).compute_min_value(unchanged)
    )
