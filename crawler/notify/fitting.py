"""How large messages may be: more changes than fit into one are told in several, each with an id of its own.

Receivers refuse what is too large for them (413): nginx beyond 1 MB, Express beyond 100 kB unless told otherwise. Where
one does, its subscription's bound is lowered, and what waits is split anew.
"""

import json
from collections.abc import Iterator, Sequence

from crawler.notify.payload import Content
from crawler.notify.sending import DeliveryOutcome
from crawler.notify.wording import calling_nobody, text_of
from crawler.store.outbox import Message
from crawler.store.subscriptions import Subscription

LEAST_BYTES = 4096  # a change without its blocks; a receiver that refuses this takes nothing
LOWER = 4  # times less is tried after a message that was too large
ENVELOPE_BYTES = 1024  # what stands beside the changes


def parts_of(message: Message, *, most_bytes: int) -> list[int]:
    """How many changes of a message go into each of its parts, in their order; one part where all of it fits."""
    return [len(part) for part in _parts(message.changes, most_bytes=most_bytes)]


def _parts(changes: Sequence[Content], *, most_bytes: int) -> Iterator[list[Content]]:
    part, used = list[Content](), ENVELOPE_BYTES
    for change in changes:
        size = _bytes_of(change) + _bytes_of(calling_nobody(text_of([change])))
        if part and used + size > most_bytes:
            yield part
            part, used = [], ENVELOPE_BYTES
        part.append(change)
        used += size
    if part:
        yield part


def _bytes_of(value: object) -> int:
    return len(json.dumps(value, ensure_ascii=False).encode()) + 2  # the comma and the space behind it


def lower_bound(subscription: Subscription, outcome: DeliveryOutcome) -> int | None:
    """The bound that a receiver seems to have that refused a message for its size; None where there is none to try."""
    if outcome.refused_bytes is None:
        return None
    bound = max(LEAST_BYTES, min(outcome.refused_bytes, subscription.most_bytes) // LOWER)
    return bound if bound < subscription.most_bytes else None
