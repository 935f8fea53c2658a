"""Markdown files of pages: the main content with headings, lists, tables and code, after a YAML front matter."""

import re
from collections.abc import Sequence
from pathlib import Path
from tempfile import NamedTemporaryFile
from urllib.parse import unquote, urlsplit

import yaml

from crawler.core.http.urls import Authority, Url, compute_page_key, get_authority
from crawler.core.page import markdown_text
from crawler.core.page.html import parse_html, resolve_base
from crawler.core.page.main_content.choice import add_headings, build_content_text, choose_content
from crawler.core.page.media_type import detect_kind
from crawler.core.page.scan import PageScan
from crawler.core.page.snapshot import list_lines
from crawler.errors import CrawlerError
from crawler.store.report import ExportedPage

NAME_BYTES = 120  # the maximum of a file or folder name without suffixes; file systems allow 255 with them
INDEX = "index"
TEMP_PREFIX = ".recrawl-"  # begins the names of unfinished files
_UNSAFE = re.compile(r"[^\w.~@=,+ -]")


def render_markdown(page: ExportedPage, *, for_index: bool = False) -> str:
    """Return the main content of a page as Markdown.

    for_index: leave out what embeddings and searches do not need: the targets of links, and spaces that pad the cells
    of a column to equal width.
    Returns the content text instead if the page is not HTML or its body is not stored.
    """
    if page.body is None or detect_kind(page.body, page.content_type) != "html":
        return page.content
    scan = parse_html(page.body, page.content_type).content_scan
    lines = add_headings(scan, _list_content_lines(page, scan))
    base = resolve_base(scan.base, page.url)
    options = {"with_links": not for_index, "pads_tables": not for_index}
    return markdown_text.render_markdown(scan, lines, base=base, **options) or page.content


def _list_content_lines(page: ExportedPage, scan: PageScan) -> Sequence[int]:
    """Return the lines of the stored content, or a new choice if an earlier recrawl numbered the lines differently."""
    lines = list_lines(page.line_ranges)
    if lines and lines[-1] < len(scan.texts) and build_content_text(scan, lines) == page.content:
        return lines
    return choose_content(scan, title=page.title).lines


class MarkdownFolder:
    """A writer of one Markdown file per page, in folders that follow the paths of the site.

    The files of removed pages are deleted. is_full_export: whether all pages of the domain are written; then `close`
    deletes the files of its other pages. Files that no export wrote are never changed; `write` raises CrawlerError if a
    page needs the path of one.
    """

    def __init__(self, folder: Path, *, authority: Authority, is_full_export: bool) -> None:
        self._folder, self._authority = folder, authority
        self._started_ns = _read_folder_clock(folder) if is_full_export else None

    def write(self, page: ExportedPage) -> None:
        path = self._folder / build_path(page.url)
        existing_url = _read_url(path)
        if not page.is_available:
            if existing_url == page.url:
                path.unlink()
            return
        if existing_url != page.url and path.exists():
            owner = f"belongs to {get_authority(Url(existing_url))}" if existing_url else "was not written by an export"
            raise CrawlerError(f"{path} already exists and {owner}: export each domain to a separate folder")
        path.parent.mkdir(parents=True, exist_ok=True)
        text = f"---\n{render_front_matter(page)}---\n\n{render_markdown(page)}"
        file = NamedTemporaryFile("w", dir=path.parent, prefix=TEMP_PREFIX, delete=False, encoding="utf-8")  # noqa: SIM115
        try:
            with file:
                file.write(text)
            Path(file.name).chmod(0o644)
            Path(file.name).replace(path)
        finally:
            Path(file.name).unlink(missing_ok=True)

    def close(self) -> None:
        """After a full export, delete the files that earlier exports wrote for removed pages."""
        if self._started_ns is None:
            return
        for part in self._folder.rglob(f"{TEMP_PREFIX}*"):
            part.unlink(missing_ok=True)  # left by an export that was killed
        for path in self._folder.rglob("*.md"):
            if path.stat().st_mtime_ns < self._started_ns and self._is_ours(path):
                path.unlink(missing_ok=True)

    def _is_ours(self, path: Path) -> bool:
        """Return whether a file was written for a page of this domain."""
        url = Url(_read_url(path) or "")
        return bool(url) and get_authority(url) == self._authority and self._folder / build_path(url) == path


def _read_folder_clock(folder: Path) -> int:
    """Return the current time of the file system's clock, in nanoseconds."""
    folder.mkdir(parents=True, exist_ok=True)
    with NamedTemporaryFile(dir=folder, prefix=TEMP_PREFIX) as file:
        return Path(file.name).stat().st_mtime_ns


def _read_url(path: Path) -> str | None:
    """Return the URL in the front matter of an exported file; None for other or missing files."""
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            head = [file.readline(20_000) for _ in range(2)]
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return None
    if head[0] != "---\n" or not head[1].startswith("url: "):
        return None
    try:
        url = str(yaml.safe_load(head[1])["url"])
    except yaml.YAMLError:
        return None
    return url if url.startswith(("http://", "https://")) else None


def render_front_matter(page: ExportedPage) -> str:
    """Return the metadata of a page as YAML."""
    names = ("url", "title", "language", "version", "version_at", "seen_at", "changed_at", "importance")
    front_fields = {name: getattr(page, name) for name in names}
    front_fields["digest"] = page.digest.hex() if page.digest is not None else None
    front_fields["confidence"] = round(page.confidence, 2)
    stated = ("author", "published", "modified", "description")
    front_fields |= {name: page.metadata[name] for name in stated if name in page.metadata}
    return str(yaml.safe_dump(front_fields, sort_keys=False, allow_unicode=True, width=10_000))


def build_path(url: Url) -> Path:
    """Return the unique relative path of a page's file: the path of its URL, made safe.

    If a name in it was changed, the last one is `index`, or the URL has a query, a part of the page key is appended.
    """
    parts = urlsplit(url)
    *folders, last = [unquote(part, errors="replace") for part in parts.path.split("/")[1:]]
    safe, name = [_make_folder_name(_make_safe_name(part)) for part in folders], _make_safe_name(last or INDEX)
    if [*safe, name] != [*folders, last or INDEX] or last == INDEX or parts.query:
        name = f"{name}~{compute_page_key(url).hex()[:16]}"
    return Path(*safe, f"{name}.md")


def _make_folder_name(name: str) -> str:
    """Return a folder name that differs from all file names of pages."""
    return f"{name}~" if name.endswith(".md") else name


def _make_safe_name(part: str) -> str:
    """Return a name that is valid on all systems and not hidden."""
    name = _UNSAFE.sub("_", part).strip(". ") or "_"
    while len(name.encode()) > NAME_BYTES:
        name = name[: len(name) - max(1, (len(name.encode()) - NAME_BYTES) // 4)]
    return name
