"""Sites of chosen sizes and kinds, made from a folder of real pages.

Links to pages that a site lacks lead to another host, as many do on real sites, so that all crawlers request the same.
"""

import re
import shutil
from collections.abc import Sequence
from html import escape
from pathlib import Path
from urllib.parse import urljoin

from benchmarks.crawling.crawls import Corpus
from tests.engine.corpus import ORIGIN, file_of, is_page, link_graph, on_site

ELSEWHERE = "https://elsewhere.test/"
_HREF = re.compile(r"""(\bhref\s*=\s*["'])([^"'#]+)""", re.IGNORECASE)
_HEAD = re.compile(rb"<head\b[^>]*>", re.IGNORECASE)
_BODY_END = re.compile(rb"</body>", re.IGNORECASE)


def resize_site(root: Path, size: int, to: Path) -> Corpus:
    """Build a site with about `size` pages from a linked one: its first pages, or several copies that differ by a line.

    Copies are listed on one page, so a site of several copies has one page more.
    """
    graph = link_graph(root)
    if size <= len(graph):
        return _take_first(root, list(graph)[:size], to)
    copies = [f"/{n}" for n in range(round(size / len(graph)))]
    for folder in copies:
        copy = Path(shutil.copytree(root, to / folder[1:], symlinks=True))
        for file in copy.rglob("*.html"):
            if not file.is_symlink():
                line = f"<p>Copy {folder[1:]} of {file.stem}.</p></body>".encode()
                file.write_bytes(_BODY_END.sub(line, file.read_bytes()))
    _write_index(to, [f"{folder}/" for folder in copies])
    return Corpus(to, frozenset(["/", *(folder + path for folder in copies for path in graph)]))


def list_pages(pages: Sequence[Path], to: Path) -> Corpus:
    """Build a site of pages from many hosts: an index links to them, and their own links lead elsewhere."""
    to.mkdir(parents=True, exist_ok=True)
    for page in pages:
        based = _HEAD.sub(lambda match: match[0] + f'<base href="{ELSEWHERE}">'.encode(), page.read_bytes(), count=1)
        (to / page.name).write_bytes(based)
    _write_index(to, [f"/{page.name}" for page in pages])
    return Corpus(to, frozenset(["/", *(f"/{page.name}" for page in pages)]))


def _take_first(root: Path, paths: Sequence[str], to: Path) -> Corpus:
    kept = set(paths)
    for path in paths:
        base = ORIGIN + path

        def lead_elsewhere(match: re.Match[str], base: str = base) -> str:
            target = on_site(urljoin(base, match[2].strip()))
            is_missing = target is not None and target not in kept and is_page(root, target)
            return f"{match[1]}{ELSEWHERE if is_missing else match[2]}"

        source = file_of(root, path)
        new = to / source.relative_to(root)
        new.parent.mkdir(parents=True, exist_ok=True)
        new.write_text(
            _HREF.sub(lead_elsewhere, source.read_text(encoding="utf-8", errors="surrogateescape")),
            encoding="utf-8",
            errors="surrogateescape",
        )
    return Corpus(to, frozenset(kept))


def _write_index(folder: Path, paths: Sequence[str]) -> None:
    links = "".join(f'<li><a href="{escape(path)}">{escape(path)}</a>' for path in paths)
    (folder / "index.html").write_text(f"<!DOCTYPE html><title>Pages</title><ul>{links}</ul>", encoding="utf-8")
