"""Stored headers: limited in size, and without credentials."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.core.http.stored_headers import MAX_BYTES, MAX_VALUE_CHARS, select_stored_headers

HEADERS = st.lists(st.tuples(st.text("abcXY-", min_size=1, max_size=20), st.text(max_size=3000)), max_size=60)


def test_headers_are_stored_in_order_with_unchanged_names() -> None:
    given_ = [("Server", "mill/1.0"), ("Vary", "Accept"), ("vary", "Cookie"), ("X-Cache", "HIT")]
    assert select_stored_headers(given_) == "Server: mill/1.0\nVary: Accept\nvary: Cookie\nX-Cache: HIT"


@pytest.mark.parametrize(
    "name",
    [
        "Set-Cookie",
        "set-cookie2",
        "X-Auth-Token",
        "X-CSRF-Token",
        "Authentication-Info",
        "WWW-Authenticate",
        "X-Api-Key",
        "X-Session-Id",
        "X-Amz-Security-Token",
    ],
)
def test_headers_with_credentials_are_not_stored(name: str) -> None:
    assert select_stored_headers([(name, "mill-secret"), ("Server", "mill")]) == "Server: mill"


@pytest.mark.parametrize("name", ["Date", "Age", "Connection", "Transfer-Encoding", "ETag", "Content-Type"])
def test_connection_headers_and_headers_stored_elsewhere_are_omitted(name: str) -> None:
    assert select_stored_headers([(name, "x")]) == ""


def test_long_value_is_truncated_with_an_ellipsis() -> None:
    kept = select_stored_headers([("Content-Security-Policy", "a" * 5000)])
    assert kept == f"Content-Security-Policy: {'a' * MAX_VALUE_CHARS}..."


@given(HEADERS)
def test_total_size_of_headers_is_bounded(headers: list[tuple[str, str]]) -> None:
    assert len(select_stored_headers(headers).encode("utf-8", "replace")) <= MAX_BYTES
