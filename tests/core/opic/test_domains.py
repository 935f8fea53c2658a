import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.core.opic.domains import compute_popularity


def test_domain_with_incoming_links_is_more_important() -> None:
    found = compute_popularity([1, 2, 3], {(1, 3): 1.0, (2, 3): 5.0})

    assert found[3] > found[1] == found[2]


def test_flows_count_in_proportion_and_self_links_do_not_count() -> None:
    found = compute_popularity([1, 2, 3], {(1, 2): 3.0, (1, 3): 1.0, (1, 1): 1000.0})

    from_all = found[1]  # without incoming links: what the virtual page pays to each domain
    assert found[2] - from_all == pytest.approx(0.85 * 0.75 * found[1])
    assert found[3] - from_all == pytest.approx(0.85 * 0.25 * found[1])


def test_without_links_all_domains_are_equally_important() -> None:
    assert compute_popularity([4, 7], {}) == {4: 1.0, 7: 1.0}
    assert compute_popularity([], {}) == {}


@given(st.dictionaries(st.tuples(st.integers(0, 9), st.integers(0, 12)), st.floats(1e-6, 1e6), max_size=40))
def test_mean_importance_is_one_for_any_links(flows: dict[tuple[int, int], float]) -> None:
    found = compute_popularity(range(10), flows)

    assert sum(found.values()) == pytest.approx(10)
    assert min(found.values()) > 0.1
