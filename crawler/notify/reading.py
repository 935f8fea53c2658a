"""The feed, read for one subscription: what of it is to be told goes into its outbox.

Whether a change makes the subscriber's condition true is found out by reading two versions again, under today's mask.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from crawler.core.alert.condition import Condition, becomes_true, decimal_mark, masked_text, number_in
from crawler.core.change.mask import NoiseMask
from crawler.core.domain import Domain
from crawler.core.http.response import Fetched
from crawler.core.http.urls import Authority, Url, path_and_query, pattern_of
from crawler.core.page.selectors import View
from crawler.core.page_rules import PageRule, PageRules
from crawler.engine.parsing.parser_pool import DomainParser, ParserPool
from crawler.notify.payload import content_of
from crawler.store import domains, report
from crawler.store.database import Database
from crawler.store.learned.memories import mask_of
from crawler.store.outbox import ChangeNotice, put_notices
from crawler.store.report import ChangeFilter, EventKind, FeedItem, VersionContent
from crawler.store.subscriptions import Subscription, SubscriptionWish, standing_before

log = logging.getLogger("recrawl.notify")

AT_ONCE = 1000  # positions of the feed
READ_AT_ONCE = 25  # of these, where two versions of each page are read: a second or so
MOST_WAITING = 10_000  # changes of one subscription; while there are more the feed keeps what follows

SAYS = frozenset({EventKind.FIRST, EventKind.CHANGED, EventKind.BACK})  # changes after which a page is there
STANDING = SAYS | {EventKind.GONE, EventKind.MOVED}  # what a refused page says nobody knows
EVERYWHERE = "/"


@dataclass(slots=True)
class Watch:
    """Reads what pages said. It remembers domains and their masks, so each reading of the feed has one of its own."""

    db: Database
    readers: ParserPool
    _domains: dict[str, tuple[Domain, NoiseMask] | None] = field(default_factory=dict)

    async def became_true(self, wish: SubscriptionWish, item: FeedItem) -> dict[str, Any] | None:
        """What of a wish's condition a change has made true, for people and programs; None if nothing."""
        condition = wish.condition
        known = await self._known(item.domain)
        if condition is None or known is None or item.change not in STANDING:
            return None
        domain, mask = known
        standing = await standing_before(self.db, item.position)
        after = item.version if item.change in SAYS else None
        parser = DomainParser(self.readers, _rules(domain, wish.place))
        texts: list[str | None] = []
        language = ""
        for number in (standing.version, after):
            version = await report.version_of(self.db, domain, item.url, number=number) if number is not None else None
            texts.append(await _said(version, parser, mask, is_whole=not wish.place) if version is not None else None)
            language = version.version.language if version is not None else language
        was, now = texts
        mark = decimal_mark(language)
        if not becomes_true(condition, was, now, mark=mark):
            return None
        return _told(condition, was, now, mark=mark)

    async def _known(self, name: str) -> tuple[Domain, NoiseMask] | None:
        if name not in self._domains:
            domain = await domains.find(self.db, Authority(name))
            self._domains[name] = (domain, await mask_of(self.db, domain.id)) if domain is not None else None
        return self._domains[name]


async def read_feed_for(
    watch: Watch, subscription: Subscription, *, end: int, now: datetime, may_go_on: Callable[[], bool]
) -> int:
    """Put what a subscription is to be told into its outbox, up to a position of the feed; gives how much.

    Each piece of the feed is read once: its changes and the position behind it are committed together.
    may_go_on: asked before each piece, since the pages of a whole site may have to be read for a condition.
    """
    wish, position, put = subscription.wish, subscription.position, 0
    at_once = READ_AT_ONCE if wish.condition is not None else AT_ONCE
    while position < end and subscription.waiting + put < MOST_WAITING and may_go_on():
        until = min(position + at_once, end)
        wanted = ChangeFilter(domain_id=wish.domain_id, kinds=wish.kinds, after=position, until=until)
        items = await report.read_feed(watch.db, wanted, most=AT_ONCE, blocks=True)
        notices = [notice for item in items if (notice := await _notice(wish, item, watch, now=now)) is not None]
        if not await put_notices(watch.db, subscription.id, notices, after=position, until=until):
            return put  # somebody else reads it
        position, put = until, put + len(notices)
    return put


async def _notice(wish: SubscriptionWish, item: FeedItem, watch: Watch, *, now: datetime) -> ChangeNotice | None:
    """What is told of a change; None if nothing is."""
    if wish.pattern and not pattern_of(wish.pattern).search(path_and_query(item.url)):
        return None
    told = await watch.became_true(wish, item) if wish.condition is not None else None
    if wish.condition is not None and told is None:
        return None
    release = wish.times.release(item.at)
    return ChangeNotice(
        position=item.position,
        due_at=release.at if release.is_grouped else min(release.at, now),  # what is not kept back is due
        is_grouped=release.is_grouped,
        content=content_of(item, told),
    )


def _rules(domain: Domain, place: str) -> PageRules:
    """The domain's rules; where a subscriber watches a place of his own, that one in place of those that they watch."""
    if not place:
        return PageRules(domain.settings.rules)
    others = [replace(rule, view=replace(rule.view, watch=())) for rule in domain.settings.rules]
    named = [each for each in others if each.pattern == EVERYWHERE]
    own = PageRule(EVERYWHERE, view=replace(named[0].view if named else View(), watch=(place,)))
    return PageRules((own, *(each for each in others if each.pattern != EVERYWHERE)))


async def _said(version: VersionContent, parser: DomainParser, mask: NoiseMask, *, is_whole: bool) -> str | None:
    """What a version said; None where that cannot be told any more."""
    if version.body is not None:
        answer = Fetched(200, version.body, len(version.body), timedelta(0), version.version.content_type)
        blocks = await parser.blocks(answer, version.url)
        if blocks is not None:
            return masked_text(blocks, mask)
    log.warning("watch.unread", extra={"url": Url(version.url), "version": version.version.number})
    return version.text if is_whole else None


def _told(condition: Condition, was: str | None, now: str | None, *, mark: str) -> dict[str, Any]:
    is_number = condition.kind.is_of_number
    return {
        "kind": condition.kind.value,
        "text": condition.text,
        "bound": condition.bound if is_number else None,
        "was": number_in(was or "", mark=mark) if is_number else None,
        "now": number_in(now or "", mark=mark) if is_number else None,
    }
