import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.core.opic.domains import compute_popularity


def test_a_domain_that_others_link_to_is_worth_more() -> None:
    found = compute_popularity([1, 2, 3], {(1, 3): 1.0, (2, 3): 5.0})

    assert found[3] > found[1] == found[2]


def test_flows_count_by_their_proportion_and_links_to_itself_do_not() -> None:
    found = compute_popularity([1, 2, 3], {(1, 2): 3.0, (1, 3): 1.0, (1, 1): 1000.0})

    from_all = found[1]  # nobody links to it: what the virtual domain pays each
    assert found[2] - from_all == pytest.approx(0.85 * 0.75 * found[1])
    assert found[3] - from_all == pytest.approx(0.85 * 0.25 * found[1])


def test_without_links_all_are_alike_and_without_domains_there_is_nothing() -> None:
    assert compute_popularity([4, 7], {}) == {4: 1.0, 7: 1.0}
    assert compute_popularity([], {}) == {}


@given(st.dictionaries(st.tuples(st.integers(0, 9), st.integers(0, 12)), st.floats(1e-6, 1e6), max_size=40))
def test_the_mean_is_one_whatever_the_links(flows: dict[tuple[int, int], float]) -> None:
    found = compute_popularity(range(10), flows)

    assert sum(found.values()) == pytest.approx(10)
    assert min(found.values()) > 0.1
