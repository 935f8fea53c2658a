"""A user's own server, which is crawled without the usual delay."""

import pytest

from crawler.core.domain import is_own_server
from crawler.core.http.urls import Authority


@pytest.mark.parametrize(
    ("authority", "addresses", "own"),
    [
        ("intranet.test", ["10.1.2.3"], True),
        ("intranet.test", ["10.1.2.3", "fd00::1"], True),
        ("intranet.test", ["10.1.2.3", "93.184.216.34"], False),
        ("example.com", ["93.184.216.34"], False),
        ("example.com", [], False),  # not resolved yet
        ("127.0.0.1:8000", [], True),
        ("[::1]:8000", [], True),
        ("93.184.216.34", [], False),
    ],
)
def test_server_is_own_if_private_addresses_are_allowed_and_all_its_addresses_are_private(
    authority: str, addresses: list[str], own: bool
) -> None:
    assert is_own_server(Authority(authority), addresses, allow_private=True) is own
    assert not is_own_server(Authority(authority), addresses, allow_private=False)
