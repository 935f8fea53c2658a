"""A reader of tables with comma-separated values."""

import csv
import io

from crawler.plugins import ReadContent


class Rows:
    """A reader that returns one line for each row, and the links in cells."""

    media_types = ("text/csv",)
    sample = b"name,page\nfirst,/first.html\n"

    def read(self, body: bytes, *, url: str, content_type: str) -> ReadContent:  # noqa: ARG002  not needed here
        rows = list(csv.reader(io.StringIO(body.decode("utf-8-sig", "replace")), strict=True))
        cells = [cell.strip() for row in rows for cell in row]
        links = [cell for cell in cells if cell.startswith(("http://", "https://", "/"))]
        return ReadContent(text="\n".join(" ".join(row) for row in rows), links=links)
