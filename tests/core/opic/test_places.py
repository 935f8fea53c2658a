from hypothesis import given
from hypothesis import strategies as st

from crawler.core.opic.opic import ENDOWMENT
from crawler.core.opic.order import LevelQueues, Order, Ordering, PageStack, get_level, get_rank_range

depths = st.integers(0, 32_767)


@given(st.lists(st.integers(0, 600)))
def test_queues_are_ordered_by_level_and_discovery(joining: list[int]) -> None:
    queues = LevelQueues()

    ranks = [queues.add_page(depth) for depth in joining]

    in_order = sorted(range(len(joining)), key=lambda n: -ranks[n])
    assert in_order == sorted(range(len(joining)), key=lambda n: (get_level(joining[n]), n))


@given(depths)
def test_ranks_of_a_level_are_below_the_previous_level_and_fit_into_32_bits(depth: int) -> None:
    least, first = get_rank_range(get_level(depth))

    assert -(2**31) < least < first <= 0
    assert depth == 0 or first < get_rank_range(get_level(depth - 1))[0] or get_level(depth) == get_level(depth - 1)


def test_full_level_does_not_use_positions_of_the_next() -> None:
    queues = LevelQueues({2: get_rank_range(2)[0]})

    assert queues.add_page(2) == get_rank_range(2)[0] > get_rank_range(3)[1]


def test_last_pushed_page_is_on_top() -> None:
    stack = PageStack(top=7)

    assert [stack.push_page(), stack.push_page()] == [8, 9]
    assert PageStack(top=2**31 - 1).push_page() == 2**31 - 1


@given(early=st.integers(0, 10**6), later=st.integers(0, 10**6), depth=st.integers(0, 500))
def test_after_a_change_of_order_pages_are_ordered_by_discovery_clock(early: int, later: int, depth: int) -> None:
    """Breadth-first: the earliest page of a level comes first; depth-first: the latest page."""

    def ranked(order: Order, clock: int, depth: int) -> int:
        return Ordering(order).compute_first_rank(0, clock=clock * ENDOWMENT, depth=depth, url_score=1.0)

    if early <= later:
        assert ranked(Order.BREADTH, early, depth) >= ranked(Order.BREADTH, later, depth)
        assert ranked(Order.DEPTH, early, depth) <= ranked(Order.DEPTH, later, depth)
    assert ranked(Order.BREADTH, later, depth) > ranked(Order.BREADTH, early, depth + 1)
