"""Extraction of a body's text, links and robots directives. Any bytes can be read."""

import re
from array import array
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from itertools import compress
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from crawler.core.http.urls import Url, normalize_url, normalize_urls
from crawler.core.page.charset import decode_body
from crawler.core.page.compiled_scan import JoinedLines
from crawler.core.page.document import Document, DocumentReader, collapse_lines, join_lines, read_json
from crawler.core.page.html import Markup, parse_html, resolve_base
from crawler.core.page.lists.xml_text import read_xml
from crawler.core.page.media_type import MediaKind, detect_kind
from crawler.core.page.metadata import read_metadata
from crawler.core.page.scan import ALL_MARKS, BOILERPLATE, PASSWORD_FIELD, PREFORMATTED, PageScan, Record, RecordKind
from crawler.core.page.script_signs import ScriptSign, find_script_signs, has_scripts

MIN_MAIN_PERCENT = 25  # of the whole text; if less would remain without boilerplate, no line counts as boilerplate
MAX_TITLE_CHARS = 1024
TAIL_CHARS = 1024  # at the end of a web page, searched for its closing tags
FEED_TYPES = frozenset({"application/rss+xml", "application/atom+xml", "application/rdf+xml"})
MAX_FEEDS = 8  # per page
MAX_LANGUAGE_CHARS = 35  # RFC 5646, 4.4.1


class HtmlEnd(StrEnum):
    """How the body of a web page ends."""

    CLOSED = "closed"  # with a closing tag of html or body
    OPEN = "open"  # without a closing tag, which the standard allows
    TRUNCATED = "torn"  # inside a tag, which the standard does not allow


class PageContent(Struct, frozen=True):
    """The content of a body.

    text: all visible text, one block per line, with whitespace collapsed.
    main: the text without boilerplate (`join_scanned_lines`) or, of a feed, without the file's own metadata. Both
    are empty for a body without readable text, such as an image or a damaged PDF.
    links: distinct, in page order, without those marked nofollow, and with the target of the refresh.
    canonical: the target of rel=canonical.  refresh: the target of the Refresh header, else of a meta refresh.
    is_instant_refresh: whether the refresh has a delay below one second and acts as a redirect.
    feeds: the targets of link elements that name a feed.  charset: a Python codec; empty if nothing was decoded.
    noindex, nofollow: the page's directives, from its head or its HTTP header.
    html_end, has_password_field: for web pages; CLOSED and False for other bodies.
    is_scripted: whether a browser executes anything when it loads the page.
    script_signs: the signs that scripts write a part of the page.
    reading: the content text, what a reader would call the page, for search and export; see main_content.
    confidence: how certain the choice of that content is, 0 to 1; 1 for bodies that are not web pages.
    line_ranges: the lines of the scan that are the content: first, end, first, end, and so on.
    metadata: what the page says about itself, see `read_metadata`.
    Invariant: no string contains a NUL or a lone surrogate.
    """

    title: str = ""
    text: str = ""
    main: str = ""
    links: tuple[Url, ...] = ()
    feeds: tuple[Url, ...] = ()
    canonical: Url | None = None
    refresh: Url | None = None
    is_instant_refresh: bool = False
    noindex: bool = False
    nofollow: bool = False
    language: str = ""
    charset: str = ""
    kind: MediaKind = "binary"
    html_end: HtmlEnd = HtmlEnd.CLOSED
    has_password_field: bool = False
    is_scripted: bool = False
    script_signs: tuple[ScriptSign, ...] = ()
    reading: str = ""
    confidence: float = 1.0
    line_ranges: tuple[int, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)


class PageTexts(Struct, frozen=True):
    """The texts of a body, in UTF-8, for digests.

    described: the addresses and alternative texts of the images, and the descriptions (`is_description`).
    """

    lines: JoinedLines
    described: str = ""


def extract_content(
    body: bytes,
    *,
    url: Url,
    content_type: str,
    robots_tag: str | None = None,
    refresh: str | None = None,
    markup: Markup | None = None,
    reader: DocumentReader | None = None,
) -> PageContent:
    """Read a body of any kind. Raises only MemoryError and what `reader` raises.

    url: the base of relative links.  content_type, robots_tag, refresh: the HTTP headers, unchanged.
    markup: the parsed web page, if the caller has it already.  reader: reads this body instead, as a non-HTML document.
    A page built to be too expensive to parse is read only in part (see page/html.py).
    """
    if reader is None and detect_kind(body, content_type) == "html":
        markup = markup or parse_html(body, content_type)
        content, texts = read_html(body, markup, url=url, robots_tag=robots_tag, refresh=refresh)
        return replace(content, text=decode_text(texts.lines.whole), main=decode_text(texts.lines.main))
    content = _read_other(body, url=url, content_type=content_type, reader=reader)
    target, is_instant = _parse_refresh(refresh or "", base=url, url=url)
    links = tuple(dict.fromkeys((*content.links, *filter(None, [target]))))
    directives = _parse_robots_directives(robots_tag or "")
    return replace(
        content,
        links=links,
        refresh=target,
        is_instant_refresh=is_instant,
        noindex="noindex" in directives,
        nofollow="nofollow" in directives,
    )


def read_html(
    body: bytes, markup: Markup, *, url: Url, robots_tag: str | None = None, refresh: str | None = None
) -> tuple[PageContent, PageTexts]:
    """Return the content of a web page without its texts, and these.

    robots_tag, refresh: the HTTP headers. A refresh there takes precedence over the page's own.
    """
    scan = markup.head
    records = scan.records
    base = resolve_base(scan.base, url)
    head = _read_head(records, base, url)
    target, is_instant = _parse_refresh(refresh or "", base=url, url=url)
    directives = _parse_robots_directives(robots_tag or "")
    lines = join_lines_of_page(markup)
    is_scripted = has_scripts(body)
    anchors = compress(scan.anchors, scan.followed)
    links = normalize_urls([*anchors, *filter(None, [target or head.refresh])], base=base)
    content = replace(
        head,
        refresh=target or head.refresh,
        is_instant_refresh=is_instant if target else head.is_instant_refresh,
        noindex=head.noindex or "noindex" in directives,
        nofollow=head.nofollow or "nofollow" in directives,
        links=links,
        language=scan.language.strip().replace("\0", "")[:MAX_LANGUAGE_CHARS],
        charset=markup.charset,
        kind="html",
        html_end=detect_html_end(markup.source),
        has_password_field=bool(scan.signs & PASSWORD_FIELD),
        is_scripted=is_scripted,
        script_signs=find_script_signs(markup, records, lines, links=links, base=base) if is_scripted else (),
        metadata=read_metadata(records),
    )
    return content, PageTexts(lines, "\n".join(_describe_images_and_meta(records)))


def decode_text(text: bytes) -> str:
    return text.decode("utf-8", "surrogatepass")


def join_lines_of_page(markup: Markup) -> JoinedLines:
    """Return the lines of a page as texts."""
    compiled = markup.compiled
    return join_scanned_lines(markup.scan) if compiled is None else compiled.join_texts(MIN_MAIN_PERCENT)


def join_scanned_lines(scan: PageScan) -> JoinedLines:
    """Join the lines of a page: one line per text of a box."""
    text, main = join_lines(scan.texts), join_lines(scan.iter_main())
    if 100 * len(main) < MIN_MAIN_PERCENT * len(text):
        main = text
    restored = restore_line_breaks(scan, main)
    whole, encoded_main = text.encode("utf-8", "surrogatepass"), main.encode("utf-8", "surrogatepass")
    return JoinedLines(
        whole,
        whole if main == text else encoded_main,
        encoded_main if restored == main else restored.encode("utf-8", "surrogatepass"),
        compute_shape(text),
        len(text),
    )


def compute_shape(text: str) -> bytes:
    """Return the number of spaces on each line of a text, each of which separates two words."""
    return array("I", [line.count(" ") for line in text.split("\n")]).tobytes()


def restore_line_breaks(scan: PageScan, main: str) -> str:
    """Return the main text with the line breaks and the indentation of preformatted text.

    main: the main text that is compared; there, this whitespace does not count.
    """
    if not any(flags & PREFORMATTED for flags in set(scan.box_flags)):
        return main
    flags = [scan.box_flags[box] for box in scan.line_boxes]
    lines = [
        ALL_MARKS.sub("", marked).strip("\n") if flag & PREFORMATTED else text
        for text, marked, flag in zip(scan.texts, scan.marked, flags, strict=True)
    ]
    if main != join_lines(scan.texts):
        lines = list(compress(lines, [not flag & BOILERPLATE for flag in flags]))
    return join_lines(lines)


def _describe_images_and_meta(records: Sequence[Record]) -> Iterator[str]:
    for kind, values in records:
        if kind == RecordKind.IMAGE:
            src, alt, content = values
            yield f"{content} {alt} {src}"
        elif kind == RecordKind.META and is_description(values):
            yield f"{values[0]}  "


def is_description(meta: tuple[str, ...]) -> bool:
    """Return whether a meta element describes the page to search engines or in link previews."""
    _, name, _, group, _ = meta
    return name.lower() in {"description", "keywords"} or group.lower().startswith("og:")


def detect_html_end(source: str) -> HtmlEnd:
    """Return how a web page ends. Comments of caches and proxies may follow its end."""
    tail = source[-TAIL_CHARS:].rstrip()
    if tail.rfind("<") > tail.rfind(">"):
        return HtmlEnd.TRUNCATED
    return HtmlEnd.CLOSED if _CLOSED.search(tail) else HtmlEnd.OPEN


_CLOSED = re.compile(r"(?i)</(?:html|body)\s*>")
_REFRESH = re.compile(r"(?is)\s*(\d*)(?:\.\d*)?\s*(?:[;,]\s*|\s+)(?:url\s*=\s*)?+(?:\"([^\"]*)|'([^']*)|(.*))")
# Directives with a value after the colon; any other word before a colon is the name of a crawler.
_NAMED_DIRECTIVES = ("unavailable_after", "max-snippet", "max-image-preview", "max-video-preview")


def _read_head(records: Sequence[Record], base: Url, url: Url) -> PageContent:
    """Return a PageContent with what the head of a web page says, and nothing else."""
    title = ""
    canonical = refresh = None
    is_instant_refresh = False
    directives: frozenset[str] = frozenset()
    feeds: list[str] = []
    for kind, values in records:
        if kind == RecordKind.META:
            content, name, http_equiv, _, noscript = values
            if name.strip().lower() == "robots":
                directives |= _parse_robots_directives(content)
            elif refresh is None and http_equiv.strip().lower() == "refresh":
                # A refresh in noscript leads browsers without scripts to a page that asks for a browser with scripts.
                refresh, is_instant_refresh = _parse_refresh("" if noscript else content, base=base, url=url)
        elif kind == RecordKind.LINK:
            href, rel, media_type = values
            relations = rel.lower().split()
            if "alternate" in relations and media_type.strip().lower() in FEED_TYPES:
                feeds.append(href)
            if canonical is None and "canonical" in relations:
                canonical = normalize_url(href, base=base)
        elif kind == RecordKind.TITLE and not values[1]:
            title = values[0][:MAX_TITLE_CHARS]
    return PageContent(
        title=title,
        feeds=normalize_urls(feeds[:MAX_FEEDS], base=base),
        canonical=canonical,
        refresh=refresh,
        is_instant_refresh=is_instant_refresh,
        noindex="noindex" in directives,
        nofollow="nofollow" in directives,
    )


def _parse_refresh(text: str, *, base: Url, url: Url) -> tuple[Url | None, bool]:
    """Return the target of a refresh (None if it is missing, invalid or the page itself), and whether it is instant."""
    match = _REFRESH.match(text)
    target = normalize_url((match[2] or match[3] or match[4] or "").strip(), base=base) if match else None
    if match is None or target in {None, url}:
        return None, False
    return target, match[1] != "" and not match[1].strip("0")


def _parse_robots_directives(directives: str) -> frozenset[str]:
    """Return which of noindex and nofollow apply to all crawlers; all directives after a crawler's name are ignored."""
    names = set()
    for part in directives.lower().split(","):
        agent, colon, rest = part.partition(":")
        if colon and agent.strip() not in _NAMED_DIRECTIVES and agent.strip() != "*":
            break
        names.add((rest if colon else part).strip())
    if "none" in names:
        names |= {"noindex", "nofollow"}
    return frozenset(names & {"noindex", "nofollow"})


def _read_other(body: bytes, *, url: Url, content_type: str, reader: DocumentReader | None) -> PageContent:
    """Return the content of a body that is not a web page, or that `reader` reads."""
    kind = detect_kind(body, content_type) if reader is None else "text"
    charset, document = "", Document()
    if reader is not None:
        document = reader(body, url=url, content_type=content_type)
    elif kind == "pdf":
        from crawler.core.page.pdf import read_pdf  # noqa: PLC0415  its library loads slowly, and PDFs are rare

        document = read_pdf(body, url=url)
    elif kind != "binary":
        charset, source = decode_body(body, content_type, kind)
        if kind == "xml":
            document = read_xml(source, url=url)
        else:
            document = read_json(source) if kind == "json" else Document(text=collapse_lines(source.splitlines()))
    return PageContent(
        title=document.title[:MAX_TITLE_CHARS],
        text=document.text,
        main=document.text if document.main is None else document.main,
        links=document.links,
        charset=charset,
        kind=kind,
    )
