"""Pages discovered by visits: admit them, store them as excluded, or ignore them; and write their rows."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from crawler.core.visit.lifecycle import compute_redirect_deferral, count_redirects_to_new
from crawler.core.visit.state import State
from crawler.core.visit.visit import Link, Visit
from crawler.store.database import Connection
from crawler.store.record.novelty import NoveltyBatch, assign_groups
from crawler.store.record.opic import OpicBatch
from crawler.store.record.positions import PagePosition
from crawler.store.rows import copy_rows

PAGE_COLUMNS = """
    domain_id int8, key bytea, url text, first_seen_at timestamptz, prior_no int2, reason text, rate_a float8,
    rate_b float8, redirects int2
"""
FRONTIER_COLUMNS = """
    domain_id int8, key bytea, state text, rank int4, depth int2, due_at timestamptz, boosted bool, url_score float8,
    section int2
"""
STORED_EXCLUSIONS = {"robots"}  # pages excluded by robots.txt are stored, because it may allow them later


def settle_visits(
    opic_batch: OpicBatch, visits: Sequence[Visit], *, max_pages: int, novelty: NoveltyBatch | None
) -> list[tuple[Link, PagePosition]]:
    """Apply visits to the OPIC economy one after the other and return the pages that they discover.

    max_pages: the page limit of the domain.  novelty: the novelty of the domain's templates, updated here; it may be
    None if no visit is a page's first and none discovers a page.
    """
    admitted: list[tuple[Link, PagePosition]] = []
    for visit in visits:
        links = visit.links or ()
        admitted_urls = []
        redirects = count_redirects_to_new(visit)
        link_targets = (*links, visit.moved_to) if visit.moved_to else links
        for link in link_targets:
            position = admit_link(opic_batch, link, depth=visit.target.depth + 1, max_pages=max_pages, at=visit.at)
            if position is not None:
                admitted.append((link, position))
                position.redirects = redirects
                if novelty is not None and not position.is_outside_economy:
                    position.deferred_until = novelty.compute_due_at(link.url, visit.at, boosted=position.boosted)
                    redirect_wait = compute_redirect_deferral(redirects)
                    if redirect_wait and not position.boosted:
                        position.deferred_until = max(position.deferred_until or visit.at, visit.at + redirect_wait)
                    if position.deferred_until is None:
                        admitted_urls.append(link.url)
        for link in visit.feeds:  # feeds belong to the site: they are neither links of the page nor pages of a section
            position = admit_link(opic_batch, link, depth=visit.target.depth, max_pages=max_pages, at=visit.at)
            if position is not None:
                admitted.append((link, position))
        opic_batch.queue_links([link.key for link in link_targets])
        if novelty is not None:
            novelty.learn_visit(visit, admitted_urls, opic_batch)
            opic_batch.announced[visit.target.key] = sum(map(novelty.estimate_novelty, admitted_urls), start=0.0)
        opic_batch.settle_visit(visit)
    opic_batch.economy.pay_dividends(opic_batch.ordering.pool_weights)
    return admitted


def admit_link(opic_batch: OpicBatch, link: Link, *, depth: int, max_pages: int, at: datetime) -> PagePosition | None:
    """Return the position of the page that a link discovers: unfetched, or excluded by robots.txt.

    Return None if the page exists already, is out of scope, or exceeds a page limit. For an existing page, lower its
    depth if the link is nearer to a seed.
    """
    position = opic_batch.positions.get(link.key)
    if position is not None:
        position.lower_depth(depth)
        return None
    if link.exclusion in STORED_EXCLUSIONS and opic_batch.tracked < max_pages:
        position = opic_batch.add_page(link.key, link.url, State.EXCLUDED, depth=depth)
    elif not link.exclusion and opic_batch.tracked < max_pages and opic_batch.admit_by_rules(link.url):
        position = opic_batch.admit_page(link.key, link.url, depth=depth)
    if position is not None:
        position.found_at = at
    return position


async def write_admitted(
    connection: Connection, domain_id: int, opic_batch: OpicBatch, admitted: Sequence[tuple[Link, PagePosition]]
) -> None:
    """Write the rows of discovered pages, with their ranks in discovery order."""
    if not admitted:
        return
    for link, position in admitted:
        if not position.is_outside_economy:
            account = opic_batch.economy.accounts[link.key]
            position.rank = opic_batch.compute_rank(link.key, account.net, account.clock)
    groups = await assign_groups(connection, domain_id, [link.url for link, _ in admitted])
    pages: list[tuple[Any, ...]] = []
    frontier: list[tuple[Any, ...]] = []
    for (link, position), group in zip(admitted, groups, strict=True):
        reason = link.exclusion if position.is_outside_economy else ""
        key = (domain_id, link.key)
        pages.append((*key, link.url, position.found_at, group, reason, *position.rates, position.redirects))
        order = (position.state.value, position.rank, position.depth, position.due_at)
        frontier.append((*key, *order, position.boosted, position.url_score, group))
    await copy_rows(connection, "page", PAGE_COLUMNS, pages)
    await copy_rows(connection, "frontier", FRONTIER_COLUMNS, frontier)
