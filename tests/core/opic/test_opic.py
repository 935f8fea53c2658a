from hypothesis import given
from hypothesis import strategies as st

from crawler.core.domain_settings import DomainSettings
from crawler.core.http.urls import PageKey
from crawler.core.opic.opic import (
    ENDOWMENT,
    TOTAL_CASH,
    VIRTUAL_PAGE_SHARE,
    WINDOW_PASSES,
    Economy,
    Pool,
    compute_importance,
    compute_initial_history,
    settle_cash,
    update_history,
)
from crawler.core.opic.order import Ordering

keys = st.binary(min_size=16, max_size=16).map(PageKey)


def key(n: int) -> PageKey:
    return PageKey(n.to_bytes(16))


def economy(*, pages: int = 0) -> Economy:
    books = Economy(virtual_page_cash=0, dormant=TOTAL_CASH, clock=0.0, pages=[0] * 4, dividend=[0] * 4)
    for n in range(pages):
        books.admit_page(key(n), Pool.UNFETCHED)
    books.pay_dividends()
    return books


def total(books: Economy) -> int:
    return sum(map(books.get_cash, books.accounts)) + books.virtual_page_cash + books.dormant


@given(cash=st.integers(0, TOTAL_CASH), outlinks=st.lists(keys))
def test_settlement_conserves_cash(cash: int, outlinks: list[PageKey]) -> None:
    done = settle_cash(cash, outlinks)

    assert cash == sum(done.shares.values()) + done.to_virtual_page


def test_page_without_links_pays_the_virtual_page() -> None:
    assert settle_cash(1000, []).to_virtual_page == 1000


def test_links_get_equal_parts_and_duplicate_links_count_once() -> None:
    done = settle_cash(1000, [key(1), key(2), key(1)], virtual_page_share=0.15)

    assert done.shares == {key(1): 425, key(2): 425}
    assert done.to_virtual_page == 150


def test_each_page_brings_the_same_endowment_and_returns_it() -> None:
    books = economy(pages=4)
    assert {books.get_cash(key(n)) for n in range(4)} == {ENDOWMENT}
    books.pay_page(key(2), 50)
    books.dormant -= 50

    left = books.remove_page(key(2))

    assert (left, books.virtual_page_cash, books.dormant) == (50, 50, TOTAL_CASH - 50 - 3 * ENDOWMENT)


def test_virtual_page_pays_all_pages_equally_and_keeps_the_remainder() -> None:
    books = economy(pages=4)
    books.change_pool(key(0), Pool.FETCHED)
    books.virtual_page_cash, books.dormant = 1003, books.dormant - 1003

    books.pay_dividends()

    assert {books.get_cash(key(n)) for n in range(4)} == {ENDOWMENT + 250}
    assert books.virtual_page_cash == 3


def test_page_that_changes_pool_keeps_its_cash() -> None:
    books = economy(pages=3)
    books.dividend[Pool.FETCHED] = 777

    before = books.get_cash(key(1))
    books.change_pool(key(1), Pool.FETCHED)

    assert books.get_cash(key(1)) == before
    assert books.pages == [2, 1, 0, 0]


def test_empty_pool_resets_its_dividend() -> None:
    books = economy(pages=2)
    books.virtual_page_cash, books.dormant = 2000, books.dormant - 2000
    books.pay_dividends()
    before = [books.get_cash(key(n)) for n in range(2)]

    for n in range(2):
        books.change_pool(key(n), Pool.FETCHED)

    assert (books.dividend[Pool.UNFETCHED], books.pages[Pool.UNFETCHED]) == (0, 0)
    assert [books.get_cash(key(n)) for n in range(2)] == before
    assert books.admit_page(key(2), Pool.UNFETCHED).net == ENDOWMENT
    assert total(books) == TOTAL_CASH


def test_cash_received_between_claim_and_record_stays() -> None:
    books = economy(pages=2)
    claimed = books.get_cash(key(0))

    books.pay_page(key(0), 5)
    books.collect_cash(key(0), claimed, is_first_visit=True)

    assert books.get_cash(key(0)) == 5


@given(
    cash=st.integers(0, TOTAL_CASH),
    outlinks=st.lists(keys),
    elsewhere=st.floats(0, 1e6),
    within=st.floats(0, 1000),
    virtual_page_share=st.floats(0, 1),
)
def test_external_links_pay_the_virtual_page_and_cash_is_conserved(
    cash: int, outlinks: list[PageKey], elsewhere: float, within: float, virtual_page_share: float
) -> None:
    done = settle_cash(
        cash, outlinks, external_links=elsewhere, internal_weight=within, virtual_page_share=virtual_page_share
    )

    assert cash == sum(done.shares.values()) + done.to_virtual_page
    assert done.to_virtual_page >= min(cash, int(cash * virtual_page_share))
    assert all(share > 0 for share in done.shares.values())
    assert sum(done.shares.values()) <= sum(
        settle_cash(cash, outlinks, virtual_page_share=virtual_page_share).shares.values()
    )


def test_link_weights_balance_internal_and_external_links() -> None:
    def within(external_links: float, internal_weight: float) -> int:
        two = [key(1), key(2)]
        done = settle_cash(
            1000, two, external_links=external_links, internal_weight=internal_weight, virtual_page_share=0.0
        )
        return sum(done.shares.values())

    assert (within(2.0, 1.0), within(2.0, 0.5), within(2.0, 3.0)) == (500, 332, 750)
    assert within(0.0, 0.5) == within(0.0, 7.0) == 1000  # only the ratio of the weights counts
    assert within(0.0, 0.0) == within(2.0, 0.0) == 0


def test_defaults_of_settings_agree_with_opic() -> None:
    usual = DomainSettings()

    assert (usual.virtual_page_share, usual.importance_window) == (VIRTUAL_PAGE_SHARE, WINDOW_PASSES)


def test_external_links_count_by_their_weight() -> None:
    assert settle_cash(1000, [key(1)], external_links=1.0, virtual_page_share=0.0).shares == {key(1): 500}
    assert settle_cash(1000, [key(1)], external_links=0.25, virtual_page_share=0.0).shares == {key(1): 800}


def test_virtual_page_pays_pools_by_their_weights() -> None:
    books = economy(pages=4)
    for n, pool in enumerate(Pool):
        books.change_pool(key(n), pool)
    books.virtual_page_cash, books.dormant = 2400, books.dormant - 2400

    books.pay_dividends(Ordering(discovery_weight=2.0, revisit_weight=1.0, boost_factor=3.0).pool_weights)

    paid = [books.get_cash(key(n)) - ENDOWMENT for n in range(4)]
    assert paid == [400, 200, 1200, 600]


def test_weights_without_a_page_to_pay_pay_all_equally() -> None:
    books = economy(pages=4)
    books.virtual_page_cash, books.dormant = 2400, books.dormant - 2400

    # All pages are unfetched, and unfetched pages have weight 0.
    books.pay_dividends(Ordering(discovery_weight=0.0, revisit_weight=1.0, boost_factor=4.0).pool_weights)

    assert [books.get_cash(key(n)) - ENDOWMENT for n in range(4)] == [600] * 4
    assert books.virtual_page_cash == 0


def test_page_admitted_without_endowment_has_no_negative_history() -> None:
    books = economy(pages=2)
    books.dormant, books.virtual_page_cash = 0, books.dormant
    books.clock = books.window

    assert books.admit_page(key(2), Pool.UNFETCHED).history > 0


def test_importance_of_new_pages_is_scaled_by_the_elapsed_part_of_the_window() -> None:
    def imputed(passes: float) -> float:
        """Return the importance of a page by its initial history."""
        history = compute_initial_history(2.0, pages=10, clock=passes * 100.0, window=2400.0, endowment=0)
        return compute_importance(
            history, 0, clock_last=passes * 100.0, clock_now=passes * 100.0, pages=10, window=2400.0
        )

    assert [round(imputed(passes), 6) for passes in (2.4, 12.0, 24.0, 240.0)] == [0.2, 1.0, 2.0, 2.0]


steps = st.lists(
    st.tuples(st.sampled_from(["visit", "admit", "leave", "pay", "pool"]), st.integers(0, 30), st.integers(0, 30)),
    max_size=60,
)


@given(steps=steps)
def test_total_cash_is_conserved_by_all_operations(steps: list[tuple[str, int, int]]) -> None:
    books = economy(pages=5)
    for kind, n, m in steps:
        page, other = key(n), key(m)
        if kind == "admit" and page not in books.accounts:
            books.admit_page(page, Pool.UNFETCHED)
        elif kind == "leave" and page in books.accounts:
            books.remove_page(page)
        elif kind == "pool" and page in books.accounts:
            books.change_pool(page, Pool(m % 4))
        elif kind == "pay":
            books.pay_dividends()
        elif kind == "visit" and page in books.accounts:
            cash = books.get_cash(page)
            books.collect_cash(page, cash, is_first_visit=False)
            done = settle_cash(cash, [link for link in (other, key(0)) if link in books.accounts])
            books.virtual_page_cash += done.to_virtual_page
            for link, coins in done.shares.items():
                books.pay_page(link, coins)
        assert total(books) == TOTAL_CASH
        assert books.virtual_page_cash >= 0
    assert sum(books.pages) == len(books.accounts)


def test_history_in_a_full_window_follows_the_paper() -> None:
    # H (T - d)/T + C for d < T, else C T/d, with T = 8
    assert update_history(4.0, 0.5, clock_before=100.0, clock_now=102.0, window=8.0) == 4.0 * 6 / 8 + 0.5
    assert update_history(4.0, 0.5, clock_before=100.0, clock_now=116.0, window=8.0) == 0.5 * 8 / 16


def test_before_the_first_full_window_all_cash_counts_in_history() -> None:
    first = update_history(0.0, 0.25, clock_before=0.0, clock_now=1.0, window=8.0)
    second = update_history(first, 0.25, clock_before=1.0, clock_now=2.0, window=8.0)

    assert (first, second) == (0.25, 0.5)


@given(visits=st.integers(1, 200), rate=st.floats(1e-6, 1.0))
def test_importance_does_not_depend_on_the_visit_frequency(visits: int, rate: float) -> None:
    """A page that receives a share `rate` of all cash has that importance for any schedule of visits."""
    history, last = 0.0, 0.0
    for n in range(1, visits + 1):
        clock = 20.0 * n / visits
        history = update_history(history, rate * (clock - last), clock_before=last, clock_now=clock, window=8.0)
        last = clock

    assert abs(compute_importance(history, 0.0, clock_last=last, clock_now=20.0, pages=1, window=8.0) - rate) < 1e-9


def test_a_thousand_revisits_do_not_raise_the_importance() -> None:
    books = economy(pages=10)
    for n in range(10):
        visit(books, n, [(n + 1) % 10])
    before = importance_of(books, 3)

    for _ in range(1000):
        visit(books, 3, [4])

    assert importance_of(books, 3) <= before * 1.01


def visit(books: Economy, n: int, links: list[int]) -> None:
    cash = books.get_cash(key(n))
    books.collect_cash(key(n), cash, is_first_visit=False)
    done = settle_cash(cash, [key(link) for link in links])
    books.virtual_page_cash += done.to_virtual_page
    for link, coins in done.shares.items():
        books.pay_page(link, coins)
    books.pay_dividends()


def importance_of(books: Economy, n: int) -> float:
    purse = books.accounts[key(n)]
    return compute_importance(
        purse.history,
        books.get_cash(key(n)),
        clock_last=purse.clock,
        clock_now=books.clock,
        pages=len(books.accounts),
        window=books.window,
    )
