"""Decoding of Content-Encoding."""

import gzip
import tracemalloc
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.core.http.response import FailureReason
from crawler.fetch.responses import MAX_MEMBERS, decode_body

LIMIT = 1_000_000
PAGE = b"<p>The quick brown fox</p>" * 100


def bare(data: bytes) -> bytes:
    stream = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return stream.compress(data) + stream.flush()


@given(st.binary(max_size=2000))
def test_every_encoding_gives_back_what_went_in(data: bytes) -> None:
    assert decode_body(gzip.compress(data), "gzip", limit_bytes=LIMIT) == data
    assert decode_body(gzip.compress(data), "X-GZIP", limit_bytes=LIMIT) == data
    assert decode_body(zlib.compress(data), "deflate", limit_bytes=LIMIT) == data
    assert decode_body(bare(data), "deflate", limit_bytes=LIMIT) == data
    assert decode_body(zlib.compress(gzip.compress(data)), "gzip, deflate", limit_bytes=LIMIT) == data
    assert decode_body(gzip.compress(data) + gzip.compress(data), "gzip", limit_bytes=LIMIT) == data + data


@pytest.mark.parametrize("encoding", ["", "identity", "utf-8", "none", " , "])
def test_unknown_encodings_change_nothing(encoding: str) -> None:
    assert decode_body(PAGE, encoding, limit_bytes=LIMIT) == PAGE


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "br", "zstd"])
def test_an_empty_body_needs_no_decoding(encoding: str) -> None:
    assert decode_body(b"", encoding, limit_bytes=LIMIT) == b""


def test_padding_after_a_gzip_body_is_ignored() -> None:
    assert decode_body(gzip.compress(PAGE) + b"\0" * 20, "gzip", limit_bytes=LIMIT) == PAGE


@pytest.mark.parametrize(
    ("body", "encoding", "reason"),
    [
        (PAGE, "gzip", FailureReason.GARBAGE),
        (PAGE, "deflate", FailureReason.GARBAGE),
        (PAGE, "br", FailureReason.GARBAGE),
        (gzip.compress(PAGE, mtime=0)[:-9], "gzip", FailureReason.RESET),
        (gzip.compress(PAGE, mtime=0)[:5], "gzip", FailureReason.RESET),
        (PAGE, "gzip, gzip, gzip, gzip", FailureReason.GARBAGE),
        (gzip.compress(b"", mtime=0) * (MAX_MEMBERS + 1), "gzip", FailureReason.GARBAGE),
    ],
)
def test_a_broken_body_is_a_finding(body: bytes, encoding: str, reason: FailureReason) -> None:
    assert decode_body(body, encoding, limit_bytes=LIMIT) is reason


@given(st.binary(max_size=300), st.sampled_from(["gzip", "deflate", "br", "gzip,deflate", "x"]))
def test_no_bytes_raise(body: bytes, encoding: str) -> None:
    assert isinstance(decode_body(body, encoding, limit_bytes=100), bytes | FailureReason)


def test_a_body_of_exactly_the_limit_is_accepted_and_one_byte_more_is_not() -> None:
    assert decode_body(gzip.compress(b"a" * LIMIT), "gzip", limit_bytes=LIMIT) == b"a" * LIMIT
    assert decode_body(gzip.compress(b"a" * (LIMIT + 1)), "gzip", limit_bytes=LIMIT) is FailureReason.TOO_LARGE
    two = gzip.compress(b"a" * LIMIT) + gzip.compress(b"a")
    assert decode_body(two, "gzip", limit_bytes=LIMIT) is FailureReason.TOO_LARGE


def test_a_bomb_never_takes_much_more_memory_than_the_limit() -> None:
    stream = zlib.compressobj(9, zlib.DEFLATED, 16 + zlib.MAX_WBITS)
    bomb = b"".join(stream.compress(bytes(1_000_000)) for _ in range(300)) + stream.flush()  # 300 MB from 300 kB
    twice = gzip.compress(bomb)
    tracemalloc.start()
    try:
        assert decode_body(bomb, "gzip", limit_bytes=LIMIT) is FailureReason.TOO_LARGE
        assert decode_body(twice, "gzip, gzip", limit_bytes=LIMIT) is FailureReason.TOO_LARGE
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 4 * LIMIT
