"""Pages that looks make known: admitted, refused or left unknown; and the rows of those that are stored."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from crawler.core.visit.lifecycle import hold_after_redirects, redirects_to_found
from crawler.core.visit.visit import Link, State, Visit
from crawler.store.database import Connection
from crawler.store.record.novelty import NoveltyBatch, groups_of
from crawler.store.record.opic import OpicBatch
from crawler.store.record.positions import PagePosition
from crawler.store.rows import copy

PAGE_COLUMNS = """
    domain_id int8, key bytea, url text, first_seen_at timestamptz, prior_no int2, reason text, evidence_a float8,
    evidence_b float8, redirects int2
"""
FRONTIER_COLUMNS = """
    domain_id int8, key bytea, state text, rank int4, depth int2, due_at timestamptz, favoured bool, url_score float8,
    section int2
"""
REFUSED_LATER = {"robots"}  # what robots.txt refuses is remembered, since it may allow it one day


def settle(
    books: OpicBatch, visits: Sequence[Visit], *, max_pages: int, novelty: NoveltyBatch | None
) -> list[tuple[Link, PagePosition]]:
    """Apply the visits to the economy one after the other; gives the pages that they make known.

    novelty: what is known of the domain's templates; it learns. Not needed where no page is new.
    """
    admitted: list[tuple[Link, PagePosition]] = []
    for visit in visits:
        links = visit.links or ()
        fresh = []
        redirects = redirects_to_found(visit)
        met = (*links, visit.moved_to) if visit.moved_to else links
        for link in met:
            stand = meet(books, link, depth=visit.target.depth + 1, max_pages=max_pages, at=visit.at)
            if stand is not None:
                admitted.append((link, stand))
                stand.redirects = redirects
                if novelty is not None and not stand.is_out:
                    stand.held_until = novelty.time_of(link.url, visit.at, favoured=stand.favoured)
                    hold = hold_after_redirects(redirects)
                    if hold and not stand.favoured:
                        stand.held_until = max(stand.held_until or visit.at, visit.at + hold)
                    if stand.held_until is None:
                        fresh.append(link.url)
        for link in visit.feeds:  # which are about the site: not the page's links, and not pages of a section
            stand = meet(books, link, depth=visit.target.depth, max_pages=max_pages, at=visit.at)
            if stand is not None:
                admitted.append((link, stand))
        books.line_up([link.key for link in met])
        if novelty is not None:
            novelty.learn(visit, fresh, books)
            books.announced[visit.target.key] = sum(map(novelty.share_of, fresh), start=0.0)
        books.settle(visit)
    books.economy.pay_dividends(books.ordering.weights)
    return admitted


def meet(books: OpicBatch, link: Link, *, depth: int, max_pages: int, at: datetime) -> PagePosition | None:
    """The page that a link makes known: a new page, a page that robots.txt refuses, or nothing new."""
    stand = books.positions.get(link.key)
    if stand is not None:
        stand.reach(depth)
        return None
    if link.refusal in REFUSED_LATER and books.tracked < max_pages:
        stand = books.meet(link.key, link.url, State.REFUSED, depth=depth)
    elif not link.refusal and books.tracked < max_pages and books.has_room_for(link.url):
        stand = books.admit(link.key, link.url, depth=depth)
    if stand is not None:
        stand.found_at = at
    return stand


async def write(
    connection: Connection, domain_id: int, books: OpicBatch, admitted: Iterable[tuple[Link, PagePosition]]
) -> None:
    """Write the rows of those pages, with their places in the order of discovery."""
    known = list(admitted)
    if not known:
        return
    for link, stand in known:
        if not stand.is_out:
            account = books.economy.accounts[link.key]
            stand.rank = books.rank_of(link.key, account.net, account.clock)
    groups = await groups_of(connection, domain_id, [link.url for link, _ in known])
    pages: list[tuple[Any, ...]] = []
    frontier: list[tuple[Any, ...]] = []
    for (link, stand), group in zip(known, groups, strict=True):
        refusal = link.refusal if stand.is_out else ""
        pages.append((domain_id, link.key, link.url, stand.found_at, group, refusal, *stand.evidence, stand.redirects))
        place = (stand.state.value, stand.rank, stand.depth, stand.due_at)
        frontier.append((domain_id, link.key, *place, stand.favoured, stand.url_score, group))
    await copy(connection, "page", PAGE_COLUMNS, pages)
    await copy(connection, "frontier", FRONTIER_COLUMNS, frontier)
