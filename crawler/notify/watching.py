"""Whether a change of the feed makes a subscriber's condition true: two versions are read again, under today's mask."""

import logging
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

from crawler.core.alert import Condition, becomes_true, decimal_mark, masked_text, number_in
from crawler.core.change.mask import NoiseMask
from crawler.core.domain import Domain
from crawler.core.http import Authority, Fetched, Url
from crawler.core.page import View
from crawler.core.page_rules import PageRule, PageRules
from crawler.engine import DomainParser, ParserPool
from crawler.store import domains, report
from crawler.store.database import Database
from crawler.store.learned import mask_of
from crawler.store.report import EventKind, FeedItem, VersionContent
from crawler.store.subscriptions import SubscriptionWish, standing_before

log = logging.getLogger("recrawl.notify")

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
        answer = Fetched(
            status=200,
            body=version.body,
            received_bytes=len(version.body),
            elapsed=timedelta(0),
            content_type=version.version.content_type,
        )
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
