"""The JSON of webhook messages: the fields of `recrawl changes --json`.

Changes that do not fit into one message are sent in several, each with its own id. Receivers reject large messages
with 413: by default nginx above 1 MB, and Express above 100 kB.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from crawler.notify.message_text import Content, format_changes, neutralize_mentions
from crawler.store.outbox import Message
from crawler.store.report import FeedItem

ENVELOPE_BYTES = 1024  # reserved for the parts of a message besides its changes
FIELDS = (  # of a change, in this order
    *("position", "domain", "at", "url", "change", "version", "title", "distance_bits", "magnitude", "importance"),
    *("parts", "blocks", "pages", "source", "reason", "moved_to", "value"),
)


def build_content(item: FeedItem, condition: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return the content of a change. condition: the condition that it fulfilled, if the subscription has one."""
    plain = {name: getattr(item, name) for name in FIELDS} | {
        "at": item.at.isoformat(),
        "change": item.change.value,
        "parts": [part.value for part in item.parts],
        "blocks": [{"part": edit.part.value, "was": edit.before, "now": edit.after} for edit in item.blocks],
    }
    return plain | ({"condition": dict(condition)} if condition is not None else {})


def encode_body(message: Message, *, text: str, max_bytes: int) -> bytes:
    """Encode a message as JSON; retries send the same bytes. text: the plain text, for chat services.

    max_bytes: the size limit; the last blocks of changes are omitted to meet it, and `blocks_left_out` counts them.
    """
    document = {
        "id": str(message.token),
        "type": "recrawl.changes",
        "subscription": message.subscription_id,
        "timestamp": message.created_at.isoformat(),
        "text": text,
        "changes": list(message.changes),
    }
    body = _encode(document)
    if len(body) <= max_bytes:
        return body
    bare_changes = [{**each, "blocks": [], "blocks_left_out": len(each.get("blocks", ()))} for each in message.changes]
    available_bytes = max_bytes - len(_encode(document | {"changes": bare_changes}))
    return _encode(document | {"changes": list(_add_blocks(message.changes, available_bytes=available_bytes))})


def _add_blocks(changes: Sequence[Content], *, available_bytes: int) -> Iterator[Content]:
    """Yield changes with as many of their first blocks as fit into the available bytes."""
    for change in changes:
        included = []
        for block in change.get("blocks", ()):
            available_bytes -= _count_bytes(block)
            if available_bytes < 0:
                break
            included.append(block)
        yield {**change, "blocks": included, "blocks_left_out": len(change.get("blocks", ())) - len(included)}


def _encode(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode()


def _count_bytes(value: object) -> int:
    return len(_encode(value)) + len(", ")


def compute_part_sizes(message: Message, *, max_bytes: int) -> list[int]:
    """Return the number of changes in each part of a message, in order; one part if the whole message fits."""
    parts, used = [0], ENVELOPE_BYTES
    for change in message.changes:
        size = _count_bytes(change) + _count_bytes(neutralize_mentions(format_changes([change])))
        if parts[-1] and used + size > max_bytes:
            parts.append(0)
            used = ENVELOPE_BYTES
        parts[-1] += 1
        used += size
    return parts
