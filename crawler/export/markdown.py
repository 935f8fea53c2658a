"""Markdown of pages: the main content of each as headings, lists, tables and code, in files with a front matter."""

import re
from pathlib import Path
from tempfile import NamedTemporaryFile
from urllib.parse import unquote, urlsplit

import yaml
from html_to_markdown import ConversionOptions, convert
from html_to_markdown.exceptions import ConversionError

from crawler.core.http import Url, key_of
from crawler.core.page import kind_of, main_html
from crawler.store.report import TakenPage

NAME_BYTES = 120  # of a file, or of a folder; systems allow 255 with what is added
INDEX = "index"
_UNSAFE = re.compile(r"[^\w.~@=,+ -]")


def markdown_of(page: TakenPage) -> str:
    """The main content of a page as Markdown.

    Its main text where it is no web page, its body is not kept, or nothing else can be made of it, as of one that is
    nested too deep.
    """
    if page.body is None or kind_of(page.body, page.content_type) != "html":
        return page.text
    html = main_html(page.body, page.content_type, url=page.url)
    options = ConversionOptions(heading_style="atx", extract_metadata=False, autolinks=False)
    try:
        found = str(convert(html, options).content).strip()
    except ConversionError:
        found = ""
    return f"{found}\n" if found else page.text


class MarkdownFolder:
    """A file for each page, in folders as the site's paths are. A page that is not there any more loses its file."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def write(self, page: TakenPage) -> None:
        path = self._folder / path_of(page.url)
        if not page.is_there:
            path.unlink(missing_ok=True)
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        with NamedTemporaryFile("w", dir=path.parent, suffix=".part", delete=False, encoding="utf-8") as file:
            file.write(f"---\n{front_matter(page)}---\n\n{markdown_of(page)}")
        Path(file.name).chmod(0o644)
        Path(file.name).replace(path)

    def close(self) -> None:
        """Nothing is held back."""


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
