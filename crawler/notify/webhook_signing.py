"""Signatures of webhooks, as in Standard Webhooks 1.0 (standardwebhooks.com)."""

import base64
import binascii
import hmac
from datetime import datetime

KEY_PREFIX = "whsec_"  # optional, before a base64 key
KEY_HINT = "Create one with: openssl rand -base64 32"
MIN_KEY_BYTES = 24  # Standard Webhooks 1.0, "Signature scheme"; also rejects most passwords


def build_webhook_headers(token: str, body: bytes, *, key: str | None, at: datetime) -> dict[str, str]:
    """Return the headers of a message. token: its id, the same in retries.  key: the signing secret, or None.

    Source: Standard Webhooks 1.0 (standardwebhooks.com). The signature is HMAC-SHA256 over id, timestamp and body,
    joined with dots. During a key rotation there are several keys, and a signature of each, separated by spaces.
    Idempotency-Key is for receivers that know that header (draft-ietf-httpapi-idempotency-key).
    """
    timestamp = str(int(at.timestamp()))
    headers = {"Content-Type": "application/json", "webhook-id": token, "webhook-timestamp": timestamp}
    headers["Idempotency-Key"] = f'"{token}"'
    if key is None:
        return headers
    signed_content = f"{token}.{timestamp}.".encode() + body
    digests = [hmac.digest(each, signed_content, "sha256") for each in parse_signing_keys(key)]
    return headers | {"webhook-signature": " ".join(f"v1,{base64.b64encode(each).decode()}" for each in digests)}


def parse_signing_keys(secret: str) -> list[bytes]:
    """Parse the space-separated keys of a secret like the libraries of Standard Webhooks.

    Each key is base64, with or without padding and the prefix whsec_. Raises ValueError with a message for the user if
    there is no key or one is invalid.
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
        problem = f"a base64 key of only {len(decoded)} bytes, or a password"
        raise ValueError(f"{problem}; Standard Webhooks needs at least {MIN_KEY_BYTES} bytes. {KEY_HINT}")
    return decoded
