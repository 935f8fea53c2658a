"""A reader of comma-separated values."""

import csv
import io

from crawler.plugins import ReadContent


class Rows:
    """Returns one line of text per row, and the links in the cells."""

    media_types = ("text/csv",)
    sample = b"name,page\nfirst,/first.html\n"

    def read(self, body: bytes, *, url: str, content_type: str) -> ReadContent:  # noqa: ARG002
        rows = list(csv.reader(io.StringIO(body.decode("utf-8-sig", "replace")), strict=True))
        cells = [cell.strip() for row in rows for cell in row]
        links = [cell for cell in cells if cell.startswith(("http://", "https://", "/"))]
        return ReadContent(text="\n".join(" ".join(row) for row in rows), links=links)
