"""Subscriptions to changes, what waits to be told to them, and what could not be told.

`put_notices` takes changes from the feed into the outbox of a subscription and moves its position, in one transaction;
`make_messages` and `next_message` say what is sent next; `taken` and `not_taken` what came of it; `states` how each is
doing. Whoever sends holds
the subscription's lock meanwhile (`delivery_locks`), which ends with the connection, however the process ends. Uses
report, the database and core.
"""

from crawler.store.subscriptions.dead_letters import MOST_LISTED, DeadLetter, dead_letters, discard, redeliver
from crawler.store.subscriptions.locks import DeliveryLocks, delivery_locks
from crawler.store.subscriptions.outbox import (
    ChangeNotice,
    Message,
    Retry,
    is_due,
    make_messages,
    next_message,
    not_taken,
    put_notices,
    taken,
    target_lacks,
)
from crawler.store.subscriptions.parts import lower_bound, split
from crawler.store.subscriptions.standing import standing_before
from crawler.store.subscriptions.state import SubscriptionState, states
from crawler.store.subscriptions.subscriptions import (
    MOST_BYTES,
    Subscription,
    SubscriptionWish,
    add,
    every,
    mended,
    numbered,
    pause,
    remove,
    resume,
)
