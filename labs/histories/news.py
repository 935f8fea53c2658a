"""A news-like site from Debian changelogs: real dates and texts of articles, of their updates, and of static pages.

An article is about a version of a package: it appears when the first Debian revision of that version was uploaded. Each
later revision updates it, most within days. Home, sections, an archive in numbered pages and an Atom feed list the
articles, newest first. The copyright notice of each package is a page that never changes.
"""

import gzip
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from html import escape
from operator import attrgetter
from pathlib import Path
from zlib import crc32

from labs.histories.writer import DAY_S, HistoryWriter

EVERY = 2  # every second package is used, so that the site has a few hundred pages
OLDER = timedelta(days=180)  # articles of this period before the start exist from the beginning
SECTIONS = 6
NEWEST, PER_PAGE = 15, 30  # entries of home, a section and the feed; entries of a page of the archive
PARAGRAPHS = 30  # maximum per text, so that no page takes much longer than others
RELATED = 3
HEAD = re.compile(r"(\S+) \(([^)]+)\) .*urgency=")
TAIL = re.compile(r" -- (.*) <.*>  (\w{3}, .+)")


@dataclass(frozen=True, slots=True)
class Revision:
    """An entry of a changelog. at: when it was uploaded."""

    at: datetime
    by: str
    paragraphs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Article:
    """An article. revisions: the text at first and its updates, in order of time."""

    package: str
    version: str
    revisions: Sequence[Revision]

    @property
    def born(self) -> datetime:
        return self.revisions[0].at

    @property
    def title(self) -> str:
        return f"{self.package} {self.version}"

    @property
    def path(self) -> str:
        return f"articles/{self.born:%Y/%m}/{re.sub(r'[^a-z0-9]+', '-', self.title.lower())}.html"

    @property
    def section(self) -> str:
        return f"section-{crc32(self.package.encode()) % SECTIONS + 1}"

    def until(self, at: datetime) -> Sequence[Revision]:
        return [revision for revision in self.revisions if revision.at <= at]


def write_news(folder: Path, *, changelogs: Path, start: datetime, days: int) -> str | None:
    """Write the site's history and return a line that describes it; None if there are no articles."""
    articles, notices = _read(changelogs, since=start - OLDER, until=start + timedelta(days=days))
    if not any(article.born <= start for article in articles):
        return None
    writer = HistoryWriter(folder)
    for package, paragraphs in notices.items():
        writer.put(0.0, f"about/{package}.html", _page(f"About {package}", [f"<p>{escape(p)}</p>" for p in paragraphs]))
    about = [f"<li>{_link(f'about/{package}.html', package)}</li>" for package in notices]
    writer.put(0.0, "about/index.html", _page("About", ["<ul>", *about, "</ul>"]))
    instants = sorted({r.at for article in articles for r in article.revisions if r.at > start})
    for at in [start, *instants]:
        day = (at - start).total_seconds() / DAY_S
        there = sorted((article for article in articles if article.born <= at), key=attrgetter("born"), reverse=True)
        for article in there:
            if at == start or any(revision.at == at for revision in article.revisions):
                writer.put(day, article.path, _article(article, there, at))
        for path, body in _lists(there, at):
            writer.put(day, path, body)
    return writer.close(start, days)


def _read(folder: Path, *, since: datetime, until: datetime) -> tuple[list[Article], Mapping[str, Sequence[str]]]:
    """Return the articles of those days, and the copyright notices of their packages."""
    entries: dict[tuple[str, str], Revision] = {}
    notices: dict[str, Sequence[str]] = {}
    for file in sorted(folder.glob("*/changelog*.gz")):
        for package, version, revision in _entries(gzip.decompress(file.read_bytes()).decode("utf-8", "replace")):
            if since <= revision.at < until and revision.paragraphs:
                entries[package, version] = revision
                notice = file.with_name("copyright")
                if package not in notices and notice.is_file():
                    notices[package] = _paragraphs(notice.read_text(encoding="utf-8", errors="replace").split("\n\n"))
    chosen = set(sorted({package for package, _ in entries})[::EVERY])
    revisions: defaultdict[tuple[str, str], list[Revision]] = defaultdict(list)
    for (package, version), revision in entries.items():
        if package in chosen:
            revisions[package, re.sub(r"^\d+:|-[^-]*$", "", version)].append(revision)
    articles = [Article(*key, sorted(found, key=attrgetter("at"))) for key, found in revisions.items()]
    return articles, {package: notices[package] for package in sorted(chosen & notices.keys())}


def _entries(text: str) -> Iterator[tuple[str, str, Revision]]:
    """Yield package, version and revision of each entry of a changelog that has a date."""
    head, lines = None, list[str]()
    for line in text.split("\n"):
        if found := HEAD.match(line):
            head, lines = found, []
        elif head is not None and (found := TAIL.match(line)):
            try:
                at = parsedate_to_datetime(found[2])
            except ValueError:  # an old entry, dated by hand
                continue
            at = at if at.tzinfo else at.replace(tzinfo=UTC)  # RFC 5322, section 3.3: -0000 is UTC of an unknown zone
            bullets = re.split(r"\n\s*[*+-] ", "\n" + "\n".join(lines))
            yield head[1], head[2], Revision(at.astimezone(UTC), found[1], _paragraphs(bullets))
        else:
            lines.append(line)


def _paragraphs(texts: Sequence[str]) -> tuple[str, ...]:
    return tuple(filter(None, (" ".join(text.split()) for text in texts)))[:PARAGRAPHS]


def _article(article: Article, there: Sequence[Article], at: datetime) -> str:
    first, *updates = article.until(at)
    lines = [f"<p>By {escape(first.by)}, {first.at:%d %B %Y, %H:%M}</p>"]
    for update in reversed(updates):
        lines += [
            f"<h2>Update of {update.at:%d %B %Y, %H:%M}</h2>",
            *(f"<p>{escape(p)}</p>" for p in update.paragraphs),
        ]
    lines += [f"<p>{escape(paragraph)}</p>" for paragraph in first.paragraphs]
    related = [old for old in there if old.package == article.package and old.born < article.born][:RELATED]
    links = [(f"about/{article.package}.html", f"About {article.package}"), *((old.path, old.title) for old in related)]
    return _page(article.title, [*lines, "<ul>", *(f"<li>{_link(*link)}</li>" for link in links), "</ul>"])


def _lists(there: Sequence[Article], at: datetime) -> Iterator[tuple[str, str]]:
    """Yield path and body of each list of the articles that are there, newest first."""
    yield "index.html", _page("News", _entries_of(there[:NEWEST]))
    for n in range(1, SECTIONS + 1):
        newest = [article for article in there if article.section == f"section-{n}"][:NEWEST]
        yield f"section-{n}.html", _page(f"Section {n}", _entries_of(newest))
    pages = [there[n : n + PER_PAGE] for n in range(0, len(there), PER_PAGE)]
    for n, articles in enumerate(pages, start=1):
        others = [_link(f"archive/{m}.html", f"Page {m}") for m in (n - 1, n + 1) if 1 <= m <= len(pages)]
        titles = [f"<li>{_link(article.path, article.title)} {article.born:%d %B %Y}</li>" for article in articles]
        yield f"archive/{n}.html", _page(f"Archive, page {n}", ["<ul>", *titles, "</ul>", *others])
    yield "feed.atom", _feed(there[:NEWEST], at)


def _entries_of(articles: Sequence[Article]) -> list[str]:
    return [
        line
        for article in articles
        for line in (
            f"<h2>{_link(article.path, article.title)}</h2>",
            f"<p>{escape(article.revisions[0].paragraphs[0][:200])}</p>",
        )
    ]


def _feed(articles: Sequence[Article], at: datetime) -> str:
    entries = "".join(
        f'<entry><title>{escape(article.title)}</title><link href="/{article.path}"/><id>urn:news:{article.path}</id>'
        f"<published>{article.born.isoformat()}</published><updated>{article.until(at)[-1].at.isoformat()}</updated>"
        "</entry>\n"
        for article in articles
    )
    return f'<feed xmlns="http://www.w3.org/2005/Atom">\n<title>News</title><id>urn:news</id>\n{entries}</feed>\n'


def _page(title: str, lines: Sequence[str]) -> str:
    places = [("index.html", "News"), *((f"section-{n}.html", f"Section {n}") for n in range(1, SECTIONS + 1))]
    menu = [
        f"<li>{_link(*place)}</li>" for place in (*places, ("archive/1.html", "Archive"), ("about/index.html", "About"))
    ]
    head = f'<title>{escape(title)}</title>\n<link rel="alternate" type="application/atom+xml" href="/feed.atom">'
    return "\n".join(
        [
            f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">{head}</head><body>',
            *("<nav><ul>", *menu, "</ul></nav>"),
            *("<main>", f"<h1>{escape(title)}</h1>", *lines, "</main>"),
            "<footer><p>News of packages, from their changelogs.</p></footer>",
            "</body></html>\n",
        ]
    )


def _link(path: str, text: str) -> str:
    return f'<a href="/{path}">{escape(text)}</a>'
