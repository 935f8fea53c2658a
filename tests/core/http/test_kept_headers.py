"""Headers that are kept: what tells of the page, within bounds, and never what lets somebody in."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.core.http.stored_headers import MAX_BYTES, MAX_VALUE_CHARS, select_stored_headers

HEADERS = st.lists(st.tuples(st.text("abcXY-", min_size=1, max_size=20), st.text(max_size=3000)), max_size=60)


def test_headers_are_kept_in_their_order_with_their_names_as_they_came() -> None:
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
def test_what_lets_somebody_in_is_not_kept(name: str) -> None:
    assert select_stored_headers([(name, "mill-secret"), ("Server", "mill")]) == "Server: mill"


@pytest.mark.parametrize("name", ["Date", "Age", "Connection", "Transfer-Encoding", "ETag", "Content-Type"])
def test_what_is_of_the_connection_or_kept_elsewhere_is_not_kept_twice(name: str) -> None:
    assert select_stored_headers([(name, "x")]) == ""


def test_a_long_value_is_cut_and_says_so() -> None:
    kept = select_stored_headers([("Content-Security-Policy", "a" * 5000)])
    assert kept == f"Content-Security-Policy: {'a' * MAX_VALUE_CHARS}..."


@given(HEADERS)
def test_all_headers_together_are_bounded(headers: list[tuple[str, str]]) -> None:
    assert len(select_stored_headers(headers).encode("utf-8", "replace")) <= MAX_BYTES
