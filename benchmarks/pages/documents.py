"""Real pages of a given size from the HTML documentation in Debian packages."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from random import Random

from crawler.core.http.response import Fetched
from crawler.core.http.urls import Url
from tests.engine.corpus import fetch

# DocBook, Sphinx, handwritten, javadoc, and plain text converted to HTML
PACKAGES = ("postgresql-doc-15", "python3.11-doc", "sqlite3-doc", "libcommons-lang3-java-doc", "vim-doc")
NEARLY = 0.25  # allowed deviation from a size, as a share


@dataclass(frozen=True, slots=True)
class Document:
    """A page. Its site is its package."""

    package: str
    url: Url
    body: bytes = field(repr=False)


def documents(package: str) -> Iterator[Path]:
    """Yield the pages of a package in a fixed random order. Raise CorpusError if the package is not available."""
    found = sorted(file for file in fetch(package).rglob("*.html") if not file.is_symlink())
    return iter(Random(package).sample(found, len(found)))


def of_size(size_bytes: int, *, most: int) -> Sequence[Document]:
    """Return at most `most` pages of about this size, evenly from all packages."""
    each = [[file for file in documents(package) if is_nearly(file, size_bytes)] for package in PACKAGES]
    longest = max(map(len, each))
    in_turn = [
        document(package, files[n])
        for n in range(longest)
        for package, files in zip(PACKAGES, each, strict=True)
        if n < len(files)
    ]
    return in_turn[:most]


def is_nearly(file: Path, size_bytes: int) -> bool:
    return abs(file.stat().st_size - size_bytes) <= NEARLY * size_bytes


def document(package: str, file: Path) -> Document:
    return Document(package, Url(f"http://{package.replace('.', '-')}.test/{file.stem}"), file.read_bytes())


def build_response(body: bytes) -> Fetched:
    """Return the response of the page's server."""
    return Fetched(200, body, len(body), timedelta(milliseconds=20), "text/html")
