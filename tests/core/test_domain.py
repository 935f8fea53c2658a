"""Whose server a domain is: only one's own is asked without the usual delay."""

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
        ("example.com", [], False),  # nobody knows where it leads to
        ("127.0.0.1:8000", [], True),
        ("[::1]:8000", [], True),
        ("93.184.216.34", [], False),
    ],
)
def test_a_server_is_ones_own_where_private_ones_are_allowed_and_all_its_addresses_are(
    authority: str, addresses: list[str], own: bool
) -> None:
    assert is_own_server(Authority(authority), addresses, allow_private=True) is own
    assert not is_own_server(Authority(authority), addresses, allow_private=False)
