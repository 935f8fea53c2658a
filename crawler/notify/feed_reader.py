"""Reading of the feed for one subscription: matching changes go into its outbox.

A condition, such as "a number falls below 100", is evaluated on the two versions of a change, without noise.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from crawler.core.alert.condition import Condition, ConditionKind, becomes_true, mask_text
from crawler.core.change.mask import NoiseMask
from crawler.core.domain import Domain
from crawler.core.http.response import Fetched
from crawler.core.http.urls import Authority, Url, get_path_and_query, parse_pattern
from crawler.core.page.numbers import find_number, get_decimal_mark
from crawler.core.page.selectors import View
from crawler.core.page_rules import PageRule, PageRules
from crawler.engine.parsing.parser_pool import DomainParser, ParserPool
from crawler.notify.payload import build_content
from crawler.store import domains, report
from crawler.store.database import Database
from crawler.store.learned.domain_memory import read_mask
from crawler.store.outbox import ChangeNotification, put_notifications
from crawler.store.report import ChangeFilter, EventKind, FeedItem, VersionContent
from crawler.store.subscriptions import Subscription, SubscriptionOptions, read_previous_page

log = logging.getLogger("recrawl.notify")

BATCH_SIZE = 1000  # positions of the feed
CONDITION_BATCH_SIZE = 25  # positions; fewer, because a condition parses two versions of each changed page
MAX_WAITING = 10_000  # changes in the outbox of one subscription; no further batch of the feed is read then

PRESENT_KINDS = frozenset({EventKind.ADDED, EventKind.CHANGED, EventKind.RESTORED})  # the page exists afterwards
STATE_KINDS = PRESENT_KINDS | {EventKind.GONE, EventKind.MOVED}  # not EXCLUDED: the page may still have its text
EVERYWHERE = "/"  # the pattern of all pages


@dataclass(slots=True)
class ConditionChecker:
    """Evaluates conditions. It caches domains and their masks, so each read of the feed needs a new one."""

    db: Database
    parsers: ParserPool
    _domains: dict[str, tuple[Domain, NoiseMask] | None] = field(default_factory=dict)

    async def check_condition(
        self, options: SubscriptionOptions, item: FeedItem, *, since: datetime
    ) -> dict[str, Any] | None:
        """Return the details of the condition that a change has fulfilled; None if it has not.

        since: when the subscription was added; the number that a value had then counts as notified.
        """
        condition = options.condition
        domain_and_mask = await self._find_domain(item.domain)
        if condition is not None and options.value_name and domain_and_mask is not None:
            return await self._check_value(condition, item, domain_and_mask[0], since=since)
        if condition is None or domain_and_mask is None or item.change not in STATE_KINDS:
            return None
        domain, mask = domain_and_mask
        previous = await read_previous_page(self.db, item.position)
        after = item.version if item.change in PRESENT_KINDS else None
        parser = DomainParser(self.parsers, _build_rules(domain, options.place))
        texts: list[str | None] = []
        language = ""
        for number in (previous.version, after):
            version = text = None
            if number is not None:
                version = await report.read_version(self.db, domain, item.url, number=number)
            if version is not None:
                text = await _extract_text(version, parser, mask, is_whole_page=not options.place)
                language = version.version.language
            texts.append(text)
        was, now = texts
        mark = get_decimal_mark(language)
        if not becomes_true(condition, was, now, mark=mark):
            return None
        return _describe_fulfilled(condition, was, now, mark=mark)

    async def _check_value(
        self, condition: Condition, item: FeedItem, domain: Domain, *, since: datetime
    ) -> dict[str, Any] | None:
        """Return the details of a condition on a value that its last change has fulfilled; None if it has not."""
        value = item.value or {}
        was, now = value.get("was"), value.get("now")
        if now is None:
            return None
        if condition.kind is ConditionKind.DIFFERS:
            numbers = await report.list_numbers(self.db, domain, item.url, value["name"], since=since, at=item.at)
            was = condition.find_reference(numbers[:-1])
            is_fulfilled = was is not None and condition.find_reference((was, now)) != was
        else:
            is_fulfilled = condition.holds_for(now) and not condition.holds_for(was)
        details = {
            "kind": condition.kind.value,
            "text": value["name"],
            "bound": condition.bound,
            "was": was,
            "now": now,
        }
        return details if is_fulfilled else None

    async def _find_domain(self, name: str) -> tuple[Domain, NoiseMask] | None:
        if name not in self._domains:
            domain = await domains.find_domain(self.db, Authority(name))
            self._domains[name] = (domain, await read_mask(self.db, domain.id)) if domain is not None else None
        return self._domains[name]


async def queue_notifications(
    checker: ConditionChecker, subscription: Subscription, *, end: int, now: datetime, may_continue: Callable[[], bool]
) -> int:
    """Queue the notifications of a subscription up to a position of the feed. Return their number.

    Each part of the feed is read once: its changes and the position after it are committed together.
    may_continue: is called before each part, since a condition may have to read the pages of a whole site.
    """
    options, position, queued = subscription.options, subscription.position, 0
    batch_size = CONDITION_BATCH_SIZE if options.condition is not None else BATCH_SIZE
    while position < end and subscription.waiting + queued < MAX_WAITING and may_continue():
        until = min(position + batch_size, end)
        change_filter = ChangeFilter(
            domain_id=options.domain_id, tag=options.tag, kinds=options.kinds, after=position, until=until
        )
        items = await report.read_feed(checker.db, change_filter, max_count=BATCH_SIZE, with_blocks=True)
        since = subscription.created_at
        built = [await _build_notification(options, item, checker, since=since, now=now) for item in items]
        notifications = [each for each in built if each is not None]
        if not await put_notifications(checker.db, subscription.id, notifications, after=position, until=until):
            return queued  # another process has read this part
        position, queued = until, queued + len(notifications)
    return queued


async def _build_notification(
    options: SubscriptionOptions, item: FeedItem, checker: ConditionChecker, *, since: datetime, now: datetime
) -> ChangeNotification | None:
    """Return the notification of a change; None if the subscription does not match."""
    if not _is_selected(options, item):
        return None
    fulfilled = await checker.check_condition(options, item, since=since) if options.condition is not None else None
    if options.condition is not None and fulfilled is None:
        return None
    release = options.delivery_times.compute_release(item.at)
    # Without a digest or quiet hours, the notification is due at once.
    due_at, content = release.at if release.is_grouped else min(release.at, now), build_content(item, fulfilled)
    return ChangeNotification(item.position, due_at=due_at, is_grouped=release.is_grouped, content=content)


def _is_selected(options: SubscriptionOptions, item: FeedItem) -> bool:
    """Return whether the filters of a subscription select a change, apart from its domain, kinds and condition.

    The failure of a whole domain concerns all its pages, so it is selected whatever the pages. The first number of a
    value is no news, but it can fulfill a condition.
    """
    if item.is_about_domain:
        return True
    if item.value is not None:
        is_first = item.value["was"] is None
        if options.value_name not in {"", item.value["name"]} or (is_first and options.condition is None):
            return False
    if options.pattern and not parse_pattern(options.pattern).search(get_path_and_query(item.url)):
        return False
    is_small = (
        options.min_magnitude is not None and item.magnitude is not None and item.magnitude < options.min_magnitude
    )
    return item.url.startswith(options.prefix) and options.page in {"", item.url} and not is_small


def _build_rules(domain: Domain, selector: str) -> PageRules:
    """Return the rules of the domain; the selector of a subscriber replaces the watched selectors of the rules."""
    if not selector:
        return PageRules(domain.settings.rules)
    others = [replace(rule, view=replace(rule.view, watch=())) for rule in domain.settings.rules]
    general_view = next((each.view for each in others if each.pattern == EVERYWHERE), View())
    subscriber_rule = PageRule(EVERYWHERE, view=replace(general_view, watch=(selector,)))
    return PageRules((subscriber_rule, *(each for each in others if each.pattern != EVERYWHERE)))


async def _extract_text(
    version: VersionContent, parser: DomainParser, mask: NoiseMask, *, is_whole_page: bool
) -> str | None:
    """Return the text of a version without noise.

    If its body is not stored or cannot be parsed, return its stored text, or None if not the whole page is checked.
    """
    if version.body is not None:
        response = Fetched(200, version.body, len(version.body), timedelta(0), version.version.content_type)
        blocks = await parser.parse_blocks(response, version.url)
        if blocks is not None:
            return mask_text(blocks, mask)
    log.warning("watch.unread", extra={"url": Url(version.url), "version": version.version.number})
    return version.text if is_whole_page else None


def _describe_fulfilled(condition: Condition, was: str | None, now: str | None, *, mark: str) -> dict[str, Any]:
    is_number = condition.kind.is_numeric
    return {
        "kind": condition.kind.value,
        "text": condition.text,
        "bound": condition.bound if is_number else None,
        "was": find_number(was or "", mark=mark) if is_number else None,
        "now": find_number(now or "", mark=mark) if is_number else None,
    }
