"""Changes as programs are told them: the fields of `recrawl changes --json`, signed as Standard Webhooks 1.0 has it.

More changes than fit into one message are told in several, each with an id of its own. Receivers refuse what is too
large for them (413): nginx beyond 1 MB, Express beyond 100 kB unless told otherwise.
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

KEY_PREFIX = "whsec_"  # may stand before a key in base64
MIN_KEY_BYTES = 24  # Standard Webhooks 1.0, "Signature scheme"; so that no password is taken for base64
KEY_HINT = "Make one with: openssl rand -base64 32"
SIGNATURE = "v1"
ENVELOPE_BYTES = 1024  # what stands beside the changes
TOLD = (  # of a change, in this order
    *("position", "domain", "at", "url", "change", "version", "title", "distance_bits", "magnitude", "importance"),
    *("parts", "blocks", "pages", "source", "moved_to"),
)


def build_content(item: FeedItem, condition: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """A change with all that is told of it. condition: what became true, if that was asked for."""
    plain = {name: getattr(item, name) for name in TOLD} | {
        "at": item.at.isoformat(),
        "change": item.change.value,
        "parts": [part.value for part in item.parts],
        "blocks": [{"part": edit.part.value, "was": edit.before, "now": edit.after} for edit in item.blocks],
    }
    return plain | ({"condition": dict(condition)} if condition is not None else {})


def encode_body(message: Message, *, text: str, max_bytes: int) -> bytes:
    """A message in JSON, the same at every try. text: in words, under the name by which chat services take it.

    max_bytes: beyond it last blocks of changes are left out; `blocks_left_out` of each says how many.
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
    """Changes with as many of their first blocks as there is room for, in bytes."""
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
    """How many changes of a message go into each of its parts, in their order; one part where all of it fits."""
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
    """Headers of a message. token: the same at every try.  key: the secret it is signed with; None for no signature.

    Source: Standard Webhooks 1.0 (standardwebhooks.com): the signature is HMAC-SHA256 over id, timestamp and body with
    points between them; of several keys each makes one, with spaces between, while a receiver changes from one to
    another. Idempotency-Key is for receivers that know that header (draft-ietf-httpapi-idempotency-key).
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
    """Return the keys that a secret holds, with spaces between, as the libraries of Standard Webhooks read them.

    Each is base64, padded or not, with or without whsec_ before it. ValueError, a sentence for a person, where it is
    something else: a receiver with such a library could not check what it signs.
    """
    parts = secret.split()
    if not parts:
        raise ValueError("no key: anybody could sign with nothing")
    return [_decode_key(part) for part in parts]


def _decode_key(key: str) -> bytes:
    text = key.removeprefix(KEY_PREFIX)
    has_prefix = text != key
    try:
        decoded = base64.b64decode(text.rstrip("=") + "=" * (-len(text.rstrip("=")) % 4), validate=True)
    except binascii.Error:
        where = f" after {KEY_PREFIX}" if has_prefix else f": Standard Webhooks has keys in base64. {KEY_HINT}"
        raise ValueError(f"a key that is no base64{where}") from None
    if not decoded:
        raise ValueError(f"no key after {KEY_PREFIX}: anybody could sign with nothing")
    if not has_prefix and len(decoded) < MIN_KEY_BYTES:
        raise ValueError(
            f"a key of {len(decoded)} bytes in base64, or a password; Standard Webhooks wants {MIN_KEY_BYTES} at least."
            f" {KEY_HINT}"
        )
    return decoded
