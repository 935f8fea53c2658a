"""Zstandard, with the settings of the store."""

import sys

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

LEVEL = 3

ZstdError = zstd.ZstdError


def compress(data: bytes) -> bytes:
    """Return the data as one frame, which states the size of the data."""
    return zstd.compress(data, LEVEL)


def read_size(data: bytes) -> int:
    """Return the decompressed size that a frame states, in bytes; 0 if it states none. Raise ZstdError."""
    return zstd.get_frame_info(data).decompressed_size or 0


def decompress(data: bytes, *, max_bytes: int) -> bytes:
    """Return the decompressed data of a frame. Raise ZstdError if it is broken or larger than max_bytes."""
    decompressor = zstd.ZstdDecompressor()
    unpacked = decompressor.decompress(data, max_length=max_bytes + 1)  # one more, to detect data that is too large
    if not decompressor.eof or len(unpacked) > max_bytes:
        raise ZstdError(f"the frame is truncated, or its data is larger than {max_bytes} bytes")
    return unpacked
