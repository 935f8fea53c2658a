"""The domain's economy while a batch is recorded: who takes part, and what each page is paid."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from crawler.core.domain_settings import DomainSettings
from crawler.core.http.urls import PageKey, Url
from crawler.core.opic.opic import Economy, PageAccount, Pool, history_after, settle
from crawler.core.opic.order import LevelQueues, Ordering, PageStack, aged, head_start
from crawler.core.page_rules import PageRules
from crawler.core.visit.visit import State, Visit
from crawler.store.database import Connection
from crawler.store.domain_rows import count_limited_pages
from crawler.store.record.positions import IN, MOST_MOVES, PagePosition, places_for, positions_of
from crawler.store.rows import excluded, fetch_dict, fetch_rows, to_columns, unnest

ECONOMY = """
    SELECT reserve, dormant, clock, coins, newcomers_cash, newcomers_clock, window_passes AS passes,
           tracked
      FROM domain_state WHERE domain_id = %s
"""
POOLS = "SELECT pool, pages, dividend FROM pool WHERE domain_id = %s ORDER BY pool"
ACCOUNTS = "SELECT key, pool, net, history, clock FROM cash WHERE domain_id = %s AND key = ANY(%s)"

URLS = """
    SELECT p.key, p.url FROM page p JOIN frontier f ON f.domain_id = %(domain_id)s AND f.key = p.key
     WHERE p.domain_id = %(domain_id)s AND p.key = ANY(%(keys)s) AND f.state = 'new'
"""

WRITTEN = ("reserve", "dormant", "clock", "newcomers_cash", "newcomers_clock")
WRITE_DOMAIN = f"""
    UPDATE domain_state SET {", ".join(f"{name} = %({name})s" for name in WRITTEN)}, tracked = %(tracked)s
     WHERE domain_id = %(domain_id)s
"""  # noqa: S608  only our own columns are put in
WRITE_POOLS = f"""
    UPDATE pool p SET pages = x.pages, dividend = x.dividend
      FROM {unnest("pool smallint, pages bigint, dividend bigint")}
     WHERE p.domain_id = %(domain_id)s AND p.pool = x.pool
       AND (p.pages, p.dividend) IS DISTINCT FROM (x.pages, x.dividend)
"""  # noqa: S608  only our own columns are put in
ACCOUNT_COLUMNS = "key bytea, pool smallint, net bigint, history float8, clock float8"
WRITE_ACCOUNTS = f"""
    INSERT INTO cash (domain_id, key, pool, net, history, clock)
    SELECT %(domain_id)s, * FROM {unnest(ACCOUNT_COLUMNS)}
    ON CONFLICT (domain_id, key) DO UPDATE SET {excluded(("pool", "net", "history", "clock"))}
"""  # noqa: S608  likewise
# One update for each page that is paid, however many links pay it. A new page's rank follows its net.
PAY = f"""
    WITH paid AS (
        UPDATE cash c SET net = c.net + x.coins
          FROM {unnest("key bytea, coins bigint")}
         WHERE c.domain_id = %(domain_id)s AND c.key = x.key
     RETURNING c.key, c.pool, c.net, c.clock)
    SELECT paid.key, paid.net, paid.clock FROM paid WHERE paid.pool IN (0, 2)
"""  # noqa: S608  likewise
RANK = f"""
    UPDATE frontier f SET rank = x.rank FROM {unnest("key bytea, rank int")}
     WHERE f.domain_id = %(domain_id)s AND f.key = x.key AND f.state = 'new'
"""  # noqa: S608  likewise
COUNT_LIMITED = f"""
    UPDATE rule r SET pages = r.pages + x.more FROM {unnest("pattern text, more bigint")}
     WHERE r.domain_id = %(domain_id)s AND r.pattern = x.pattern
"""  # noqa: S608  likewise
NOTHING: Mapping[PageKey, int] = MappingProxyType({})
LEAVE = "DELETE FROM cash WHERE domain_id = %s AND key = ANY(%s)"


@dataclass(slots=True)
class OpicBatch:
    """All of a domain's economy that one batch touches."""

    economy: Economy
    settings: DomainSettings
    positions: dict[PageKey, PagePosition]
    moved_to: dict[PageKey, PageKey]
    tracked: int = 0  # pages that are known at all, whatever became of them
    left: set[PageKey] = field(default_factory=set)
    rules: PageRules = field(default_factory=PageRules)
    limited: Mapping[str, int] = field(default_factory=dict)  # pages that rules with a limit had admitted, by pattern
    admitted_by: Counter[str] = field(default_factory=Counter)  # pages of this batch
    page_score: Callable[[Url], float] | None = None
    places: LevelQueues | PageStack | None = None  # of an order that is by place
    placed: set[PageKey] = field(default_factory=set)  # pages that this batch gave one
    announced: dict[PageKey, float] = field(default_factory=dict)  # by changed pages: new ones, by what such are worth

    @property
    def ordering(self) -> Ordering:
        return self.settings.ordering

    def has_room_for(self, url: Url) -> bool:
        """Whether the rules that limit the number of such pages admit one more; if so, it counts for them."""
        limits = [self.rules.rules[n] for n in self.rules.limiting(url)]
        known = (self.limited.get(rule.pattern, 0) + self.admitted_by[rule.pattern] for rule in limits)
        if any(pages >= (rule.max_pages or 0) for pages, rule in zip(known, limits, strict=True)):
            return False
        self.admitted_by.update(rule.pattern for rule in limits)
        return True

    def admit(self, key: PageKey, url: Url, *, depth: int) -> PagePosition:
        """Admit a page that a link made known. It begins with its endowment, to which the link's share comes on top."""
        stand = self.meet(key, url, State.NEW, depth=depth)
        self.economy.admit(key, self._pool(stand))
        return stand

    def meet(self, key: PageKey, url: Url, state: State, *, depth: int) -> PagePosition:
        """Make a page known. One that we may not fetch stays outside the economy."""
        self.tracked += 1
        ordering = self.ordering
        stand = PagePosition(state, depth, favoured=ordering.favours(url), url_score=ordering.score(url))
        self.positions[key] = stand
        if self.page_score is not None:
            stand.head_start = head_start(self.page_score(url))
        return stand

    def line_up(self, links: Sequence[PageKey]) -> None:
        """Give a place to the new pages among those that a page just read links to, in an order that is by place.

        links: in the page's order. Breadth first: who has no place yet, or was found nearer, joins its level's queue.
        Depth first: all of them come next, the first link on top. One that an earlier page had found moves up, since
        the textbook's recursion enters a page from the one that it is reading, not from the one that named it first.
        """
        if self.places is None:
            return
        found = ((key, self.positions.get(key)) for key in links)
        waiting = [(key, stand) for key, stand in found if stand is not None and stand.state is State.NEW]
        if isinstance(self.places, PageStack):
            for key, stand in reversed(waiting):
                self._place(key, stand, self.places.push())
        else:
            for key, stand in waiting:
                if stand.level is None or stand.depth < stand.level:
                    self._place(key, stand, self.places.join(stand.depth))

    def _place(self, key: PageKey, stand: PagePosition, rank: int) -> None:
        stand.rank, stand.level = rank, stand.depth
        self.placed.add(key)

    def _pool(self, stand: PagePosition) -> Pool:
        return self.ordering.pool(known=stand.state is State.KNOWN, favoured=stand.favoured)

    def settle(self, visit: Visit) -> None:
        """Take the visited page's cash, pass it on, and put the page into its new state and pool."""
        key = visit.target.key
        stand = self.positions[key]
        before, stand.state = stand.state, visit.state
        if visit.is_good:
            self.moved_to.pop(key, None)
        if visit.moved_to is not None:
            self.moved_to[key] = visit.moved_to.key
        if before not in IN:
            if stand.state not in IN:
                return
            self.economy.admit(key, self._pool(stand))
            self.left.discard(key)
        elif stand.state not in IN:
            self._leave(key, heir=visit.moved_to.key if visit.moved_to else None)
            return
        if visit.recipients is not None:
            # A seed was found by nobody: what it brought says nothing about pages that links find.
            self._pay_recipients(visit, first=before is State.NEW and stand.depth > 0)
        self.economy.change_pool(key, self._pool(stand))

    def _pay_recipients(self, visit: Visit, *, first: bool) -> None:
        """Subtract what was read at the claim: links may have paid in since."""
        cash = min(visit.target.cash, self.economy.cash_of(visit.target.key))
        self.economy.take(visit.target.key, cash, first=first)
        links = visit.target.external_links if visit.external_links is None else visit.external_links
        done = settle(
            cash,
            visit.recipients or (),
            external_links=self.settings.external_links * sum(many for _, many in links),
            internal_weight=self.settings.internal_links,
            reserve_share=self.settings.reserve_share,
        )
        self.economy.reserve += done.to_reserve
        for link, coins in done.shares.items():
            self.pay(link, coins)

    def pay(self, key: PageKey, coins: int) -> None:
        """Pay a page, or whom it moved to, or the reserve."""
        paid = self.payee(key)
        if paid is None:
            self.economy.reserve += coins
        else:
            self.economy.pay(paid, coins)

    def payee(self, key: PageKey) -> PageKey | None:
        """The page itself or, where it moved on and on, the one at the end; None if that takes no part."""
        for _ in range(MOST_MOVES):
            stand = self.positions.get(key)
            if stand is None:
                return None
            if stand.state in IN:
                return key
            onward = self.moved_to.get(key) if stand.state is State.MOVED else None
            if onward is None:
                return None
            key = onward
        return None

    def _leave(self, key: PageKey, *, heir: PageKey | None) -> None:
        """A page that moved carries its cash and its history, both brought to the same clock; else its coins return."""
        economy = self.economy
        purse = economy.accounts[key]
        coins = economy.leave(key)
        self.left.add(key)
        payee = self.payee(heir) if heir is not None else None
        if payee is None:
            return
        economy.reserve -= coins
        economy.pay(payee, coins)
        inherits = economy.accounts.get(payee)
        if inherits is not None:
            now = economy.clock
            inherits.history = sum(
                history_after(p.history, 0.0, clock_before=p.clock, clock_now=now, window=economy.window)
                for p in (purse, inherits)
                if p is inherits or p.history > 0  # the debt of an endowment is not inherited: that sleeps again
            )
            inherits.clock = now

    def rank_of(self, key: PageKey, net: int, clock: float) -> int:
        """A new page's place in the order of discovery. By cash it comes from its net, which dividends leave as it is.

        clock: of the domain, when the page was found.
        """
        stand = self.positions[key]
        if self.ordering.order.is_by_place:
            return stand.rank
        return self.ordering.rank(aged(net, clock=clock) + stand.head_start, url_score=stand.url_score)

    def new_ranks(self, found: Mapping[PageKey, tuple[int, float]]) -> dict[PageKey, int]:
        """Ranks that differ from the stored ones: of new pages, by net and clock, or of those given another place."""
        if self.ordering.order.is_by_place:
            known = ((key, self.positions[key]) for key in self.placed)
            return {key: stand.rank for key, stand in known if stand.found_at is None and stand.state is State.NEW}
        ranks = {key: self.rank_of(key, net, clock) for key, (net, clock) in found.items()}
        return {key: rank for key, rank in ranks.items() if rank != self.positions[key].rank}


async def load_batch(
    connection: Connection,
    domain_id: int,
    visits: Sequence[Visit],
    *,
    domain_settings: DomainSettings,
    page_score: Callable[[Url], float] | None = None,
    met_beside: Mapping[PageKey, int] = NOTHING,
) -> OpicBatch:
    """Read what the visits will touch: the domain's economy, positions of pages, and the accounts of those that pay.

    met_beside: pages that are met without a visit, as entries of a list are, with their depths.
    """
    row = await fetch_dict(connection, ECONOMY, (domain_id,))
    assert row is not None  # the lease was just found in it
    tracked = row.pop("tracked")
    pools = await fetch_rows(connection, POOLS, (domain_id,))
    economy = Economy(**row, pages=[pages for _, pages, _ in pools], dividend=[each for *_, each in pools])
    opened = {visit.target.key for visit in visits}
    heirs = {visit.moved_to.key for visit in visits if visit.moved_to}
    met = {*opened, *heirs, *met_beside}
    for visit in visits:
        met.update(link.key for link in visit.feeds)
        met.update(link.key for link in visit.links or ())
        met.update(visit.recipients or ())
    stands, moved_to = await positions_of(connection, domain_id, met)
    books = OpicBatch(economy, domain_settings, stands, moved_to, tracked=tracked, page_score=page_score)
    if page_score is not None:
        for key, url in await fetch_rows(connection, URLS, {"domain_id": domain_id, "keys": list(stands)}):
            stands[PageKey(key)].head_start = head_start(page_score(Url(url)))
    if any(rule.max_pages is not None for rule in domain_settings.rules):
        books.rules = PageRules(domain_settings.rules)
        books.limited = await count_limited_pages(connection, domain_id)
    if domain_settings.ordering.order.is_by_place:
        depths = {visit.target.depth + 1 for visit in visits} | set(met_beside.values())
        books.places = await places_for(connection, domain_id, domain_settings.ordering.order, depths)
    ends = {end for heir in heirs if (end := books.payee(heir)) is not None}  # who is heir where an heir moved on
    accounts = await fetch_rows(connection, ACCOUNTS, (domain_id, list(opened | heirs | ends)), binary=True)
    for key, pool, net, history, then in accounts:
        economy.accounts[PageKey(key)] = PageAccount(pool=Pool(pool), net=net, history=history, clock=then)
    return books


async def write_batch(connection: Connection, domain_id: int, books: OpicBatch) -> None:
    """Write back what changed. Links that paid into unopened purses come as one update each."""
    economy = books.economy
    if books.left:
        await connection.execute(LEAVE, (domain_id, list(books.left)))
    if more := books.admitted_by:
        values = {"domain_id": domain_id, "pattern": list(more), "more": list(more.values())}
        await connection.execute(COUNT_LIMITED, values)
    purses = economy.accounts
    if purses:
        rows = [(key, each.pool.value, each.net, each.history, each.clock) for key, each in purses.items()]
        accounts = to_columns(ACCOUNT_COLUMNS, rows) | {"domain_id": domain_id}
        await connection.execute(WRITE_ACCOUNTS, accounts, binary=True)
    figures = {name: getattr(economy, name) for name in WRITTEN}
    await connection.execute(WRITE_DOMAIN, figures | {"domain_id": domain_id, "tracked": books.tracked})
    pools = {"pool": [pool.value for pool in Pool], "pages": economy.pages, "dividend": economy.dividend}
    await connection.execute(WRITE_POOLS, pools | {"domain_id": domain_id})
    new = {key: (purse.net, purse.clock) for key, purse in purses.items() if books.positions[key].state is State.NEW}
    if economy.deltas:
        paid = {"domain_id": domain_id, "key": list(economy.deltas), "coins": list(economy.deltas.values())}
        new |= {PageKey(key): (net, clock) for key, net, clock in await fetch_rows(connection, PAY, paid, binary=True)}
    if ranks := books.new_ranks(new):
        await connection.execute(RANK, {"domain_id": domain_id, "key": list(ranks), "rank": list(ranks.values())})
