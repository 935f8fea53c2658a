"""Five pages on which Nutch 0.9's scores and OPIC's cash can be compared on paper.

Nutch keeps one score per page. A visited page adds its score, in equal parts, to those of the pages it links to, and
keeps it. There is no virtual page. Therefore every revisit raises the linked pages, and the total grows without end.
Source: the notes on OPIC in Nutch and the five-page example in them; Nutch's wiki, "FixingOpicScoring".
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import cycle, islice

from crawler.core.http.urls import PageKey
from crawler.core.opic.opic import TOTAL_CASH, Economy, Pool, compute_importance, settle_cash
from labs.experiments.fixpoint import fixpoint
from labs.experiments.graph import from_rows

LINKS: Mapping[str, str] = {"A": "BC", "B": "DE", "C": "E", "D": "", "E": "B"}
READING = "ABCED"  # one page per round, repeated
INJECTED = "A"


@dataclass(frozen=True, slots=True)
class Round:
    """The state after a round: the scores of the known pages, and their importance by OPIC (mean 1).

    number: 0 before the first visit.  reads: the visited page of this round, or nothing.  read: all visited pages so
    far.
    """

    number: int
    reads: str
    read: frozenset[str]
    scores: Mapping[str, float]
    importance: Mapping[str, float]


def rounds(count: int) -> Iterator[Round]:
    """Yield the initial state and this many rounds."""
    scores = {INJECTED: 1.0}
    books = _Accounts()
    read: frozenset[str] = frozenset()
    yield Round(0, "", read, dict(scores), books.importance())
    for number, page in enumerate(islice(cycle(READING), count), start=1):
        _score(scores, page)
        books.visit(page)
        read |= {page}
        yield Round(number, page, read, dict(scores), books.importance())


def truth() -> Mapping[str, float]:
    """Return importance as the fixpoint of the link matrix; the mean page's is 1."""
    names = list(LINKS)
    found = fixpoint(from_rows([[names.index(link) for link in LINKS[name]] for name in names]))
    return dict(zip(names, found.tolist(), strict=True))


def _score(scores: dict[str, float], page: str) -> None:
    """Update scores like Nutch after a page was visited."""
    links = LINKS[page]
    for link in links:
        scores[link] = scores.get(link, 0.0) + scores[page] / len(links)


class _Accounts:
    """The product's economy of the five pages; discovered pages are admitted as in a crawl."""

    def __init__(self) -> None:
        self._economy = Economy(virtual_page_cash=0, dormant=TOTAL_CASH, clock=0.0, pages=[0] * 4, dividend=[0] * 4)
        self._economy.admit_page(_key(INJECTED), Pool.UNFETCHED)

    def visit(self, page: str) -> None:
        economy, key = self._economy, _key(page)
        for link in LINKS[page]:
            if _key(link) not in economy.accounts:
                economy.admit_page(_key(link), Pool.UNFETCHED)
        cash = economy.get_cash(key)
        economy.collect_cash(key, cash, is_first_visit=economy.accounts[key].pool is Pool.UNFETCHED)
        done = settle_cash(cash, [_key(link) for link in LINKS[page]])
        economy.virtual_page_cash += done.to_virtual_page
        for paid, amount in done.shares.items():
            economy.pay_page(paid, amount)
        economy.change_pool(key, Pool.FETCHED)
        economy.pay_dividends()

    def importance(self) -> dict[str, float]:
        economy = self._economy
        return {
            name: compute_importance(
                purse.history,
                economy.get_cash(_key(name)),
                clock_last=purse.clock,
                clock_now=economy.clock,
                pages=economy.member_count,
                window=economy.window,
            )
            for name in LINKS
            if (purse := economy.accounts.get(_key(name))) is not None
        }


def _key(name: str) -> PageKey:
    return PageKey(name.encode().rjust(16, b"\0"))
