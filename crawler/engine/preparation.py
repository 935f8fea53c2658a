"""Prepare a lease before its first visit: inbox, due times, robots.txt, login and knowledge of the domain."""

from crawler.core.http.robots import RobotsRules
from crawler.core.visit.visit import DomainKnowledge
from crawler.engine.lists import find_site_lists
from crawler.engine.requests.breaker import CircuitBreaker
from crawler.engine.requests.login import Login
from crawler.engine.requests.pacer import Pacer
from crawler.engine.requests.requester import Requester
from crawler.engine.requests.robots import load_robots
from crawler.engine.store_port import LeasedStore
from crawler.plugins import load_plugins


async def prepare_lease(
    store: LeasedStore, requester: Requester, breaker: CircuitBreaker, *, login: Login | None
) -> DomainKnowledge | None:
    """Apply the domain's inbox, then load what is known of the domain; return None if it may not be crawled now.

    In that case the breaker has suspended the domain, the day's budget is spent, or the crawl hours are closed.
    login: done before any page is fetched; None if the domain needs none.
    """
    await drain_inbox(store)
    await store.update_due_times()
    robots = await load_robots(store, requester.request_url)
    if robots.outage is not None:
        breaker.suspend(robots.outage, requested_wait=robots.requested_wait)
    if robots.outage is not None or robots.is_budget_spent:
        return None
    apply_crawl_delay(requester.pacer, robots.rules, agent=store.settings.user_agent)
    await store.write_delay(requester.pacer.max_delay)
    if login is not None and not await login.ensure_logged_in():
        return None
    knowledge = await load_knowledge(store, robots.rules)
    chunk = find_site_lists(store.lease, knowledge, tries_default_paths=store.settings.probe_sitemaps)
    if chunk.links:  # add the lists as pages unless they exist
        await store.admit_list_chunk(chunk)
    return knowledge


async def drain_inbox(store: LeasedStore) -> bool:
    """Apply the domain's inbox; return whether it contained anything."""
    had_entries = False
    while await store.drain_inbox():
        had_entries = True
    return had_entries


async def apply_updates(store: LeasedStore) -> bool:
    """Apply what arrived during the crawl: the inbox, and requests to recompute due times. Return whether any did."""
    return await drain_inbox(store) | await store.update_due_times()


def apply_crawl_delay(pacer: Pacer, rules: RobotsRules, *, agent: str) -> None:
    """Raise the delay to the Crawl-delay of robots.txt if that is longer."""
    delay = rules.get_crawl_delay(agent)
    if delay is not None:
        pacer.raise_delay(delay)


async def load_knowledge(store: LeasedStore, rules: RobotsRules) -> DomainKnowledge:
    """Load what is known of the leased domain."""
    mask, soft_errors, renders = await store.load_memories()
    settings, agent = store.settings, store.settings.user_agent
    scope = store.lease.domain.build_scope(max_depth=settings.max_depth, accepts=load_plugins(settings.plugins).accepts)
    return DomainKnowledge(scope, rules, agent, mask=mask, soft_errors=soft_errors, renders=renders)
