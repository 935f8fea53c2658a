"""The OPIC economy of a domain while a batch is recorded: the pages that take part and the cash that each receives.

For the terms, see core/opic/opic.py and docs/importance.md.
"""

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from types import MappingProxyType

from msgspec import Struct, field

from crawler.core.domain_settings import DomainSettings
from crawler.core.http.urls import PageKey, Url
from crawler.core.opic.opic import Economy, PageAccount, Pool, settle_cash, update_history
from crawler.core.opic.order import LevelQueues, Ordering, PageStack, age_cash, compute_head_start
from crawler.core.page_rules import PageRules
from crawler.core.visit.state import State
from crawler.core.visit.visit import Visit
from crawler.store.database import Connection
from crawler.store.domain_rows import count_limited_pages
from crawler.store.record.positions import IN_ECONOMY, MAX_MOVES, PagePosition, load_queue, read_positions
from crawler.store.rows import build_unnest, build_upsert_set, fetch_dict, fetch_rows, split_into_columns

ECONOMY = """
    SELECT virtual_page_cash, dormant, clock, total_cash, newcomers_cash, newcomers_clock, window_passes AS passes,
           tracked
      FROM domain_state WHERE domain_id = %s
"""
POOLS = "SELECT pool, pages, dividend FROM pool WHERE domain_id = %s ORDER BY pool"
ACCOUNTS = "SELECT key, pool, net, history, clock FROM cash WHERE domain_id = %s AND key = ANY(%b)"

URLS = """
    SELECT p.key, p.url FROM page p JOIN frontier f ON f.domain_id = %(domain_id)s AND f.key = p.key
     WHERE p.domain_id = %(domain_id)s AND p.key = ANY(%(keys)s) AND f.state = 'unfetched'
"""

ECONOMY_COLUMNS = ("virtual_page_cash", "dormant", "clock", "newcomers_cash", "newcomers_clock")
WRITE_DOMAIN = f"""
    UPDATE domain_state SET {", ".join(f"{name} = %({name})s" for name in ECONOMY_COLUMNS)}, tracked = %(tracked)s
     WHERE domain_id = %(domain_id)s
"""  # noqa: S608  only our own columns are inserted
WRITE_POOLS = f"""
    UPDATE pool p SET pages = x.pages, dividend = x.dividend
      FROM {build_unnest("pool smallint, pages bigint, dividend bigint")}
     WHERE p.domain_id = %(domain_id)s AND p.pool = x.pool
       AND (p.pages, p.dividend) IS DISTINCT FROM (x.pages, x.dividend)
"""  # noqa: S608  only our own columns are inserted
ACCOUNT_COLUMNS = "key bytea, pool smallint, net bigint, history float8, clock float8"
WRITE_ACCOUNTS = f"""
    INSERT INTO cash (domain_id, key, pool, net, history, clock)
    SELECT %(domain_id)s, * FROM {build_unnest(ACCOUNT_COLUMNS)}
    ON CONFLICT (domain_id, key) DO UPDATE SET {build_upsert_set(("pool", "net", "history", "clock"))}
"""  # noqa: S608  likewise
# One update for each page that receives cash, from any number of links. Returns the unfetched ones (pools 0 and 2),
# because their rank depends on their net.
PAY = f"""
    WITH paid AS (
        INSERT INTO cash AS c (domain_id, key, pool, net)  -- an upsert as in WRITE_FRONTIER
        SELECT %(domain_id)s, x.key, 0, x.cash FROM {build_unnest("key bytea, cash bigint")}
        ON CONFLICT (domain_id, key) DO UPDATE SET net = c.net + excluded.net
     RETURNING c.key, c.pool, c.net, c.clock)
    SELECT paid.key, paid.net, paid.clock FROM paid WHERE paid.pool IN (0, 2)
"""  # noqa: S608  likewise
WRITE_RANKS = f"""
    INSERT INTO frontier AS f (domain_id, key, state, rank)
    SELECT %(domain_id)s, x.key, 'unfetched', x.rank FROM {build_unnest("key bytea, rank int")}
    ON CONFLICT (domain_id, key) DO UPDATE SET rank = excluded.rank WHERE f.state = 'unfetched'
"""  # noqa: S608  likewise
COUNT_LIMITED = f"""
    UPDATE rule r SET pages = r.pages + x.more FROM {build_unnest("pattern text, more bigint")}
     WHERE r.domain_id = %(domain_id)s AND r.pattern = x.pattern
"""  # noqa: S608  likewise
NO_PAGES: Mapping[PageKey, int] = MappingProxyType({})
DELETE_ACCOUNTS = "DELETE FROM cash WHERE domain_id = %s AND key = ANY(%b)"


class OpicBatch(Struct):
    """The part of a domain's OPIC economy that one batch needs.

    moved_to: the target of each page that has moved.  removed: pages that have left the economy.
    """

    economy: Economy
    settings: DomainSettings
    positions: dict[PageKey, PagePosition]
    moved_to: dict[PageKey, PageKey]
    tracked: int = 0  # pages in any state
    removed: set[PageKey] = field(default_factory=set)
    rules: PageRules = field(default_factory=PageRules)
    # pages admitted before this batch under rules with a page limit, by pattern
    limited_pages: Mapping[str, int] = field(default_factory=dict)
    admitted_by_rule: Counter[str] = field(default_factory=Counter)  # pages of this batch
    page_score: Callable[[Url], float] | None = None
    queue: LevelQueues | PageStack | None = None  # for breadth-first and depth-first order
    queued: set[PageKey] = field(default_factory=set)  # pages that this batch has put into the queue
    # for each visited page, the expected shares of new text of the pages that the visit discovered, summed
    announced: dict[PageKey, float] = field(default_factory=dict)

    @property
    def ordering(self) -> Ordering:
        return self.settings.ordering

    def admit_by_rules(self, url: Url) -> bool:
        """Return whether all rules with a page limit for this URL admit one more page, and count it if so."""
        limits = [self.rules.rules[n] for n in self.rules.list_limiting_rules(url)]
        page_counts = (self.limited_pages.get(rule.pattern, 0) + self.admitted_by_rule[rule.pattern] for rule in limits)
        if any(pages >= (rule.max_pages or 0) for pages, rule in zip(page_counts, limits, strict=True)):
            return False
        self.admitted_by_rule.update(rule.pattern for rule in limits)
        return True

    def admit_page(self, key: PageKey, url: Url, *, depth: int) -> PagePosition:
        """Admit a discovered page. It starts with its endowment; links pay it later."""
        position = self.add_page(key, url, State.UNFETCHED, depth=depth)
        self.economy.admit_page(key, self._choose_pool(position))
        return position

    def add_page(self, key: PageKey, url: Url, state: State, *, depth: int) -> PagePosition:
        """Add a page without an account in the economy."""
        self.tracked += 1
        ordering = self.ordering
        position = PagePosition(state, depth, boosted=ordering.is_boosted(url), url_score=ordering.score_url(url))
        self.positions[key] = position
        if self.page_score is not None:
            position.head_start = compute_head_start(self.page_score(url))
        return position

    def queue_links(self, links: Sequence[PageKey]) -> None:
        """Put the unfetched pages that a page links to into the queue of a breadth-first or depth-first order.

        links: in the order of the page. Breadth first: pages that have no place yet, or were found nearer to a seed,
        are appended to the queue of their level. Depth first: all of them come next, the first link on top. Pages that
        were found before move up, as in recursive depth-first search: it enters a page from the page being read, not
        from the first page that linked there.
        """
        if self.queue is None:
            return
        linked = ((key, self.positions[key]) for key in links if key in self.positions)
        waiting = [(key, position) for key, position in linked if position.state is State.UNFETCHED]
        if isinstance(self.queue, PageStack):
            for key, position in reversed(waiting):
                self._set_rank(key, position, self.queue.push_page())
        else:
            for key, position in waiting:
                if position.level is None or position.depth < position.level:
                    self._set_rank(key, position, self.queue.add_page(position.depth))

    def _set_rank(self, key: PageKey, position: PagePosition, rank: int) -> None:
        position.rank, position.level = rank, position.depth
        self.queued.add(key)

    def _choose_pool(self, position: PagePosition) -> Pool:
        return self.ordering.choose_pool(is_fetched=position.state is State.FETCHED, is_boosted=position.boosted)

    def settle_visit(self, visit: Visit) -> None:
        """Distribute the cash of the visited page and move the page to its new state and pool."""
        key = visit.target.key
        position = self.positions[key]
        before, position.state = position.state, visit.state
        if visit.is_good:
            self.moved_to.pop(key, None)
        if visit.moved_to is not None:
            self.moved_to[key] = visit.moved_to.key
        if before not in IN_ECONOMY:
            if position.state not in IN_ECONOMY:
                return
            self.economy.admit_page(key, self._choose_pool(position))
            self.removed.discard(key)
        elif position.state not in IN_ECONOMY:
            self._remove_page(key, successor=visit.moved_to.key if visit.moved_to else None)
            return
        if visit.recipients is not None:
            # Seeds (depth 0) do not count in Economy.new_importance.
            self._pay_recipients(visit, is_first_visit=before is State.UNFETCHED and position.depth > 0)
        self.economy.change_pool(key, self._choose_pool(position))

    def _pay_recipients(self, visit: Visit, *, is_first_visit: bool) -> None:
        """Distribute the cash that the page had when it was selected. What links have paid since stays on the page."""
        cash = min(visit.target.cash, self.economy.get_cash(visit.target.key))
        self.economy.collect_cash(visit.target.key, cash, is_first_visit=is_first_visit)
        links = visit.target.external_links if visit.external_links is None else visit.external_links
        settlement = settle_cash(
            cash,
            visit.recipients or (),
            external_links=self.settings.external_link_weight * sum(count for _, count in links),
            internal_weight=self.settings.internal_link_weight,
            virtual_page_share=self.settings.virtual_page_share,
        )
        self.economy.virtual_page_cash += settlement.to_virtual_page
        for link, cash_share in settlement.shares.items():
            self.pay_page(link, cash_share)

    def pay_page(self, key: PageKey, cash: int) -> None:
        """Pay a page, or else the page that it moved to, or else the virtual page."""
        payee = self.find_payee(key)
        if payee is None:
            self.economy.virtual_page_cash += cash
        else:
            self.economy.pay_page(payee, cash)

    def find_payee(self, key: PageKey) -> PageKey | None:
        """Return the page that receives cash for a page: itself, or the end of its chain of moves.

        Return None if that page takes no part in the economy.
        """
        for _ in range(MAX_MOVES):
            position = self.positions.get(key)
            if position is None:
                return None
            if position.state in IN_ECONOMY:
                return key
            onward = self.moved_to.get(key) if position.state is State.MOVED else None
            if onward is None:
                return None
            key = onward
        return None

    def _remove_page(self, key: PageKey, *, successor: PageKey | None) -> None:
        """Remove a page from the economy.

        One endowment of its cash becomes dormant. A successor receives the rest, and a positive history; without one,
        the virtual page receives the rest. Both histories are brought to the same clock before they are added.
        """
        economy = self.economy
        account = economy.accounts[key]
        cash = economy.remove_page(key)
        self.removed.add(key)
        payee = self.find_payee(successor) if successor is not None else None
        if payee is None:
            return
        economy.virtual_page_cash -= cash
        economy.pay_page(payee, cash)
        payee_account = economy.accounts.get(payee)
        if payee_account is not None:
            now = economy.clock
            payee_account.history = sum(
                update_history(p.history, 0.0, clock_before=p.clock, clock_now=now, window=economy.window)
                for p in (account, payee_account)
                if p is payee_account
                or p.history > 0  # a negative history is not inherited: it offsets the endowment, now dormant again
            )
            payee_account.clock = now

    def compute_rank(self, key: PageKey, net: int, clock: float) -> int:
        """Return the rank of an unfetched page in discovery order. In orders by cash, it follows from the net cash.

        clock: the clock of the domain when the page was discovered.
        """
        position = self.positions[key]
        if self.ordering.order.is_by_position:
            return position.rank
        cash = age_cash(net, clock=clock) + position.head_start
        return self.ordering.compute_rank(cash, url_score=position.url_score)

    def compute_new_ranks(self, accounts: Mapping[PageKey, tuple[int, float]]) -> dict[PageKey, int]:
        """Return the ranks that differ from the stored ones.

        accounts: the net and the clock of unfetched pages; not used in breadth-first and depth-first order.
        """
        if self.ordering.order.is_by_position:
            queued = ((key, self.positions[key]) for key in self.queued)
            stored = ((key, each) for key, each in queued if each.found_at is None)
            return {key: each.rank for key, each in stored if each.state is State.UNFETCHED}
        ranks = {key: self.compute_rank(key, net, clock) for key, (net, clock) in accounts.items()}
        return {key: rank for key, rank in ranks.items() if rank != self.positions[key].rank}


async def load_opic_batch(
    connection: Connection,
    domain_id: int,
    visits: Sequence[Visit],
    *,
    settings: DomainSettings,
    page_score: Callable[[Url], float] | None = None,
    listed_depths: Mapping[PageKey, int] = NO_PAGES,
) -> OpicBatch:
    """Read what the visits need: the domain's economy, positions of pages, and accounts of the visited pages.

    listed_depths: further pages to load, such as the entries of a URL list, with their depths.
    """
    row = await fetch_dict(connection, ECONOMY, (domain_id,))
    assert row is not None  # the caller has found the lease in this row
    tracked = row.pop("tracked")
    pools = await fetch_rows(connection, POOLS, (domain_id,))
    economy = Economy(**row, pages=[pages for _, pages, _ in pools], dividend=[each for *_, each in pools])
    visited_keys = {visit.target.key for visit in visits}
    successors = {visit.moved_to.key for visit in visits if visit.moved_to}
    keys = {*visited_keys, *successors, *listed_depths}
    for visit in visits:
        keys.update(link.key for link in visit.feeds)
        keys.update(link.key for link in visit.links or ())
        keys.update(visit.recipients or ())
    positions, moved_to = await read_positions(connection, domain_id, keys)
    opic_batch = OpicBatch(economy, settings, positions, moved_to, tracked=tracked, page_score=page_score)
    if page_score is not None:
        for key, url in await fetch_rows(connection, URLS, {"domain_id": domain_id, "keys": list(positions)}):
            positions[PageKey(key)].head_start = compute_head_start(page_score(Url(url)))
    if any(rule.max_pages is not None for rule in settings.rules):
        opic_batch.rules = PageRules(settings.rules)
        opic_batch.limited_pages = await count_limited_pages(connection, domain_id)
    if settings.ordering.order.is_by_position:
        depths = {visit.target.depth + 1 for visit in visits} | set(listed_depths.values())
        opic_batch.queue = await load_queue(connection, domain_id, settings.ordering.order, depths)
    payees = {opic_batch.find_payee(successor) for successor in successors} - {None}  # they get the cash of moved pages
    paid_keys = list(visited_keys | successors | payees)
    accounts = await fetch_rows(connection, ACCOUNTS, (domain_id, paid_keys), binary=True)
    for key, pool, net, history, account_clock in accounts:
        economy.accounts[PageKey(key)] = PageAccount(pool=Pool(pool), net=net, history=history, clock=account_clock)
    return opic_batch


async def write_opic_batch(
    connection: Connection, domain_id: int, opic_batch: OpicBatch, *, dispatched: Collection[PageKey] = ()
) -> None:
    """Write the economy and its pools, the loaded accounts, the cash paid to other pages, and the changed ranks.

    dispatched: pages that are being fetched. Those that receive cash keep the rank at which they were selected, because
    their own records reset it. If they are returned, they keep at least that place.
    """
    economy = opic_batch.economy
    if opic_batch.removed:
        await connection.execute(DELETE_ACCOUNTS, (domain_id, list(opic_batch.removed)))
    if more := opic_batch.admitted_by_rule:
        values = {"domain_id": domain_id, "pattern": list(more), "more": list(more.values())}
        await connection.execute(COUNT_LIMITED, values)
    if economy.accounts:
        rows = [(key, each.pool.value, each.net, each.history, each.clock) for key, each in economy.accounts.items()]
        accounts = split_into_columns(ACCOUNT_COLUMNS, rows) | {"domain_id": domain_id}
        await connection.execute(WRITE_ACCOUNTS, accounts, binary=True)
    economy_values = {name: getattr(economy, name) for name in ECONOMY_COLUMNS}
    await connection.execute(WRITE_DOMAIN, economy_values | {"domain_id": domain_id, "tracked": opic_batch.tracked})
    pools = {"pool": [pool.value for pool in Pool], "pages": economy.pages, "dividend": economy.dividend}
    await connection.execute(WRITE_POOLS, pools | {"domain_id": domain_id})
    states = {key: opic_batch.positions[key].state for key in economy.accounts}
    loaded = ((key, each) for key, each in economy.accounts.items() if states[key] is State.UNFETCHED)
    unfetched = {key: (each.net, each.clock) for key, each in loaded}
    if economy.deltas:
        values = {"domain_id": domain_id, "key": list(economy.deltas), "cash": list(economy.deltas.values())}
        paid = await fetch_rows(connection, PAY, values, binary=True)
        unfetched |= {PageKey(key): (net, clock) for key, net, clock in paid if key not in dispatched}
    if ranks := opic_batch.compute_new_ranks(unfetched):
        await write_ranks(connection, domain_id, ranks)


async def write_ranks(connection: Connection, domain_id: int, ranks: Mapping[PageKey, int]) -> None:
    """Write the ranks of unfetched pages."""
    values = {"domain_id": domain_id, "key": list(ranks), "rank": list(ranks.values())}
    await connection.execute(WRITE_RANKS, values)
