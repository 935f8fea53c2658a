"""Zstandard, with the settings of the store."""

import sys

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

LEVEL = 3

ZstdError = zstd.ZstdError


def compress(data: bytes) -> bytes:
    """Return data as one frame, which says how long the data is."""
    return zstd.compress(data, LEVEL)


def read_size(data: bytes) -> int:
    """Return how many bytes a frame says that it holds; 0 where it does not say. Raises ZstdError."""
    return zstd.get_frame_info(data).decompressed_size or 0


def decompress(data: bytes, *, max_bytes: int) -> bytes:
    """Return what a frame holds. Raises ZstdError where it is broken, or holds more than max_bytes."""
    decompressor = zstd.ZstdDecompressor()
    unpacked = decompressor.decompress(data, max_length=max_bytes + 1)  # the end of a frame needs a step of its own
    if not decompressor.eof or len(unpacked) > max_bytes:
        raise ZstdError(f"the frame ends too soon, or holds more than {max_bytes} bytes")
    return unpacked
