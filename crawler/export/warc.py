"""WARC 1.1 (ISO 28500:2017): versions of pages as their servers sent them, or as a browser made them.

The status is that of the look that brought the version, and 200 where that look is forgotten (--keep-visits): no
other answers than those of 200 to 299 bring one.

A body that an earlier record of the file has already is a revisit record. What has come compressed or in chunks is kept
unpacked, so that these headers are left out, as the standard's own writers do.
"""

from http import HTTPStatus
from io import BytesIO
from typing import BinaryIO

from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter

from crawler import __version__
from crawler.store.report import ExportedPage

TRANSFER_HEADERS = {"content-encoding", "content-length"}  # of what came, which is kept unpacked
HTML = "text/html; charset=utf-8"  # of what a browser made


class Warc:
    """Records, each compressed by itself. shared: digests of bodies that several pages have."""

    def __init__(self, stream: BinaryIO, *, shared: frozenset[bytes], name: str) -> None:
        self._writer = WARCWriter(stream, gzip=True, warc_version="1.1")
        self._shared = shared
        self._first_records: dict[
            bytes, tuple[str, str, str]
        ] = {}  # digest of WARC, URL and instant of such a body's record
        about = {"software": f"recrawl/{__version__}", "format": "WARC File Format 1.1"}
        self._writer.write_record(self._writer.create_warcinfo_record(name, about))

    def write(self, page: ExportedPage) -> None:
        """One record for a page; none where it is not there any more, or its body is not kept."""
        if not page.has_content or page.body is None or page.version_at is None or page.digest is None:
            return
        at = page.version_at.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        headers, payload = {"WARC-Date": at}, BytesIO(page.body)
        http = StatusAndHeaders(
            _format_status(page.version_status or HTTPStatus.OK), _build_headers(page), protocol="HTTP/1.1"
        )
        is_first = not page.is_rendered and page.digest not in self._first_records
        if page.is_rendered:
            record = self._writer.create_warc_record(
                page.url, "resource", payload=payload, warc_content_type=HTML, warc_headers_dict=headers
            )
        elif is_first:
            record = self._writer.create_warc_record(
                page.url, "response", payload=payload, http_headers=http, warc_headers_dict=headers
            )
        else:
            record = self._writer.create_revisit_record(page.url, *self._first_records[page.digest], http, headers)
        self._writer.write_record(record)
        if is_first and page.digest in self._shared:
            self._first_records[page.digest] = (record.rec_headers.get_header("WARC-Payload-Digest"), page.url, at)

    def close(self) -> None:
        """Nothing is held back."""


def _format_status(status: int) -> str:
    try:
        return f"{status} {HTTPStatus(status).phrase}"
    except ValueError:
        return str(status)


def _build_headers(page: ExportedPage) -> list[tuple[str, str]]:
    assert page.body is not None
    named = (("Content-Type", page.content_type), ("ETag", page.etag), ("Last-Modified", page.last_modified))
    headers = [
        (name, value) for name, value in (*named, *page.headers) if value and name.lower() not in TRANSFER_HEADERS
    ]
    return [*headers, ("Content-Length", str(len(page.body)))]
