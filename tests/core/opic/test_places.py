from hypothesis import given
from hypothesis import strategies as st

from crawler.core.opic.opic import ENDOWMENT
from crawler.core.opic.order import LevelQueues, Order, Ordering, PageStack, level_of, ranks_of

depths = st.integers(0, 32_767)


@given(st.lists(st.integers(0, 600)))
def test_queues_are_by_level_and_in_a_level_by_who_came_first(joining: list[int]) -> None:
    queues = LevelQueues()

    ranks = [queues.join(depth) for depth in joining]

    in_order = sorted(range(len(joining)), key=lambda n: -ranks[n])
    assert in_order == sorted(range(len(joining)), key=lambda n: (level_of(joining[n]), n))


@given(depths)
def test_the_ranks_of_a_level_are_below_those_of_the_one_before_and_fit_32_bits(depth: int) -> None:
    least, first = ranks_of(level_of(depth))

    assert -(2**31) < least < first <= 0
    assert depth == 0 or first < ranks_of(level_of(depth - 1))[0] or level_of(depth) == level_of(depth - 1)


def test_a_full_level_takes_no_place_of_the_next() -> None:
    queues = LevelQueues({2: ranks_of(2)[0]})

    assert queues.join(2) == ranks_of(2)[0] > ranks_of(3)[1]


def test_what_is_pushed_last_is_on_top() -> None:
    stack = PageStack(top=7)

    assert [stack.push(), stack.push()] == [8, 9]
    assert PageStack(top=2**31 - 1).push() == 2**31 - 1


@given(early=st.integers(0, 10**6), later=st.integers(0, 10**6), depth=st.integers(0, 500))
def test_under_a_new_order_pages_come_by_the_clock_at_which_they_were_found(early: int, later: int, depth: int) -> None:
    """Breadth first the earliest, within a level; depth first the latest."""

    def ranked(order: Order, clock: int, depth: int) -> int:
        return Ordering(order).first_rank(0, clock=clock * ENDOWMENT, depth=depth, url_score=1.0)

    if early <= later:
        assert ranked(Order.BREADTH, early, depth) >= ranked(Order.BREADTH, later, depth)
        assert ranked(Order.DEPTH, early, depth) <= ranked(Order.DEPTH, later, depth)
    assert ranked(Order.BREADTH, later, depth) > ranked(Order.BREADTH, early, depth + 1)
