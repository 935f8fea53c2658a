from hypothesis import given
from hypothesis import strategies as st

from crawler.core.http.urls import Url
from crawler.core.opic.opic import ENDOWMENT, TOTAL_CASH, Pool
from crawler.core.opic.order import Order, Ordering, compute_head_start, compute_url_score

nets = st.integers(-TOTAL_CASH, TOTAL_CASH)
by_cash = st.sampled_from([Order.OPIC, Order.MIXED])
clocks = st.floats(0, 1e20)


@given(order=by_cash, coins=nets, score=st.floats(0, allow_infinity=True))
def test_rank_fits_into_32_bits(order: Order, coins: int, score: float) -> None:
    assert -(2**31) <= Ordering(order).compute_rank(coins, url_score=score) < 2**31


@given(order=st.sampled_from(Order), net=nets, clock=clocks, depth=st.integers(0, 32_767))
def test_first_rank_fits_into_32_bits(order: Order, net: int, clock: float, depth: int) -> None:
    assert -(2**31) <= Ordering(order).compute_first_rank(net, clock=clock, depth=depth, url_score=1.0) < 2**31


@given(order=by_cash, coins=nets, more=st.integers(0, TOTAL_CASH), score=st.floats(0, 1000))
def test_more_cash_never_lowers_the_rank(order: Order, coins: int, more: int, score: float) -> None:
    ordering = Ordering(order)

    poorer = ordering.compute_rank(coins, url_score=score)

    assert poorer <= ordering.compute_rank(coins + more, url_score=score)


@given(a=st.integers(0, 1000), b=st.integers(0, 1000), dividend=st.integers(0, 10**6))
def test_dividends_do_not_change_the_order(a: int, b: int, dividend: int) -> None:
    """Ranks are computed from nets. Their order is that of cash, net + dividend."""
    first, second = (Ordering().compute_rank((n - dividend) * ENDOWMENT, url_score=1.0) for n in (a, b))

    assert (first < second) == (a < b)


def test_mixed_order_weighs_links_against_the_url() -> None:
    by_url = Ordering(Order.MIXED, url_weight=0.9)
    by_links = Ordering(Order.MIXED, url_weight=0.1)

    def prefers_the_url(ordering: Ordering) -> bool:
        shallow = ordering.compute_rank(ENDOWMENT, url_score=4.0)
        return shallow > ordering.compute_rank(3 * ENDOWMENT, url_score=0.5)

    assert prefers_the_url(by_url)
    assert not prefers_the_url(by_links)
    assert abs(by_url.mix_importance(2.0, 1.0) - 1.1) < 1e-12
    assert Ordering(Order.OPIC, url_weight=0.9).mix_importance(2.0, 1.0) == 2.0


def test_url_score_halves_with_each_folder_and_with_a_query() -> None:
    paths = ["/", "/a", "/a/b", "/a/b/", "/a/b/c", "/a/b?c=d"]

    scores = [compute_url_score(Url(f"http://site.example{path}")) for path in paths]

    assert scores == [4.0, 2.0, 1.0, 1.0, 0.5, 0.5]


def test_boosted_page_scores_more_and_has_its_own_pools() -> None:
    ordering = Ordering(boost=("/docs/", "re:news"), boost_factor=3.0)

    assert ordering.is_boosted(Url("http://site.example/docs/a"))
    assert ordering.is_boosted(Url("http://site.example/old-news"))
    assert not ordering.is_boosted(Url("http://site.example/a/docs/"))
    assert ordering.score_url(Url("http://site.example/docs/a")) == 3.0
    assert ordering.score_url(Url("http://site.example/a/b")) == 1.0
    assert ordering.choose_pool(is_fetched=True, is_boosted=True) is Pool.FETCHED_BOOSTED
    assert ordering.choose_pool(is_fetched=False, is_boosted=False) is Pool.UNFETCHED
    assert ordering.pool_weights[Pool.UNFETCHED_BOOSTED] == 3.0


@given(order=st.sampled_from([Order.OPIC, Order.MIXED]), coins=nets, more=st.floats(1.5, 1000))
def test_page_score_adds_the_cash_of_mean_pages(order: Order, coins: int, more: float) -> None:
    ordering = Ordering(order)

    plain, ahead = (ordering.compute_rank(coins + compute_head_start(score), url_score=1.0) for score in (1.0, more))

    assert compute_head_start(1.0) == 0
    assert compute_head_start(3.0) == 2 * ENDOWMENT
    assert plain < ahead
