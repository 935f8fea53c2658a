import pytest

from crawler.core.budget.cost import MEMORY_VISITS, Cost, Costs, RequestKind, ShadowPrice, learn_cost


def test_first_visit_replaces_the_guess_and_later_visits_update_the_mean() -> None:
    costs = learn_cost(Costs(), RequestKind.FULL, requests=1, received_bytes=1000)
    assert costs.full == Cost(requests=1, received_bytes=1000, visits=1)

    costs = learn_cost(costs, RequestKind.FULL, requests=3, received_bytes=3000)
    assert costs.full == Cost(requests=2, received_bytes=2000, visits=2)


@pytest.mark.parametrize("kind", RequestKind)
def test_each_kind_is_learned_separately(kind: RequestKind) -> None:
    costs = learn_cost(Costs(), kind, requests=7, received_bytes=70)

    assert [other for other in RequestKind if costs.get_cost(other) != Costs().get_cost(other)] == [kind]
    assert costs.get_cost(kind).requests == 7


def test_mean_cost_adapts_to_a_redesign_after_many_visits() -> None:
    costs = Costs(full=Cost(requests=1, received_bytes=1000, visits=10**6))
    for _ in range(3 * MEMORY_VISITS):
        costs = learn_cost(costs, RequestKind.FULL, requests=1, received_bytes=9000)

    assert costs.full.received_bytes == pytest.approx(9000, rel=0.05)


def test_minimum_value_counts_only_what_has_a_price() -> None:
    full, unchanged = Cost(requests=1, received_bytes=50_000), Cost(requests=1, received_bytes=500)

    assert (
        ShadowPrice(per_request=2.0).compute_min_value(full)
        == ShadowPrice(per_request=2.0).compute_min_value(unchanged)
        == 2.0
    )
    assert ShadowPrice(per_request=0.0, per_byte=1e-4).compute_min_value(full) == pytest.approx(
        100 * ShadowPrice(0.0, 1e-4).compute_min_value(unchanged)
    )
