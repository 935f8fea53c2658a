"""Real pages of a given size: the HTML documentation in Debian's packages."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from random import Random

from crawler.core.http.response import Fetched
from crawler.core.http.urls import Url
from tests.engine.corpus import fetch

# DocBook, Sphinx, written by hand, javadoc, and plain text that was made into HTML.
PACKAGES = ("postgresql-doc-15", "python3.11-doc", "sqlite3-doc", "libcommons-lang3-java-doc", "vim-doc")
NEARLY = 0.25  # of a size, to either side


@dataclass(frozen=True, slots=True)
class Document:
    """A page, on the site that its package would be."""

    package: str
    url: Url
    body: bytes = field(repr=False)


def documents(package: str) -> Iterator[Path]:
    """All pages of a package, in no order, which is the same each time. CorpusError where it cannot be had."""
    found = sorted(file for file in fetch(package).rglob("*.html") if not file.is_symlink())
    return iter(Random(package).sample(found, len(found)))


def of_size(size_bytes: int, *, most: int) -> Sequence[Document]:
    """So many pages at most that have about this size, from all packages alike."""
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


def answered(body: bytes) -> Fetched:
    """A page as its server would send it."""
    return Fetched(200, body, len(body), timedelta(milliseconds=20), "text/html")
