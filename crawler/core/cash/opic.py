"""The cash economy of one domain: Adaptive OPIC, in whole coins.

Source: Abiteboul, Preda, Cobena, "Adaptive On-Line Page Importance Computation", WWW 2003.

Every domain is closed: coins in pages, in the reserve (the paper's virtual page) and dormant add up to COINS for ever.
The paper begins with C[i] = 1/n; who does not know n yet must not give all cash to the few pages found first, whose
history would tell of it for many passes. So each page brings the same endowment into circulation when it is admitted,
out of the dormant coins, and takes it out when it leaves.
The reserve pays lazily: a pool of pages that are paid alike has a running dividend, and a page's cash is its own net
plus its pool's dividend, so that paying a million pages changes one number.
"""

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from enum import IntEnum

from crawler.core.http import PageKey

COINS = 10**15  # of one domain; a share of a share stays whole, and the sum fits in 64 bits
ENDOWMENT = COINS // 10**7  # of each page; enough for ten million of them, and a hundred million shares of each
# What the first seeds of a domain bring together, in endowments, to share it out over what they link to. With one for
# each, any page with a few links says more about its neighbours than the root about its chapters.
FIRST_SEEDS = 100
RESERVE_SHARE = 0.15  # of every visit's cash: the small edge to the virtual page, with the weight of PageRank's jump
# k in the window T = k M of importance; M: the coins in circulation. Of graphs that do not change, 24 estimate five
# times as well as 8, and most-cash-first runs through them in ten visits of each page (docs/decisions/0012).
WINDOW_PASSES = 24.0
NEWCOMERS = 50  # by the first visits of about so many pages is judged what a new page is worth


class Pool(IntEnum):
    """Pages that the reserve pays alike. The focused twins hold pages that the user favours."""

    NEW = 0
    KNOWN = 1
    NEW_FOCUSED = 2
    KNOWN_FOCUSED = 3


@dataclass(frozen=True, slots=True)
class Settlement:
    """Where a visit's cash goes. Always: cash == sum(shares) + to_reserve."""

    shares: Mapping[PageKey, int]
    to_reserve: int


def settle(
    cash: int, outlinks: Collection[PageKey], *, elsewhere: float = 0.0, reserve_share: float = RESERVE_SHARE
) -> Settlement:
    """Share a visited page's cash out over the pages it links to.

    cash: coins, 0 or more.  outlinks: keys of in-domain links; duplicates count once.  elsewhere: for how many more
    links of that kind those to other domains count; their part leaves by the reserve, as the economy is closed.
    Always: cash == sum(shares) + to_reserve, to the coin.  Without outlinks all of it goes to the reserve, and so does
    what does not divide.
    Source: Abiteboul, Preda, Cobena, WWW 2003, section 3.
    """
    distinct = dict.fromkeys(outlinks)
    if not distinct or cash <= 0:
        return Settlement(shares={}, to_reserve=max(cash, 0))
    given = cash - math.ceil(cash * reserve_share)
    if elsewhere > 0:
        given = int(given * (len(distinct) / (len(distinct) + elsewhere)))
    share = given // len(distinct)
    if share <= 0:
        return Settlement(shares={}, to_reserve=cash)
    return Settlement(shares=dict.fromkeys(distinct, share), to_reserve=cash - share * len(distinct))


def window_of(circulating: int, *, passes: float = WINDOW_PASSES) -> float:
    """The window T = k M, in coins of the domain's clock."""
    return passes * circulating


def history_after(history: float, cash: float, *, clock_before: float, clock_now: float, window: float) -> float:
    """The cash that a page received within the window, after a visit that takes `cash`.

    All in coins. clock_before: the domain's clock at the page's last visit (or admission).
    The interpolation policy: H (T - d)/T + C for d = G - G_last < T, else C T/d. Until the clock has run for a whole
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


def importance(history: float, cash: float, *, clock_last: float, clock_now: float, pages: int, window: float) -> float:
    """How important a page is, relative to the mean page of its domain (mean 1).

    history, cash, clocks, window: in coins; cash that waits counts as if taken now.
    The paper's (H + C)/(G + 1) with the window in place of G, times the number of pages; never below 0.
    """
    reach = min(window, clock_now)
    if reach <= 0:
        return 1.0
    received = history_after(history, cash, clock_before=clock_last, clock_now=clock_now, window=window)
    return max(pages * received / reach, 0.0)


def default_history(relative: float, *, pages: int, clock: float, window: float, endowment: int = ENDOWMENT) -> float:
    """The history of a page admitted now: what a page of that relative importance would have received.

    Less its endowment, which it has not received from anybody: without that debt every page looks more alike than it
    is for as long as its first cash is remembered.
    A domain whose clock has not run for a window is not believed in full, but by the part that it has run: while a site
    is discovered, the first visits are those of the richest new pages, and nothing of what they say is forgotten yet.
    """
    reach = min(window, clock)
    return relative * reach / max(pages, 1) * (reach / max(window, 1.0)) - endowment


def seed_endowment(seeds: int, *, is_first: bool) -> int:
    """What each of so many seeds brings into circulation, in coins. is_first: the domain has no page yet."""
    return max(FIRST_SEEDS // seeds, 1) * ENDOWMENT if is_first and seeds else ENDOWMENT


def weights_of(*, discovery: float, refresh: float, focus: float) -> dict[Pool, float]:
    """What one page of each pool gets of the reserve, against one of another: the paper's dial.

    discovery, refresh: of a page that was never fetched, and of a known one.  focus: how many times as much one that
    the user favours.  1 each is the virtual page as published, which links to all pages alike.
    """
    return {
        Pool.NEW: discovery,
        Pool.KNOWN: refresh,
        Pool.NEW_FOCUSED: discovery * focus,
        Pool.KNOWN_FOCUSED: refresh * focus,
    }


@dataclass(slots=True)
class PageAccount:
    """One page's part in the economy while a batch is settled: its cash is net + its pool's dividend."""

    pool: Pool
    net: int
    history: float = 0.0
    clock: float = 0.0


@dataclass(slots=True)
class Economy:
    """A domain's economy while one batch is settled; loaded from the store, changed here, written back whole.

    Holds only the purses that the batch touches. Invariant, with the purses that are not here unchanged:
    sum(net) + sum(pages[p] * dividend[p]) + reserve + dormant == coins.
    """

    reserve: int
    dormant: int
    clock: float
    pages: list[int]
    dividend: list[int]
    coins: int = COINS
    newcomers_cash: float = 0.0
    newcomers_clock: float = 0.0
    accounts: dict[PageKey, PageAccount] = field(default_factory=dict)
    deltas: dict[PageKey, int] = field(default_factory=dict)

    @property
    def members(self) -> int:
        """How many pages take part."""
        return sum(self.pages)

    @property
    def new_importance(self) -> float:
        """The importance, relative to the mean, that pages admitted of late showed at their first visit."""
        if self.newcomers_clock <= 0:
            return 1.0
        return self.members * self.newcomers_cash / self.newcomers_clock

    @property
    def window(self) -> float:
        return window_of(self.coins - self.dormant)

    def cash_of(self, key: PageKey) -> int:
        purse = self.accounts[key]
        return purse.net + self.dividend[purse.pool]

    def admit(self, key: PageKey, pool: Pool) -> PageAccount:
        """Let a page take part: with its endowment, and the importance that new pages have had of late."""
        endowment = min(ENDOWMENT, self.dormant)
        self.dormant -= endowment
        self.pages[pool] += 1
        history = default_history(
            self.new_importance, pages=self.members, clock=self.clock, window=self.window, endowment=endowment
        )
        purse = PageAccount(pool=pool, net=endowment - self.dividend[pool], history=history, clock=self.clock)
        self.accounts[key] = purse
        return purse

    def leave(self, key: PageKey) -> int:
        """Take a page out: an endowment sleeps again, the rest goes to the reserve. Gives how much that was."""
        purse = self.accounts.pop(key)
        coins = purse.net + self.dividend[purse.pool]
        asleep = min(ENDOWMENT, coins)
        self._shrink(purse.pool)
        self.dormant += asleep
        self.reserve += coins - asleep
        return coins - asleep

    def change_pool(self, key: PageKey, pool: Pool) -> None:
        """Move a page to another pool: it carries its cash, never its net."""
        purse = self.accounts[key]
        if purse.pool == pool:
            return
        purse.net += self.dividend[purse.pool] - self.dividend[pool]
        self._shrink(purse.pool)
        self.pages[pool] += 1
        purse.pool = pool

    def _shrink(self, pool: Pool) -> None:
        """An empty pool begins again with no dividend. It only ever grows, and ranks, made of nets, have 32 bits."""
        self.pages[pool] -= 1
        if self.pages[pool] == 0:
            self.dividend[pool] = 0

    def take(self, key: PageKey, cash: int, *, first: bool) -> None:
        """A visit takes the cash that was read at the claim; what links paid in since stays.

        Adds it to the page's history and to the domain's clock.
        """
        purse = self.accounts[key]
        purse.net -= cash
        before = purse.clock
        self.clock += cash
        purse.history = history_after(
            purse.history, cash, clock_before=before, clock_now=self.clock, window=self.window
        )
        purse.clock = self.clock
        if first:  # what links paid it in which time; its endowment tells nothing
            self.newcomers_cash += max(cash - ENDOWMENT, 0) - self.newcomers_cash / NEWCOMERS
            self.newcomers_clock += self.clock - before - self.newcomers_clock / NEWCOMERS

    def pay(self, key: PageKey, coins: int) -> None:
        """Pay a page that takes part; one that is not loaded is remembered as a delta to its net."""
        purse = self.accounts.get(key)
        if purse is not None:
            purse.net += coins
        else:
            self.deltas[key] = self.deltas.get(key, 0) + coins

    def pay_dividends(self, weights: Mapping[Pool, float] | None = None) -> None:
        """Pay the reserve out over the pools; what does not divide, and what no page can take, stays.

        weights: of one page of each pool against one of another, 1 each by default, as published: the virtual page
        links to all pages alike. This is the paper's dial between discovery, refresh and focus. Where it leaves nobody
        to be paid, all are paid alike: else the reserve would be a sink for ever.
        """
        shares = [self.pages[pool] * (1.0 if weights is None else weights.get(pool, 0.0)) for pool in Pool]
        if sum(shares) <= 0:
            shares = [float(pages) for pages in self.pages]
        total = sum(shares)
        if total <= 0:
            return
        reserve = self.reserve
        for pool in Pool:
            pages = self.pages[pool]
            if pages == 0:
                continue
            # The bound matters where two products round up by a fraction of a coin each.
            each = min(int(reserve * (shares[pool] / total)), self.reserve) // pages
            self.dividend[pool] += each
            self.reserve -= each * pages
