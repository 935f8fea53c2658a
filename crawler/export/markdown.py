"""Markdown of pages: the main content of each as headings, lists, tables and code, in files with a front matter."""

import re
from pathlib import Path
from tempfile import NamedTemporaryFile
from urllib.parse import unquote, urlsplit

import yaml
from html_to_markdown import ConversionOptions, convert
from html_to_markdown.exceptions import ConversionError

from crawler.core.http.urls import Authority, Url, authority_of, key_of
from crawler.core.page.content import main_html
from crawler.core.page.media_type import kind_of
from crawler.errors import CrawlerError
from crawler.store.report import TakenPage

NAME_BYTES = 120  # of a file, or of a folder; systems allow 255 with what is added
INDEX = "index"
PART = ".recrawl-"  # begins the names of files that are not whole yet
MOST_HEAD = 20_000  # characters of a line with a URL
_UNSAFE = re.compile(r"[^\w.~@=,+ -]")


def markdown_of(page: TakenPage, *, pads_tables: bool = True) -> str:
    """The main content of a page as Markdown. pads_tables: cells of a column are as wide as its widest.

    Its main text where it is no web page, its body is not kept, or nothing else can be made of it, as of one that is
    nested too deep.
    """
    if page.body is None or kind_of(page.body, page.content_type) != "html":
        return page.text
    html = main_html(page.body, page.content_type, url=page.url)
    options = ConversionOptions(
        heading_style="atx", extract_metadata=False, autolinks=False, compact_tables=not pads_tables
    )
    try:
        found = str(convert(html, options).content).strip()
    except ConversionError:
        found = ""
    return f"{found}\n" if found else page.text


class MarkdownFolder:
    """A file for each page, in folders as the site's paths are. A page that is not there any more loses its file.

    is_whole: all pages of the domain are written, so that in the end files of other pages of it go. Files that were not
    written for a page of that domain are left alone, and refused where a page needs their place.
    """

    def __init__(self, folder: Path, *, authority: Authority, is_whole: bool) -> None:
        self._folder, self._authority = folder, authority
        self._begun = _instant_in(folder) if is_whole else None

    def write(self, page: TakenPage) -> None:
        path = self._folder / path_of(page.url)
        there = _url_in(path)
        if not page.is_there:
            if there == page.url:
                path.unlink()
            return
        if there != page.url and path.exists():
            whose = f"a page of {authority_of(Url(there))}" if there else "no page of an export"
            raise CrawlerError(f"{path} is {whose}: export each domain into a folder of its own")
        path.parent.mkdir(parents=True, exist_ok=True)
        text = f"---\n{front_matter(page)}---\n\n{markdown_of(page)}"
        file = NamedTemporaryFile("w", dir=path.parent, prefix=PART, delete=False, encoding="utf-8")  # noqa: SIM115
        try:
            with file:
                file.write(text)
            Path(file.name).chmod(0o644)
            Path(file.name).replace(path)
        finally:
            Path(file.name).unlink(missing_ok=True)

    def close(self) -> None:
        """Take out what an earlier export has left, of pages that are not there any more, where all were written."""
        if self._begun is None:
            return
        for part in self._folder.rglob(f"{PART}*"):
            part.unlink(missing_ok=True)  # of an export that was killed
        for path in self._folder.rglob("*.md"):
            if path.stat().st_mtime_ns < self._begun and self._is_ours(path):
                path.unlink(missing_ok=True)

    def _is_ours(self, path: Path) -> bool:
        """Whether a file was written for a page of this domain."""
        url = _url_in(path)
        return (
            url is not None and authority_of(Url(url)) == self._authority and self._folder / path_of(Url(url)) == path
        )


def _instant_in(folder: Path) -> int:
    """Now, by the clock that dates the files of a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    with NamedTemporaryFile(dir=folder, prefix=PART) as file:
        return Path(file.name).stat().st_mtime_ns


def _url_in(path: Path) -> str | None:
    """The URL at the head of a file that was written for a page; None for any other file, and where there is none."""
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            head = [file.readline(MOST_HEAD) for _ in range(2)]
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return None
    if head[0] != "---\n" or not head[1].startswith("url: "):
        return None
    try:
        url = str(yaml.safe_load(head[1])["url"])
    except yaml.YAMLError:
        return None
    return url if url.startswith(("http://", "https://")) else None


def front_matter(page: TakenPage) -> str:
    """What is known of a page, as YAML."""
    names = ("url", "title", "language", "version", "version_at", "seen_at", "changed_at", "importance")
    known = {name: getattr(page, name) for name in names}
    known["digest"] = page.digest.hex() if page.digest is not None else None
    return str(yaml.safe_dump(known, sort_keys=False, allow_unicode=True, width=10_000))


def path_of(url: Url) -> Path:
    """The file of a page beneath the folder: its path, made safe; two pages have never the same.

    A name that had to be changed, and one with a query, has a part of the page's key in it.
    """
    parts = urlsplit(url)
    *folders, last = [unquote(part, errors="replace") for part in parts.path.split("/")[1:]]
    safe, name = [_folder(_safe(part)) for part in folders], _safe(last or INDEX)
    if [*safe, name] != [*folders, last or INDEX] or last == INDEX or parts.query:
        name = f"{name}~{key_of(url).hex()[:16]}"
    return Path(*safe, f"{name}.md")


def _folder(name: str) -> str:
    """The name of a folder, which no page's file can have."""
    return f"{name}~" if name.endswith(".md") else name


def _safe(part: str) -> str:
    """A name that is one on any system, and hides nothing."""
    name = _UNSAFE.sub("_", part).strip(". ") or "_"
    while len(name.encode()) > NAME_BYTES:
        name = name[: len(name) - max(1, (len(name.encode()) - NAME_BYTES) // 4)]
    return name
