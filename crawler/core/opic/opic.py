"""The cash economy of one domain: Adaptive OPIC, with integer cash (docs/importance.md).

Source: Abiteboul, Preda, Cobena, "Adaptive On-Line Page Importance Computation", WWW 2003.

Each domain is closed: the cash of pages, the cash of the virtual page, and dormant cash, which does not circulate yet,
always add up to TOTAL_CASH. In the paper, each of n pages starts with 1/n of the cash. A crawler does not know n yet;
if the few pages found first had all cash, they would seem too important for a long time. So each page brings an equal
endowment of dormant cash into circulation when it is admitted, and returns it when it is removed.
The virtual page pays lazily: each pool of equally paid pages has a running total of payments per page (its *dividend*),
and the cash of a page is its *net* (stored per page) plus the dividend of its pool. So a payment to a million pages
changes one number.
The *clock* of a domain is the sum of the cash that all visits have collected. In one *pass*, the clock advances by the
cash in circulation.
"""

import math
from collections.abc import Collection, Mapping
from enum import IntEnum

from msgspec import Struct, field

from crawler.core.http.urls import PageKey

TOTAL_CASH = 10**15  # of one domain; large enough that shares of shares are not rounded to 0, and fits into 64 bits
ENDOWMENT = TOTAL_CASH // 10**7  # of each page, 10^8 units; enough for ten million pages
# The number of endowments that the first seeds of a domain share, at least one each. With one endowment, any page with
# a few links would raise the pages it links to more than the root does.
FIRST_SEEDS = 100
VIRTUAL_PAGE_SHARE = 0.15  # of the cash of each visit: the link to the virtual page, like PageRank's jump
# The length of the importance window. On static graphs, the estimates with 24 are five times as accurate as with 8, and
# order `opic` fills the window in ten visits per page (docs/decisions/0012).
WINDOW_PASSES = 24.0
NEW_PAGES_AVERAGED = 50  # pages whose first visits are averaged to estimate the importance of a new page


class Pool(IntEnum):
    """A pool of pages that the virtual page pays equally. Boosted pools hold the pages that the user boosts."""

    UNFETCHED = 0
    FETCHED = 1
    UNFETCHED_BOOSTED = 2
    FETCHED_BOOSTED = 3


class Settlement(Struct, frozen=True):
    """The distribution of a visit's cash. shares: by the page that receives it."""

    shares: Mapping[PageKey, int]
    to_virtual_page: int


def settle_cash(
    cash: int,
    outlinks: Collection[PageKey],
    *,
    external_links: float = 0.0,
    internal_weight: float = 1.0,
    virtual_page_share: float = VIRTUAL_PAGE_SHARE,
) -> Settlement:
    """Distribute a visited page's cash over the pages it links to.

    outlinks: in-domain links; duplicates count once.
    external_links: the number of links to other domains times their weight; their part goes to the virtual page,
    because the economy of a domain is closed.  internal_weight: the weight of an in-domain link; with 0, all cash goes
    to the virtual page.  virtual_page_share: the share of cash, 0 to 1, that goes to the virtual page first.
    Without outlinks, all cash goes to the virtual page, and so does the remainder of the division.
    Invariant for a cash of 0 or more: cash == sum(shares) + to_virtual_page.
    Source: Abiteboul, Preda, Cobena, WWW 2003, section 3.
    """
    distinct = dict.fromkeys(outlinks)
    weight = internal_weight * len(distinct)
    if weight <= 0 or cash <= 0:
        return Settlement(shares={}, to_virtual_page=max(cash, 0))
    shared_cash = cash - math.ceil(cash * virtual_page_share)
    if external_links > 0:
        shared_cash = int(shared_cash * (weight / (weight + external_links)))
    share = shared_cash // len(distinct)
    if share <= 0:
        return Settlement(shares={}, to_virtual_page=cash)
    return Settlement(shares=dict.fromkeys(distinct, share), to_virtual_page=cash - share * len(distinct))


def update_history(history: float, cash: float, *, clock_before: float, clock_now: float, window: float) -> float:
    """Return the cash that a page received within the window, after a visit that collects `cash`.

    All values are in units of cash.  clock_before: the domain's clock at the page's last visit (or admission).
    Interpolation policy for the history H, cash C, window T, and d = clock_now - clock_before: H (T - d)/T + C if
    d < T, else C T/d. Until the clock reaches the window, nothing is forgotten: the result is H + C. If it had not
    reached the window at the last visit, H covers only clock_before, which then replaces T as the divisor.
    Source: Abiteboul, Preda, Cobena, WWW 2003, section 5.
    """
    if clock_now <= window:
        return history + cash
    elapsed = max(clock_now - clock_before, 0.0)
    if elapsed >= window:
        return cash * window / elapsed
    before = min(window, clock_before)
    return history * (window - elapsed) / before + cash


def compute_importance(
    history: float, cash: float, *, clock_last: float, clock_now: float, pages: int, window: float
) -> float:
    """Return the importance of a page relative to the mean page of its domain (mean 1); at least 0.

    history, cash, clocks, window: in units of cash; the page's current cash counts as if it were collected now.
    Before any visit to the domain, the result is 1.
    """
    reach = min(window, clock_now)
    if reach <= 0:
        return 1.0
    received = update_history(history, cash, clock_before=clock_last, clock_now=clock_now, window=window)
    return max(pages * received / reach, 0.0)


def compute_initial_history(
    relative: float, *, pages: int, clock: float, window: float, endowment: int = ENDOWMENT
) -> float:
    """Return the history of a page admitted now: the cash that a page of this relative importance would have received.

    relative: the importance, relative to the mean page.  The endowment is subtracted because no page paid it; otherwise
    the differences between pages would be too small as long as their first cash is in the window. The result may be
    below 0. Before the clock reaches the window, the history is scaled down by clock/window: while a site is being
    discovered, the new pages with most cash are visited first, so the measured `relative` is too high for the others.
    """
    reach = min(window, clock)
    return relative * reach / max(pages, 1) * (reach / max(window, 1.0)) - endowment


def compute_seed_endowment(seeds: int, *, is_first: bool) -> int:
    """Return the endowment of each of `seeds` seeds. is_first: the domain has no page yet."""
    return max(FIRST_SEEDS // seeds, 1) * ENDOWMENT if is_first and seeds else ENDOWMENT


class PageAccount(Struct):
    """The account of one page while a batch is settled. Its cash is its net plus the dividend of its pool.

    history: see update_history.  clock: that of the domain at the last visit to the page, or at its admission.
    """

    pool: Pool
    net: int
    history: float = 0.0
    clock: float = 0.0


class Economy(Struct):
    """A domain's economy while one batch is settled. It is loaded from the store, changed, and written back.

    Only the accounts that the batch touches are loaded.  pages, dividend: one number per Pool.  passes: the length of
    the importance window in passes.  newcomers_cash, newcomers_clock: fading sums over first visits, for
    new_importance: the cash collected, and the clock passed since admission.  deltas: cash paid to pages that are not
    loaded. Invariant, with the nets of all pages:
    sum(net) + sum(deltas) + sum(pages[p] * dividend[p]) + virtual_page_cash + dormant == total_cash.
    """

    virtual_page_cash: int
    dormant: int
    clock: float
    pages: list[int]
    dividend: list[int]
    total_cash: int = TOTAL_CASH
    passes: float = WINDOW_PASSES
    newcomers_cash: float = 0.0
    newcomers_clock: float = 0.0
    accounts: dict[PageKey, PageAccount] = field(default_factory=dict)
    deltas: dict[PageKey, int] = field(default_factory=dict)

    @property
    def member_count(self) -> int:
        return sum(self.pages)

    @property
    def new_importance(self) -> float:
        """Return the mean importance (mean page: 1) that new pages recently had at their first visit; 1 without any."""
        if self.newcomers_clock <= 0:
            return 1.0
        return self.member_count * self.newcomers_cash / self.newcomers_clock

    @property
    def window(self) -> float:
        """Return the length of the importance window in units of cash (as the domain's clock)."""
        return self.passes * (self.total_cash - self.dormant)

    def get_cash(self, key: PageKey) -> int:
        account = self.accounts[key]
        return account.net + self.dividend[account.pool]

    def admit_page(self, key: PageKey, pool: Pool) -> PageAccount:
        """Admit a page with its endowment and the recent mean importance of new pages."""
        endowment = min(ENDOWMENT, self.dormant)
        self.dormant -= endowment
        self.pages[pool] += 1
        history = compute_initial_history(
            self.new_importance, pages=self.member_count, clock=self.clock, window=self.window, endowment=endowment
        )
        account = PageAccount(pool=pool, net=endowment - self.dividend[pool], history=history, clock=self.clock)
        self.accounts[key] = account
        return account

    def remove_page(self, key: PageKey) -> int:
        """Remove a page: up to an endowment becomes dormant, the rest goes to the virtual page. Return the rest."""
        account = self.accounts.pop(key)
        cash = account.net + self.dividend[account.pool]
        dormant_cash = min(ENDOWMENT, cash)
        self._shrink_pool(account.pool)
        self.dormant += dormant_cash
        self.virtual_page_cash += cash - dormant_cash
        return cash - dormant_cash

    def change_pool(self, key: PageKey, pool: Pool) -> None:
        """Move a page to another pool. It keeps its cash, so its net changes."""
        account = self.accounts[key]
        if account.pool == pool:
            return
        account.net += self.dividend[account.pool] - self.dividend[pool]
        self._shrink_pool(account.pool)
        self.pages[pool] += 1
        account.pool = pool

    def _shrink_pool(self, pool: Pool) -> None:
        """Remove one page from the count of a pool. The dividend of an empty pool is reset to 0.

        Otherwise dividends would only grow, the nets of new pages would fall as much, and the ranks computed from nets
        would all reach their lower bound.
        """
        self.pages[pool] -= 1
        if self.pages[pool] == 0:
            self.dividend[pool] = 0

    def collect_cash(self, key: PageKey, cash: int, *, is_first_visit: bool) -> None:
        """Collect cash of a visited page: add it to the page's history and to the domain's clock.

        cash: what the page had when it was selected; cash received since then stays.
        """
        account = self.accounts[key]
        account.net -= cash
        before, history = account.clock, account.history
        self.clock += cash
        account.history = update_history(history, cash, clock_before=before, clock_now=self.clock, window=self.window)
        account.clock = self.clock
        if is_first_visit:  # excludes the endowment, which no link paid
            self.newcomers_cash += max(cash - ENDOWMENT, 0) - self.newcomers_cash / NEW_PAGES_AVERAGED
            self.newcomers_clock += self.clock - before - self.newcomers_clock / NEW_PAGES_AVERAGED

    def pay_page(self, key: PageKey, cash: int) -> None:
        """Pay a page of the economy. For a page that is not loaded, add the cash to `deltas`."""
        account = self.accounts.get(key)
        if account is not None:
            account.net += cash
        else:
            self.deltas[key] = self.deltas.get(key, 0) + cash

    def pay_dividends(self, weights: Mapping[Pool, float] | None = None) -> None:
        """Distribute the cash of the virtual page over the pools. The remainder of the division stays.

        weights: of one page of each pool (Ordering.pool_weights); 1 each by default, as published: the virtual page
        links to all pages. If the weights leave no page to pay, all are paid equally; otherwise cash would stay with
        the virtual page.
        """
        shares = [self.pages[pool] * (1.0 if weights is None else weights.get(pool, 0.0)) for pool in Pool]
        if sum(shares) <= 0:
            shares = [float(pages) for pages in self.pages]
        total, cash = sum(shares), self.virtual_page_cash
        for pool in (pool for pool in Pool if self.pages[pool]):
            pages = self.pages[pool]
            # The bound matters if two products are rounded up by a fraction each.
            each = min(int(cash * (shares[pool] / total)), self.virtual_page_cash) // pages
            self.dividend[pool] += each
            self.virtual_page_cash -= each * pages
