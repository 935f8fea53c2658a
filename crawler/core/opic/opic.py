"""The cash economy of one domain: Adaptive OPIC, in whole coins.

Source: Abiteboul, Preda, Cobena, "Adaptive On-Line Page Importance Computation", WWW 2003.

Every domain is closed: coins in pages, in the reserve (the paper's virtual page) and dormant add up to COINS for ever.
The paper begins with C[i] = 1/n. A crawler does not know n yet, and must not give all cash to the few pages found
first, whose history would show it for many passes. So each page brings an equal endowment into circulation when it is
admitted, out of the dormant coins, and takes it out when it leaves.
The reserve pays lazily: a pool of pages that are paid alike has a running dividend, and a page's cash is its own net
plus its pool's dividend, so that paying a million pages changes one number.
"""

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from enum import IntEnum

from crawler.core.http.urls import PageKey

TOTAL_CASH = 10**15  # of one domain; a share of a share stays whole, and the sum fits in 64 bits
ENDOWMENT = TOTAL_CASH // 10**7  # of each page; enough for ten million of them, and a hundred million shares of each
# Endowments that the first seeds of a domain bring in together, to share out over the pages they link to. With one
# endowment each, any page with a few links would raise its neighbours more than the root raises its chapters.
FIRST_SEEDS = 100
VIRTUAL_PAGE_SHARE = (
    0.15  # of every visit's cash: the small edge to the virtual page, with the weight of PageRank's jump
)
# k in the window T = k M of importance; M: the coins in circulation. Of graphs that do not change, 24 estimate five
# times as well as 8, and most-cash-first runs through them in ten visits of each page (docs/decisions/0012).
WINDOW_PASSES = 24.0
NEW_PAGES_AVERAGED = 50  # pages whose first visits are averaged to estimate the importance of a new page


class Pool(IntEnum):
    """A pool of pages that the reserve pays alike. The focused pools hold pages that the user favours."""

    UNFETCHED = 0
    FETCHED = 1
    UNFETCHED_BOOSTED = 2
    FETCHED_BOOSTED = 3


@dataclass(frozen=True, slots=True)
class Settlement:
    """The distribution of a visit's cash. Always: cash == sum(shares) + to_reserve."""

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
    """Share a visited page's cash out over the pages it links to.

    cash: coins, 0 or more.  outlinks: keys of in-domain links; duplicates count once.
    external_links: the links to other domains, times the factor of each; their part goes to the reserve, as the economy
    is closed.  internal_weight: the factor of each in-domain link beside those; 0: nothing goes along links.
    virtual_page_share: of the cash, 0 to 1, that goes to the reserve before all.
    Always: cash == sum(shares) + to_reserve, to the coin.  Without outlinks all of it goes to the reserve, and so does
    a remainder that does not divide.
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
    """The cash that a page received within the window, after a visit that takes `cash`.

    All in coins.  clock_before: the domain's clock at the page's last visit (or admission).
    By the interpolation policy: H (T - d)/T + C for d = G - G_last < T, else C T/d. Until the clock has run for a whole
    window nothing is forgotten, and the old history stands for the shorter window of its own time.
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
    """The importance of a page, relative to the mean page of its domain (mean 1).

    history, cash, clocks, window: in coins; cash that waits counts as if taken now.
    The paper's (H + C)/(G + 1) with the window in place of G, times the number of pages; never below 0.
    """
    reach = min(window, clock_now)
    if reach <= 0:
        return 1.0
    received = update_history(history, cash, clock_before=clock_last, clock_now=clock_now, window=window)
    return max(pages * received / reach, 0.0)


def compute_initial_history(
    relative: float, *, pages: int, clock: float, window: float, endowment: int = ENDOWMENT
) -> float:
    """The history of a page admitted now: the cash that a page of that relative importance would have received.

    The endowment is subtracted, since no page paid it: without that debt pages would look more alike than they are
    for as long as their first cash is remembered.
    Before the clock has run for a window, the history is scaled down by the part that it has run: while a site is
    discovered, the first visits are those of the richest new pages, and would raise all others too much.
    """
    reach = min(window, clock)
    return relative * reach / max(pages, 1) * (reach / max(window, 1.0)) - endowment


def compute_seed_endowment(seeds: int, *, is_first: bool) -> int:
    """The coins that each of so many seeds brings into circulation. is_first: the domain has no page yet."""
    return max(FIRST_SEEDS // seeds, 1) * ENDOWMENT if is_first and seeds else ENDOWMENT


@dataclass(slots=True)
class PageAccount:
    """The account of one page while a batch is settled: its cash is net + its pool's dividend."""

    pool: Pool
    net: int
    history: float = 0.0
    clock: float = 0.0


@dataclass(slots=True)
class Economy:
    """A domain's economy while one batch is settled; loaded from the store, changed here, written back whole.

    Only the accounts that the batch touches are loaded.  passes: of its clock, that the window of importance is long.
    Always, with all other accounts unchanged:
    sum(net) + sum(pages[p] * dividend[p]) + reserve + dormant == coins.
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
        """Number of pages that take part."""
        return sum(self.pages)

    @property
    def new_importance(self) -> float:
        """The importance, relative to the mean, that pages admitted of late showed at their first visit."""
        if self.newcomers_clock <= 0:
            return 1.0
        return self.member_count * self.newcomers_cash / self.newcomers_clock

    @property
    def window(self) -> float:
        """The window T = k M of importance, in coins of the domain's clock."""
        return self.passes * (self.total_cash - self.dormant)

    def get_cash(self, key: PageKey) -> int:
        account = self.accounts[key]
        return account.net + self.dividend[account.pool]

    def admit_page(self, key: PageKey, pool: Pool) -> PageAccount:
        """Admit a page with its endowment, and the importance that new pages have had of late."""
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
        """Take a page out: an endowment becomes dormant again, the rest goes to the reserve. Returns the rest."""
        account = self.accounts.pop(key)
        cash = account.net + self.dividend[account.pool]
        dormant_cash = min(ENDOWMENT, cash)
        self._shrink_pool(account.pool)
        self.dormant += dormant_cash
        self.virtual_page_cash += cash - dormant_cash
        return cash - dormant_cash

    def change_pool(self, key: PageKey, pool: Pool) -> None:
        """Move a page to another pool: it carries its cash, never its net."""
        account = self.accounts[key]
        if account.pool == pool:
            return
        account.net += self.dividend[account.pool] - self.dividend[pool]
        self._shrink_pool(account.pool)
        self.pages[pool] += 1
        account.pool = pool

    def _shrink_pool(self, pool: Pool) -> None:
        """Count one page less in a pool; an empty pool begins again with dividend 0.

        A dividend only ever grows otherwise, and ranks, which are made of nets, have 32 bits.
        """
        self.pages[pool] -= 1
        if self.pages[pool] == 0:
            self.dividend[pool] = 0

    def collect_cash(self, key: PageKey, cash: int, *, is_first_visit: bool) -> None:
        """Take the cash of a visited page, as it was read at the claim; cash that links paid in since stays.

        The cash is added to the page's history and to the domain's clock.
        """
        account = self.accounts[key]
        account.net -= cash
        before = account.clock
        self.clock += cash
        account.history = update_history(
            account.history, cash, clock_before=before, clock_now=self.clock, window=self.window
        )
        account.clock = self.clock
        if is_first_visit:  # without the endowment, which no link paid
            self.newcomers_cash += max(cash - ENDOWMENT, 0) - self.newcomers_cash / NEW_PAGES_AVERAGED
            self.newcomers_clock += self.clock - before - self.newcomers_clock / NEW_PAGES_AVERAGED

    def pay_page(self, key: PageKey, cash: int) -> None:
        """Pay a page that takes part; one that is not loaded is remembered as a delta to its net."""
        account = self.accounts.get(key)
        if account is not None:
            account.net += cash
        else:
            self.deltas[key] = self.deltas.get(key, 0) + cash

    def pay_dividends(self, weights: Mapping[Pool, float] | None = None) -> None:
        """Pay the reserve out over the pools; a remainder that does not divide, or that no page can take, stays.

        weights: of one page of each pool (see Ordering.weights), 1 each by default, as published: the virtual page
        links to all pages alike. Where they leave no page to be paid, all are paid alike: else the reserve would be a
        sink.
        """
        shares = [self.pages[pool] * (1.0 if weights is None else weights.get(pool, 0.0)) for pool in Pool]
        if sum(shares) <= 0:
            shares = [float(pages) for pages in self.pages]
        total = sum(shares)
        if total <= 0:
            return
        virtual_page = self.virtual_page_cash
        for pool in Pool:
            pages = self.pages[pool]
            if pages == 0:
                continue
            # The bound matters where two products round up by a fraction of a coin each.
            each = min(int(virtual_page * (shares[pool] / total)), self.virtual_page_cash) // pages
            self.dividend[pool] += each
            self.virtual_page_cash -= each * pages
