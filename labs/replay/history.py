"""A recorded history of a site: the bytes of each page at each instant, and when its own text changed.

A history is a folder, or a .tar archive of one, with `events.json` and `blobs/`. `events.json` contains `start` (an ISO
instant), `days`, and `events` in order: [seconds since the start, path, name of a blob, or null if the page is
deleted]. Files that are not HTML, such as a feed, are served but are not pages: nothing is measured on them.
"""

import json
import mimetypes
import re
import tarfile
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from itertools import chain, groupby, pairwise
from operator import itemgetter
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import unquote, urljoin

import lxml.etree
import lxml.html
import numpy as np

DAY_S = 86_400
LANGUAGE = re.compile(r"([a-z]{2}(?:-[a-z]{2})?)/")  # the first folder of a translated page
HREF = re.compile(rb"""href\s*=\s*["']([^"'#?]*)""", re.IGNORECASE)
TEMPLATE_SHARE = 0.3  # a line that this share of the pages of a language has belongs to the template
MIN_SHARING = 3  # pages that share a line of the template
ROUNDS = 100  # of power iteration

XML_DECLARATION = re.compile(rb"\s*<\?xml[^>]*\?>")

Lines = tuple[str, ...]


class UnreadableHistory(Exception):
    """A folder or an archive without a valid history. The message says what is wrong."""


@dataclass(frozen=True, slots=True)
class PageLife:
    """When a page existed and when its own text changed, in days.

    born: first appearance.  gone: final deletion; inf if there is none.  changes: when the text changed or the page
    returned.
    """

    path: str
    born: float
    gone: float
    changes: tuple[float, ...]


class SiteHistory:
    """The history in a folder."""

    def __init__(self, folder: Path) -> None:
        self._blobs = folder / "blobs"
        self._states: defaultdict[str, list[tuple[float, str | None]]] = defaultdict(list)
        try:
            record = json.loads((folder / "events.json").read_text(encoding="utf-8"))
            self.start = datetime.fromisoformat(record["start"])
            self.days: int = record["days"]
            for seconds, path, blob in record["events"]:
                self._states[path].append((seconds / DAY_S, blob))
        except OSError as error:
            raise UnreadableHistory(f"{folder} has no readable events.json: {error.strerror}") from error
        except (ValueError, KeyError, TypeError) as error:
            raise UnreadableHistory(
                f"{folder}/events.json is not in the format of labs/replay/history.py: {error!r}"
            ) from error
        self._lines: dict[str, tuple[Lines, Lines]] = {}
        self._check(folder)

    def _check(self, folder: Path) -> None:
        there = {blob.name for blob in self._blobs.iterdir()} if self._blobs.is_dir() else set[str]()
        for path, states in self._states.items():
            if any(before[0] > after[0] for before, after in pairwise(states)):
                raise UnreadableHistory(f"{folder}/events.json: the events of {path} are not in order")
            lost = next((blob for _, blob in states if blob is not None and blob not in there), None)
            if lost is not None:
                raise UnreadableHistory(f"{folder}/blobs has no {lost}, which events.json names for {path}")
        if not self.live(0):
            raise UnreadableHistory(f"{folder}/events.json has no page at second 0, so a replay cannot begin")

    def blob_at(self, path: str, day: float) -> str | None:
        """Return the name of the page's blob at that time, or None if there is no such page."""
        state = self.state_at(path, day)
        return None if state is None else state[1]

    def state_at(self, path: str, day: float) -> tuple[float, str | None] | None:
        """Return when the page got its current bytes, and their blob; None if the path was never a page so far."""
        states = self._states.get(path, [])
        n = bisect_right(states, day, key=lambda state: state[0])
        return states[n - 1] if n else None

    def body(self, blob: str) -> bytes:
        """Return the bytes of a blob."""
        return (self._blobs / blob).read_bytes()

    def live(self, day: float) -> list[str]:
        """Return the paths of the pages that exist at that time."""
        return sorted(path for path in self._states if is_page(path) and self.blob_at(path, day) is not None)

    @cached_property
    def pages(self) -> Mapping[str, PageLife]:
        """Return the life of each page."""
        return {path: self._life(path, states) for path, states in self._states.items() if is_page(path)}

    def _life(self, path: str, states: list[tuple[float, str | None]]) -> PageLife:
        changes = []
        for (_, before), (at, after) in pairwise(states):
            if before is None or after is None or self._own_text(path, before) != self._own_text(path, after):
                changes.append(at)
        last, blob = states[-1]
        gone = last if blob is None else float("inf")
        return PageLife(path, states[0][0], gone, tuple(at for at in changes if at < gone))

    def own_text(self, path: str, day: float) -> str | None:
        """Return the page's own text at that time, or None if there is no such page."""
        blob = self.blob_at(path, day)
        return None if blob is None else self._own_text(path, blob)

    def own_targets(self, path: str, day: float) -> Lines:
        """Return the targets of the page's own links and images at that time."""
        blob = self.blob_at(path, day)
        template = self._template[language(path)]
        return () if blob is None else tuple(each for each in self._read(blob)[1] if each not in template)

    def _own_text(self, path: str, blob: str) -> str:
        """Return a page's lines without those of the template. White space, such as line ends, does not count."""
        template = self._template[language(path)]
        return "".join(line for line in self._read(blob)[0] if line not in template).replace(" ", "")

    def _read(self, blob: str) -> tuple[Lines, Lines]:
        """Return the lines of a page's visible text, and the targets of its links and images, in order."""
        if blob not in self._lines:
            self._lines[blob] = read_page(self.body(blob))
        return self._lines[blob]

    @cached_property
    def _template(self) -> Mapping[str, frozenset[str]]:
        """Return the lines and targets of the template, by language: those that many pages share at any time."""
        found: defaultdict[str, set[str]] = defaultdict(set)
        sharing: defaultdict[str, Counter[str]] = defaultdict(Counter)  # number of pages with each line or target
        there: dict[str, str] = {}
        events = [(at, path, blob) for path, states in self._states.items() if is_page(path) for at, blob in states]
        for _, edits in groupby(sorted(events, key=itemgetter(0)), key=itemgetter(0)):
            appeared: defaultdict[str, set[str]] = defaultdict(set)
            for _, path, blob in edits:
                name = language(path)
                sharing[name].subtract({*chain(*self._read(there.pop(path)))} if path in there else ())
                if blob is not None:
                    there[path] = blob
                    lines = {*chain(*self._read(blob))}
                    sharing[name].update(lines)
                    appeared[name] |= lines
            sizes = Counter(map(language, there))
            for name, new in appeared.items():
                least = max(MIN_SHARING, TEMPLATE_SHARE * sizes[name])
                found[name].update(line for line in new if sharing[name][line] >= least)
        return defaultdict(frozenset, {name: frozenset(lines) for name, lines in found.items()})

    @cached_property
    def importance(self) -> Mapping[str, float]:
        """Return the PageRank of each initial page, by the links of that day; the mean is 1."""
        pages = self.live(0)
        place = {path: n for n, path in enumerate(pages)}
        links = [sorted({place[to] for to in self._targets(path) if to in place}) for path in pages]
        rank = np.ones(len(pages))
        for _ in range(ROUNDS):
            received = np.zeros(len(pages))
            for n, found in enumerate(links):
                received[found] += rank[n] / (len(found) + 1)  # the rest goes to all pages equally
            rank = received + (len(pages) - received.sum()) / len(pages)
        return dict(zip(pages, rank.tolist(), strict=True))

    def _targets(self, path: str) -> Iterator[str]:
        for href in HREF.findall(self.body(self.blob_at(path, 0) or "")):
            found = urljoin(f"http://site/{path}", unquote(href.decode("latin-1")))
            if found.startswith("http://site/"):
                page = self.page_of(found.removeprefix("http://site"), 0)
                if page is not None:
                    yield page

    def page_of(self, url_path: str, day: float) -> str | None:
        """Return the path of the page that a server shows for a URL's path; None if there never was one."""
        path = self.file_of(url_path, day)
        return path if path is not None and is_page(path) else None

    def file_of(self, url_path: str, day: float) -> str | None:
        """Return the path of the file that a server shows, whether or not it is a page; None if there never was one.

        A folder shows its index.html, and `X` shows `X.html`. Of several, the first existing one counts, else the first
        that existed before.
        """
        path = url_path.removeprefix("/")
        names = [f"{path}index.html"] if not path or path.endswith("/") else [path, f"{path}.html"]
        met = [(name, state) for name in names if (state := self.state_at(name, day)) is not None]
        return next((name for name, (_, blob) in met if blob is not None), met[0][0] if met else None)


def content_type(path: str) -> str:
    """Return the media type of a file by its name; without a charset, since each page declares its own."""
    return "application/atom+xml" if path.endswith(".atom") else mimetypes.guess_type(path)[0] or "text/html"


def is_page(path: str) -> bool:
    """Return whether a file is a page: HTML by its name, or without a suffix."""
    return content_type(path) in {"text/html", "application/xhtml+xml"}


def language(path: str) -> str:
    """Return the language of a page by its folder, or an empty string."""
    found = LANGUAGE.match(path)
    return found[1] if found else ""


def read_page(body: bytes) -> tuple[Lines, Lines]:
    """Return the lines of the visible text of an HTML page, in the charset that it declares, and the targets of links.

    The second contains images, too. Each target is marked by a space, so that it is never equal to a line.
    """
    try:
        root = lxml.html.fromstring(XML_DECLARATION.sub(b"", body, count=1))  # with a declaration, lxml assumes UTF-8
    except lxml.etree.ParserError:  # an empty document
        return (), ()
    lxml.etree.strip_elements(root, "script", "style", lxml.etree.Comment, with_tail=False)
    for link in root.xpath("//a[@hreflang][contains(@rel, 'alternate')]"):  # to the page in another language
        link.tail = link.tail if any(map(str.isalnum, link.tail or "")) else "\n"  # separators between such links
        link.drop_tree()
    targets = tuple(f" {each}" for each in root.xpath("//a/@href | //img/@src"))
    return tuple(_spaced(root.text_content().split("\n"))), targets


def _spaced(lines: Iterable[str]) -> Iterator[str]:
    return filter(None, (" ".join(line.split()) for line in lines))


@contextmanager
def opened_history(path: Path) -> Iterator[SiteHistory]:
    """Read a history from a folder, or from an archive that is unpacked until the block ends."""
    if path.is_dir():
        yield SiteHistory(path)
        return
    with TemporaryDirectory() as folder:
        try:
            with tarfile.open(path) as archive:
                archive.extractall(folder, filter="data")
        except (OSError, tarfile.TarError) as error:
            raise UnreadableHistory(f"{path} is neither a folder nor a readable .tar archive: {error}") from error
        found = next(Path(folder).rglob("events.json"), None)
        if found is None:
            raise UnreadableHistory(f"{path} contains no events.json")
        yield SiteHistory(found.parent)
