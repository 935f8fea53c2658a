"""Real pages: the HTML documentation in Debian packages, and an independent walk over its links.

It uses nothing of the crawler, so that the crawler's results can be compared with it.
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
    """A package that cannot be downloaded or unpacked. The message says why."""


def corpus(package: str, *, version: str | None = None) -> Path:
    """Return the folder of a documentation package's HTML with index.html; skip the test if it is not available.

    The folder is shared by all tests and kept: copy it before you change anything. Needs apt and dpkg, but not root.
    """
    try:
        return fetch(package, version=version)
    except CorpusError as reason:
        pytest.skip(f"{package}: {reason}")


def file_in(package: str, path: str) -> Path:
    """Return a file of a package; skip the test if the package is not available."""
    try:
        return unpacked(package) / path
    except CorpusError as reason:
        pytest.skip(f"{package}: {reason}")


def fetch(package: str, *, version: str | None = None) -> Path:
    """Return the same folder or raise CorpusError. version: a Debian version; None: any local one, else the newest."""
    kept = unpacked(package, version=version)
    indexes = sorted(kept.rglob("index.html"), key=lambda index: (len(index.parts), index))
    if not indexes:
        raise CorpusError("it holds no index.html")
    return indexes[0].parent


def unpacked(package: str, *, version: str | None = None) -> Path:
    """Return the folder with all files of a package. Raise CorpusError if it is not available."""
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
    """Download a package with the machine's package lists or, if it has none, with lists fetched into the folder."""
    own_lists = ("-o", f"Dir::State::Lists={folder}/lists", "-o", f"Dir::Cache={folder}/cache")
    for place in ("lists/partial", "cache/archives/partial"):
        (folder / place).mkdir(parents=True)
    # As root, apt would download as another account, which cannot write here.
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
    """Return every HTML page that links lead to from the start, as paths such as "/sql.html".

    Paths are resolved, with query and without fragment. "/" and "/index.html" are different pages.
    """
    return set(link_graph(root, start))


def link_graph(root: Path, start: str = "/") -> Mapping[str, frozenset[str]]:
    """Return the same pages, each with the distinct pages among them that it links to, which may include itself."""
    found: dict[str, frozenset[str]] = {}
    waiting = [start]
    while waiting:
        path = waiting.pop()
        if path not in found:
            found[path] = frozenset(target for target in targets(root, path) if is_page(root, target))
            waiting += sorted(found[path])
    return found


def targets(root: Path, path: str) -> set[str]:
    """Return where the links of a page lead on its own site."""
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
    """A parser of the anchors of a page and of their base URL."""

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
    """Copy a corpus to a folder that may be changed, keeping the files' times."""
    return Path(shutil.copytree(root, to, symlinks=True))
