"""What happens under a lease before its first look: the inbox, today's price, robots.txt, and what is known."""

from crawler.core.http.robots import RobotsRules
from crawler.core.visit.visit import Known
from crawler.engine.lists import lists_of_site
from crawler.engine.requests.breaker import CircuitBreaker
from crawler.engine.requests.login import Login
from crawler.engine.requests.pacer import Pacer
from crawler.engine.requests.requester import Requester
from crawler.engine.requests.robots import robots_of
from crawler.engine.store_port import LeasedStore
from crawler.plugins import load


async def prepare(
    store: LeasedStore, requester: Requester, breaker: CircuitBreaker, *, login: Login | None
) -> Known | None:
    """Apply what others left for the domain, and read what is known of it; None if it may not be crawled now.

    Then the breaker holds the domain, or the day's budget is spent. login: before its pages.
    """
    await drain(store)
    await store.reprice()
    found = await robots_of(store, requester.ask)
    if found.outage is not None:
        breaker.leave_alone(found.outage, asked=found.asked)
    if found.outage is not None or found.is_spent:
        return None
    slow_down(requester.pacer, found.rules, agent=store.settings.agent)
    await store.announce_delay(requester.pacer.longest_delay)
    if login is not None and not await login.begin():
        return None
    known = await known_under(store, found.rules)
    chunk = lists_of_site(store.lease, known, asks_usual_places=store.settings.usual_lists)
    if chunk.links:  # they are made pages, if they are none yet
        await store.admit_listed(chunk)
    return known


async def drain(store: LeasedStore) -> bool:
    """Apply what others left in the domain's inbox; whether there was anything."""
    count = 0
    while await store.drain():
        count += 1
    return count > 0


async def catch_up(store: LeasedStore) -> bool:
    """Apply what has come while pages were looked at: the inbox, and other due times, as after a deploy."""
    return await drain(store) | await store.reprice()


def slow_down(pacer: Pacer, rules: RobotsRules, *, agent: str) -> None:
    """Keep the delay that robots.txt asks for, if that is the longer one."""
    delay = rules.crawl_delay(agent)
    if delay is not None:
        pacer.slow_down(delay)


async def known_under(store: LeasedStore, rules: RobotsRules) -> Known:
    """What is known of the leased domain before a look."""
    mask, soft_errors, renders = await store.learnt()
    settings = store.settings
    scope = store.lease.domain.scope(max_depth=settings.max_depth, accepts=load(settings.plugins).accepts)
    return Known(scope=scope, rules=rules, agent=settings.agent, mask=mask, soft_errors=soft_errors, renders=renders)
