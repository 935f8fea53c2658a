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

from crawler.notify.wording import Content, calling_nobody, text_of
from crawler.store.outbox import Message
from crawler.store.report import FeedItem

KEY_PREFIX = "whsec_"  # may stand before a key in base64
LEAST_KEY_BYTES = 24  # Standard Webhooks 1.0, "Signature scheme"; so that no password is taken for base64
HOW_TO_MAKE = "Make one with: openssl rand -base64 32"
SIGNATURE = "v1"
ENVELOPE_BYTES = 1024  # what stands beside the changes
TOLD = (  # of a change, in this order
    *("position", "domain", "at", "url", "change", "version", "title", "distance_bits", "amount", "importance"),
    *("parts", "blocks", "pages", "source", "moved_to"),
)


def content_of(item: FeedItem, condition: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """A change with all that is told of it. condition: what became true, if that was asked for."""
    plain = {name: getattr(item, name) for name in TOLD} | {
        "at": item.at.isoformat(),
        "change": item.change.value,
        "parts": [part.value for part in item.parts],
        "blocks": [{"part": edit.part.value, "was": edit.was, "now": edit.now} for edit in item.blocks],
    }
    return plain | ({"condition": dict(condition)} if condition is not None else {})


def body_of(message: Message, *, text: str, most_bytes: int) -> bytes:
    """A message in JSON, the same at every try. text: in words, under the name by which chat services take it.

    most_bytes: beyond it last blocks of changes are left out; `blocks_left_out` of each says how many.
    """
    document = {
        "id": str(message.token),
        "type": "recrawl.changes",
        "subscription": message.subscription_id,
        "timestamp": message.made_at.isoformat(),
        "text": text,
        "changes": list(message.changes),
    }
    body = _encoded(document)
    if len(body) <= most_bytes:
        return body
    bare = [{**change, "blocks": [], "blocks_left_out": len(change.get("blocks", ()))} for change in message.changes]
    room = most_bytes - len(_encoded(document | {"changes": bare}))
    return _encoded(document | {"changes": list(_with_blocks(message.changes, room=room))})


def _with_blocks(changes: Sequence[Content], *, room: int) -> Iterator[Content]:
    """Changes with as many of their first blocks as there is room for, in bytes."""
    for change in changes:
        kept = []
        for block in change.get("blocks", ()):
            room -= _block_bytes(block)
            if room < 0:
                break
            kept.append(block)
        yield {**change, "blocks": kept, "blocks_left_out": len(change.get("blocks", ())) - len(kept)}


def _encoded(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode()


def _block_bytes(value: object) -> int:
    return len(_encoded(value)) + len(", ")


def parts_of(message: Message, *, most_bytes: int) -> list[int]:
    """How many changes of a message go into each of its parts, in their order; one part where all of it fits."""
    parts, used = [0], ENVELOPE_BYTES
    for change in message.changes:
        size = _block_bytes(change) + _block_bytes(calling_nobody(text_of([change])))
        if parts[-1] and used + size > most_bytes:
            parts.append(0)
            used = ENVELOPE_BYTES
        parts[-1] += 1
        used += size
    return parts


def headers_of_webhook(token: str, body: bytes, *, key: str | None, at: datetime) -> dict[str, str]:
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
    said = f"{token}.{timestamp}.".encode() + body
    signed = [base64.b64encode(hmac.digest(each, said, "sha256")).decode() for each in keys_of(key)]
    return headers | {"webhook-signature": " ".join(f"{SIGNATURE},{each}" for each in signed)}


def keys_of(secret: str) -> list[bytes]:
    """Return the keys that a secret holds, with spaces between, as the libraries of Standard Webhooks read them.

    Each is base64, padded or not, with or without whsec_ before it. ValueError, a sentence for a person, where it is
    something else: a receiver with such a library could not check what it signs.
    """
    parts = secret.split()
    if not parts:
        raise ValueError("no key: anybody could sign with nothing")
    return [_key_bytes(part) for part in parts]


def _key_bytes(key: str) -> bytes:
    text = key.removeprefix(KEY_PREFIX)
    has_prefix = text != key
    try:
        found = base64.b64decode(text.rstrip("=") + "=" * (-len(text.rstrip("=")) % 4), validate=True)
    except binascii.Error:
        where = f" after {KEY_PREFIX}" if has_prefix else f": Standard Webhooks has keys in base64. {HOW_TO_MAKE}"
        raise ValueError(f"a key that is no base64{where}") from None
    if not found:
        raise ValueError(f"no key after {KEY_PREFIX}: anybody could sign with nothing")
    if not has_prefix and len(found) < LEAST_KEY_BYTES:
        raise ValueError(
            f"a key of {len(found)} bytes in base64, or a password; Standard Webhooks wants {LEAST_KEY_BYTES} at least."
            f" {HOW_TO_MAKE}"
        )
    return found
