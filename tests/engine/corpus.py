"""Real pages: the HTML documentation in Debian's packages, and an independent walk over its links.

Nothing of the crawler is used here, so that what it finds can be compared with what there is.
"""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urljoin, urlsplit

import pytest

from crawler.runtime.machine import hold_lock

CACHE = Path(__file__).parent.parent.parent / ".cache" / "corpus"
PATIENCE_S = 100.0  # for one call of apt
ORIGIN = "http://corpus.invalid"


class CorpusError(Exception):
    """The package cannot be had; the message says why."""


def corpus(package: str, *, version: str | None = None) -> Path:
    """The folder of a documentation package's HTML, index.html in it; the test is skipped where it cannot be had.

    Shared by all tests and kept: copy it before changing anything. Needs apt and dpkg, but not root.
    """
    try:
        return fetch(package, version=version)
    except CorpusError as reason:
        pytest.skip(f"{package}: {reason}")


def file_in(package: str, path: str) -> Path:
    """A file of a package; the test is skipped where the package cannot be had."""
    try:
        return unpacked(package) / path
    except CorpusError as reason:
        pytest.skip(f"{package}: {reason}")


def fetch(package: str, *, version: str | None = None) -> Path:
    """The same, or CorpusError. version: as Debian spells it; without it, whichever is there, or else the newest."""
    kept = unpacked(package, version=version)
    indexes = sorted(kept.rglob("index.html"), key=lambda index: (len(index.parts), index))
    if not indexes:
        raise CorpusError("it holds no index.html")
    return indexes[0].parent


def unpacked(package: str, *, version: str | None = None) -> Path:
    """The folder with all files of a package, or CorpusError."""
    kept = CACHE / (package if version is None else f"{package}={version}")
    CACHE.mkdir(parents=True, exist_ok=True)
    with hold_lock(CACHE / f"{kept.name}.lock"):
        if not kept.is_dir():
            with tempfile.TemporaryDirectory(dir=CACHE) as folder:
                files = Path(folder, "unpacked")
                run("dpkg-deb", "-x", str(download(kept.name, Path(folder))), str(files))
                files.rename(kept)
    return kept


def download(package: str, folder: Path) -> Path:
    """The package's file, by the machine's package lists or, where it has none, by lists fetched into the folder."""
    own_lists = ("-o", f"Dir::State::Lists={folder}/lists", "-o", f"Dir::Cache={folder}/cache")
    for place in ("lists/partial", "cache/archives/partial"):
        (folder / place).mkdir(parents=True)
    # As root, apt would fetch as a user of its own, who may not write here.
    options = ("-q", "-o", "APT::Sandbox::User=") if os.geteuid() == 0 else ("-q",)
    try:
        run("apt-get", *options, "download", package, folder=folder)
    except CorpusError:
        run("apt-get", *options, *own_lists, "update", folder=folder)
        run("apt-get", *options, *own_lists, "download", package, folder=folder)
    return next(folder.glob("*.deb"))


def run(*command: str, folder: Path | None = None) -> None:
    try:
        subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True, timeout=PATIENCE_S)
    except FileNotFoundError as error:
        raise CorpusError(f"there is no {command[0]}") from error
    except subprocess.TimeoutExpired as error:
        raise CorpusError(f"{' '.join(command)} took longer than {PATIENCE_S:.0f} s") from error
    except subprocess.CalledProcessError as error:
        last = (error.stderr.strip().splitlines() or ["without a word"])[-1]
        raise CorpusError(f"{' '.join(command)} failed: {last}") from error


def linked_pages(root: Path, start: str = "/") -> set[str]:
    """Every HTML page that links lead to from the start, as a server shows the folder: paths such as "/sql.html".

    Paths as they stand in links, resolved, with their query and without their fragment. "/" and "/index.html" are two.
    """
    return set(link_graph(root, start))


def link_graph(root: Path, start: str = "/") -> Mapping[str, frozenset[str]]:
    """The same pages, each with the distinct pages among them that it links to; itself too, where it does."""
    found: dict[str, frozenset[str]] = {}
    waiting = [start]
    while waiting:
        path = waiting.pop()
        if path not in found:
            found[path] = frozenset(target for target in targets(root, path) if is_page(root, target))
            waiting += sorted(found[path])
    return found


def targets(root: Path, path: str) -> set[str]:
    """Where the links of a page lead, on its own site."""
    links = Links()
    links.feed(file_of(root, path).read_text(encoding="utf-8", errors="replace"))
    base = urljoin(ORIGIN + path, links.base)
    return {target for href in links.hrefs if (target := on_site(urljoin(base, href.strip()))) is not None}


def on_site(url: str) -> str | None:
    parts = urlsplit(url)
    if f"{parts.scheme}://{parts.netloc}" != ORIGIN:
        return None
    return (parts.path or "/") + (f"?{parts.query}" if parts.query else "")


def is_page(root: Path, path: str) -> bool:
    file = file_of(root, path)
    return file.suffix in {".html", ".htm", ".xhtml"} and file.is_file()


def file_of(root: Path, path: str) -> Path:
    relative = unquote(path.partition("?")[0]).lstrip("/")
    return root / relative / "index.html" if relative.endswith("/") or not relative else root / relative


class Links(HTMLParser):
    """The anchors of a page, and what they are relative to."""

    def __init__(self) -> None:
        super().__init__()
        self.hrefs: list[str] = []
        self.base = ""

    def handle_starttag(self, tag: str, attrs: Sequence[tuple[str, str | None]]) -> None:
        href = dict(attrs).get("href")
        if href and tag in {"a", "area"}:
            self.hrefs.append(href)
        elif href and tag == "base":
            self.base = self.base or href


def copied(root: Path, to: Path) -> Path:
    """A copy of a corpus that may be changed, with the files' times kept."""
    return Path(shutil.copytree(root, to, symlinks=True))
