"""The keys that a webhook's secret means, and secrets that mean none."""

import pytest

from crawler.notify.payload import keys_of


@pytest.mark.parametrize(
    ("secret", "keys"),
    [
        ("plain words are one key", [b"plain words are one key"]),
        ("whsec_YWJj", [b"abc"]),
        (" whsec_YWJj\n", [b"abc"]),
        ("whsec_YWJj whsec_ZGVm", [b"abc", b"def"]),
    ],
)
def test_one_key_as_it_stands_or_those_that_are_marked(secret: str, keys: list[bytes]) -> None:
    assert keys_of(secret) == keys


@pytest.mark.parametrize(
    "secret", ["", " ", "whsec_", "whsec_!!", "whsec_YWJj whsec_!!", "old whsec_YWJj", "whsec_YWJj,whsec_ZGVm"]
)
def test_a_secret_that_nobody_could_check_is_refused(secret: str) -> None:
    with pytest.raises(ValueError, match="key"):
        keys_of(secret)
