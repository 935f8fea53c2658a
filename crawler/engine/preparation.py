"""What happens under a lease before its first look: the inbox, today's price, robots.txt, and what is known."""

from crawler.core.http.robots import RobotsRules
from crawler.core.visit.visit import Known
from crawler.engine.lists import lists_of_site
from crawler.engine.requests.breaker import CircuitBreaker
from crawler.engine.requests.login import Login
from crawler.engine.requests.pacer import Pacer
from crawler.engine.requests.requester import Requester
from crawler.engine.requests.robots import AskWithin, FoundRules, robots_of
from crawler.engine.stats import CrawlStats
from crawler.engine.store_port import LeasedStore
from crawler.plugins import load
from crawler.settings import Settings


class Preparation:
    """Prepares one lease. stats: where a domain that cannot be crawled is counted.  login: before its pages."""

    def __init__(
        self,
        store: LeasedStore,
        requester: Requester,
        breaker: CircuitBreaker,
        *,
        settings: Settings,
        stats: CrawlStats,
        login: Login | None = None,
    ) -> None:
        self._login = login
        self._store, self._requester, self._breaker = store, requester, breaker
        self._settings, self._stats = settings, stats

    async def prepare(self) -> Known | None:
        """Apply what others left for the domain, and read what is known of it; None if it may not be crawled now."""
        await self.drain()
        await self._store.reprice()
        rules = await self._rules()
        if rules is None:
            return None
        pacer = self._requester.pacer
        slow_down(pacer, rules, settings=self._settings)
        await self._store.announce_delay(pacer.longest_delay)
        if self._login is not None and not await self._login.begin():
            if self._breaker.hold is not None:
                await self._store.hold(self._breaker.hold)
                self._stats.outages[self._breaker.hold.reason] += 1
            return None
        known = await known_under(self._store, rules, settings=self._settings)
        chunk = lists_of_site(self._store.lease, known, asks_usual_places=self._settings.usual_lists)
        if chunk.links:  # they are made pages, if they are none yet
            await self._store.admit_listed(chunk)
        return known

    async def drain(self) -> bool:
        """Apply what others left in the domain's inbox; whether there was anything."""
        count = 0
        while await self._store.drain():
            count += 1
        return count > 0

    async def catch_up(self) -> bool:
        """Apply what has come while pages were looked at: the inbox, and other due times, as after a deploy."""
        return await self.drain() | await self._store.reprice()

    async def _rules(self) -> RobotsRules | None:
        """Rules of robots.txt. None if it cannot be had (the domain is put on hold) or the day's budget is spent."""
        found = await found_rules(self._store, self._requester.ask)
        if found.outage is not None:
            await self._store.hold(self._breaker.leave_alone(found.outage, asked=found.asked))
            self._stats.outages[found.outage] += 1
        return None if found.is_spent or found.outage is not None else found.rules


async def found_rules(store: LeasedStore, ask: AskWithin) -> FoundRules:
    """What robots.txt says; a new copy of it is kept."""
    found = await robots_of(store.lease, ask, clock=store.clock)
    if found.copy is not None:
        await store.save_robots(found.copy, changed=found.rules_changed)
    return found


def slow_down(pacer: Pacer, rules: RobotsRules, *, settings: Settings) -> None:
    """Keep the delay that robots.txt asks for, if that is the longer one."""
    delay = rules.crawl_delay(settings.agent)
    if delay is not None:
        pacer.slow_down(delay)


async def known_under(store: LeasedStore, rules: RobotsRules, *, settings: Settings) -> Known:
    """What is known of the leased domain before a look."""
    mask, soft_errors, renders = await store.learnt()
    scope = store.lease.domain.scope(max_depth=settings.max_depth, accepts=load(settings.plugins).accepts)
    return Known(scope=scope, rules=rules, agent=settings.agent, mask=mask, soft_errors=soft_errors, renders=renders)
