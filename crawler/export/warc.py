"""The WARC 1.1 writer (ISO 28500:2017): versions of pages as their servers sent them, or as a browser rendered them.

The status is that of the visit that found the version, or 200 if that visit is no longer stored (--keep-visits), since
only responses from 200 to 299 create a version.

A response whose body is already in the file becomes a revisit record. Stored bodies are not compressed, so
Content-Encoding is omitted, and Content-Length is the size of the stored body.
"""

from http import HTTPStatus
from io import BytesIO
from typing import BinaryIO

from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter

from crawler import __version__
from crawler.store.report import ExportedPage

# These headers describe the body as transferred; stored bodies are decoded.
TRANSFER_HEADERS = {"content-encoding", "content-length"}
HTML = "text/html; charset=utf-8"  # the type of rendered pages


class Warc:
    """A writer of WARC records, each compressed separately. shared: the digests of bodies that occur several times."""

    def __init__(self, stream: BinaryIO, *, shared: frozenset[bytes], name: str) -> None:
        self._writer = WARCWriter(stream, gzip=True, warc_version="1.1")
        self._shared = shared
        # By body digest: the WARC digest, URL and time of its first record.
        self._first_records: dict[bytes, tuple[str, str, str]] = {}
        about = {"software": f"recrawl/{__version__}", "format": "WARC File Format 1.1"}
        self._writer.write_record(self._writer.create_warcinfo_record(name, about))

    def write(self, page: ExportedPage) -> None:
        """Write the record of a page; none if the page is no longer available or its body is not stored."""
        if not page.has_content or page.body is None or page.version_at is None or page.digest is None:
            return
        at = page.version_at.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        headers = {"WARC-Date": at}
        content = {"payload": BytesIO(page.body), "warc_headers_dict": headers}
        status = _format_status(page.version_status or HTTPStatus.OK)
        http = StatusAndHeaders(status, _build_headers(page), protocol="HTTP/1.1")
        is_first = not page.is_rendered and page.digest not in self._first_records
        if page.is_rendered:
            record = self._writer.create_warc_record(page.url, "resource", warc_content_type=HTML, **content)
        elif is_first:
            record = self._writer.create_warc_record(page.url, "response", http_headers=http, **content)
        else:
            record = self._writer.create_revisit_record(page.url, *self._first_records[page.digest], http, headers)
        self._writer.write_record(record)
        if is_first and page.digest in self._shared:
            self._first_records[page.digest] = (record.rec_headers.get_header("WARC-Payload-Digest"), page.url, at)

    def close(self) -> None:
        """Do nothing, because records are not buffered."""


def _format_status(status: int) -> str:
    try:
        return f"{status} {HTTPStatus(status).phrase}"
    except ValueError:
        return str(status)


def _build_headers(page: ExportedPage) -> list[tuple[str, str]]:
    assert page.body is not None
    named = (("Content-Type", page.content_type), ("ETag", page.etag), ("Last-Modified", page.last_modified))
    sent = [(name, value) for name, value in (*named, *page.headers) if name.lower() not in TRANSFER_HEADERS]
    headers = [(name, value) for name, value in sent if value]
    return [*headers, ("Content-Length", str(len(page.body)))]
