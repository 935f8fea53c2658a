"""Parsing of the signing keys of webhooks."""

import base64

import pytest

from crawler.notify.webhook_signing import parse_signing_keys

KEY = bytes(range(100, 132))
ENCODED = base64.b64encode(KEY).decode()


@pytest.mark.parametrize(
    ("secret", "keys"),
    [
        ("whsec_YWJj", [b"abc"]),
        ("whsec_YWJjZA==", [b"abcd"]),
        ("whsec_YWJjZA", [b"abcd"]),
        (ENCODED, [KEY]),
        (ENCODED.rstrip("="), [KEY]),
        (f"{ENCODED} whsec_YWJj", [KEY, b"abc"]),
        (" whsec_YWJj\n", [b"abc"]),
        ("whsec_YWJj whsec_ZGVm", [b"abc", b"def"]),
    ],
)
def test_keys_may_have_padding_and_a_prefix(secret: str, keys: list[bytes]) -> None:
    assert parse_signing_keys(secret) == keys


@pytest.mark.parametrize(
    "secret",
    [
        *("", " ", "whsec_", "whsec_!!", "whsec_YWJj whsec_!!", "old whsec_YWJj", "whsec_YWJj,whsec_ZGVm"),
        *("hunter2", "my secret password", "plain words, which are no base64 at all", "c2hvcnQ=", f"{ENCODED[:-2]}-_"),
    ],
)
def test_secret_without_valid_keys_is_rejected(secret: str) -> None:
    with pytest.raises(ValueError, match="key"):
        parse_signing_keys(secret)
