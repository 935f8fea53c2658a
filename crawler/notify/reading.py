"""The feed, read for one subscription: what of it is to be told goes into its outbox."""

from collections.abc import Callable
from datetime import datetime

from crawler.core.http import path_and_query, pattern_of
from crawler.notify.payload import content_of
from crawler.notify.watching import Watch
from crawler.store import report
from crawler.store.database import Database
from crawler.store.outbox import ChangeNotice, put_notices
from crawler.store.report import ChangeFilter, FeedItem
from crawler.store.subscriptions import Subscription, SubscriptionWish

AT_ONCE = 1000  # positions of the feed
READ_AT_ONCE = 25  # of these, where two versions of each page are read: a second or so
MOST_WAITING = 10_000  # changes of one subscription; while there are more the feed keeps what follows


async def read_feed_for(
    db: Database,
    subscription: Subscription,
    *,
    end: int,
    watch: Watch,
    now: datetime,
    may_go_on: Callable[[], bool],
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
        items = await report.read_feed(db, wanted, most=AT_ONCE, blocks=True)
        notices = [notice for item in items if (notice := await _notice(wish, item, watch, now=now)) is not None]
        if not await put_notices(db, subscription.id, notices, after=position, until=until):
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
