"""The JSON of webhook messages: the fields of `recrawl changes --json`, signed as in Standard Webhooks 1.0.

Changes that do not fit into one message are sent in several, each with its own id. Receivers reject large messages
with 413: by default nginx above 1 MB, and Express above 100 kB.
"""

import base64
import binascii
import hmac
import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from crawler.notify.message_text import Content, format_changes, neutralize_mentions
from crawler.store.outbox import Message
from crawler.store.report import FeedItem

KEY_PREFIX = "whsec_"  # optional, before a base64 key
MIN_KEY_BYTES = 24  # Standard Webhooks 1.0, "Signature scheme"; also rejects most passwords
KEY_HINT = "Create one with: openssl rand -base64 32"
SIGNATURE = "v1"
ENVELOPE_BYTES = 1024  # the size of a message without its changes
FIELDS = (  # of a change, in this order
    *("position", "domain", "at", "url", "change", "version", "title", "distance_bits", "magnitude", "importance"),
    *("parts", "blocks", "pages", "source", "moved_to"),
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
    changes_without_blocks = [
        {**change, "blocks": [], "blocks_left_out": len(change.get("blocks", ()))} for change in message.changes
    ]
    available_bytes = max_bytes - len(_encode(document | {"changes": changes_without_blocks}))
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


def build_webhook_headers(token: str, body: bytes, *, key: str | None, at: datetime) -> dict[str, str]:
    """Return the headers of a message. token: its id, the same in retries.  key: the signing secret, or None.

    Source: Standard Webhooks 1.0 (standardwebhooks.com). The signature is HMAC-SHA256 over id, timestamp and body,
    joined with dots. During a key rotation there are several keys, and a signature of each, separated by spaces.
    Idempotency-Key is for receivers that know that header (draft-ietf-httpapi-idempotency-key).
    """
    timestamp = str(int(at.timestamp()))
    headers = {
        "Content-Type": "application/json",
        "webhook-id": token,
        "webhook-timestamp": timestamp,
        "Idempotency-Key": f'"{token}"',
    }
    if key is None:
        return headers
    signed_content = f"{token}.{timestamp}.".encode() + body
    signatures = [
        base64.b64encode(hmac.digest(each, signed_content, "sha256")).decode() for each in parse_signing_keys(key)
    ]
    return headers | {"webhook-signature": " ".join(f"{SIGNATURE},{each}" for each in signatures)}


def parse_signing_keys(secret: str) -> list[bytes]:
    """Parse the space-separated keys of a secret like the libraries of Standard Webhooks.

    Each key is base64, with or without padding and the prefix whsec_. Raises ValueError with a message for the user if
    a key is invalid, because receivers could not verify its signatures.
    """
    parts = secret.split()
    if not parts:
        raise ValueError("no key: an empty secret cannot sign messages")
    return [_decode_key(part) for part in parts]


def _decode_key(key: str) -> bytes:
    text = key.removeprefix(KEY_PREFIX)
    has_prefix = text != key
    try:
        decoded = base64.b64decode(text.rstrip("=") + "=" * (-len(text.rstrip("=")) % 4), validate=True)
    except binascii.Error:
        where = f" after {KEY_PREFIX}" if has_prefix else f": Standard Webhooks needs base64 keys. {KEY_HINT}"
        raise ValueError(f"a key that is not base64{where}") from None
    if not decoded:
        raise ValueError(f"no key after {KEY_PREFIX}: an empty key cannot sign messages")
    if not has_prefix and len(decoded) < MIN_KEY_BYTES:
        raise ValueError(
            f"a base64 key of only {len(decoded)} bytes, or a password; Standard Webhooks needs at least"
            f" {MIN_KEY_BYTES} bytes. {KEY_HINT}"
        )
    return decoded
