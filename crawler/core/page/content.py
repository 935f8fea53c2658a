"""Extraction of a body's text, links and robots directives. Any bytes can be read."""

import re
from dataclasses import dataclass, replace
from enum import StrEnum

from selectolax.lexbor import LexborHTMLParser

from crawler.core.http.urls import Url, normalize_url, normalize_urls
from crawler.core.page.blocks import extract_text_and_main, remove_boilerplate
from crawler.core.page.charset import decode_body
from crawler.core.page.document import Document, DocumentReader, PickledAsCall, collapse_lines, read_json
from crawler.core.page.html import Markup, get_base_url, iter_ancestors, parse_html
from crawler.core.page.lists.xml_text import read_xml
from crawler.core.page.media_type import MediaKind, detect_kind
from crawler.core.page.script_signs import ScriptSign, find_script_signs

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


@dataclass(frozen=True, slots=True)
class PageContent(PickledAsCall):
    """The content of a body.

    text: all visible text, one block per line, with whitespace collapsed.
    main: the text without boilerplate (`extract_text_and_main`) or, of a feed, without the file's own metadata. Both
    are empty for a body without readable text, such as an image or a damaged PDF.
    images_and_meta: the addresses and alternative texts of the images, and the descriptions (META_SELECTOR).
    links: distinct, in page order, without those marked nofollow, and with the target of the refresh.
    canonical: the target of rel=canonical.  refresh: the target of the Refresh header, else of a meta refresh.
    is_instant_refresh: whether the refresh has a delay below one second and acts as a redirect.
    feeds: the targets of link elements that name a feed.  charset: a Python codec; empty if nothing was decoded.
    noindex, nofollow: the page's directives, from its head or its HTTP header.
    html_end, has_password_field: for web pages; CLOSED and False for other bodies.
    script_signs: the signs that scripts write a part of the page.
    Invariant: no string contains a NUL or a lone surrogate.
    """

    title: str = ""
    text: str = ""
    main: str = ""
    images_and_meta: str = ""
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
    script_signs: tuple[ScriptSign, ...] = ()


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
    header_refresh = _parse_refresh(refresh or "", base=url, url=url)
    if reader is None and detect_kind(body, content_type) == "html":
        content = _read_html(body, markup or parse_html(body, content_type), url=url, header_refresh=header_refresh)
    else:
        content = _read_other(body, url=url, content_type=content_type, reader=reader)
        links = tuple(dict.fromkeys((*content.links, *filter(None, header_refresh[:1]))))
        content = replace(content, links=links, refresh=header_refresh[0], is_instant_refresh=header_refresh[1])
    directives = _parse_robots_directives(robots_tag or "")
    noindex, nofollow = content.noindex or "noindex" in directives, content.nofollow or "nofollow" in directives
    return replace(content, noindex=noindex, nofollow=nofollow)


def _read_html(body: bytes, markup: Markup, *, url: Url, header_refresh: tuple[Url | None, bool]) -> PageContent:
    """Return the content of a web page.

    header_refresh: the refresh in the HTTP header, which takes precedence over the page's own.
    """
    tree = markup.tree
    base = get_base_url(tree, url)
    head = _read_head(tree, base, url)
    if header_refresh[0] is not None:
        head = replace(head, refresh=header_refresh[0], is_instant_refresh=header_refresh[1])
    text, main = extract_text_and_main(tree)
    attributes = (node.attrs for node in tree.css(_LINKS))
    hrefs = [each.get("href") or each.get("src") or "" for each in attributes]
    links = normalize_urls([*hrefs, *filter(None, [head.refresh])], base=base)
    attributes = (node.attrs for node in tree.css(f"img,{META_SELECTOR}"))
    images_and_meta = [" ".join(each.get(name) or "" for name in ("content", "alt", "src")) for each in attributes]
    language = (tree.root.attrs.get("lang") or tree.root.attrs.get("xml:lang") or "") if tree.root is not None else ""
    return replace(
        head,
        text=text,
        main=main,
        images_and_meta="\n".join(images_and_meta),
        links=links,
        language=language.strip().replace("\0", "")[:MAX_LANGUAGE_CHARS],
        charset=markup.charset,
        kind="html",
        html_end=detect_html_end(markup.source),
        has_password_field=has_password_field_in(tree),
        script_signs=find_script_signs(body, markup, text=text, main=main, links=links, base=base),
    )


def extract_main_html(body: bytes, content_type: str, *, url: Url) -> str:
    """Return the main content of a web page as HTML with absolute addresses, or "" for a page without a body.

    Raises only MemoryError. A page built to be too expensive to parse is read as far as `extract_content` reads it.
    """
    tree = parse_html(body, content_type).tree
    base = get_base_url(tree, url)
    remove_boilerplate(tree)
    for node in tree.css("a[href],img[src]"):
        name = "src" if node.tag == "img" else "href"
        node.attrs[name] = normalize_url(node.attrs.get(name) or "", base=base) or ""
    return (tree.body.html or "") if tree.body is not None else ""


def detect_html_end(source: str) -> HtmlEnd:
    """Return how a web page ends. Comments of caches and proxies may follow its end."""
    tail = source[-TAIL_CHARS:].rstrip()
    if tail.rfind("<") > tail.rfind(">"):
        return HtmlEnd.TRUNCATED
    return HtmlEnd.CLOSED if _CLOSED.search(tail) else HtmlEnd.OPEN


def has_password_field_in(tree: LexborHTMLParser) -> bool:
    """Return whether a page has a password field, a sign of a login form in any language."""
    return tree.css_first("input[type=password i]") is not None


_CLOSED = re.compile(r"(?i)</(?:html|body)\s*>")
# The descriptions that a page gives to search engines and link previews.
META_SELECTOR = 'meta[name="description" i][content],meta[name="keywords" i][content],meta[property^="og:" i][content]'

_REFRESH = re.compile(r"(?is)\s*(\d*)(?:\.\d*)?\s*(?:[;,]\s*|\s+)(?:url\s*=\s*)?+(?:\"([^\"]*)|'([^']*)|(.*))")
_LINKS = (
    "a[href]:not([rel~=nofollow i]),area[href]:not([rel~=nofollow i]),iframe[src],frame[src],"
    # The other pages of a paginated list. Not rel=alternate: that is the same page in another form.
    "link[href][rel~=next i],link[href][rel~=prev i]"
)
# Directives with a value after the colon; any other word before a colon is the name of a crawler.
_NAMED_DIRECTIVES = ("unavailable_after", "max-snippet", "max-image-preview", "max-video-preview")


def _read_head(tree: LexborHTMLParser, base: Url, url: Url) -> PageContent:
    """Return a PageContent with what the head of a web page says, and nothing else."""
    title: str | None = None
    canonical = refresh = None
    is_instant_refresh = False
    directives: frozenset[str] = frozenset()
    feeds: list[str] = []
    for node in tree.css("title,meta[content],link[href]"):
        attributes, tag = node.attrs, node.tag
        if tag == "title":
            if title is None and not any(ancestor.tag == "svg" for ancestor in iter_ancestors(node)):
                title = " ".join(node.text().split()).replace("\0", "")[:MAX_TITLE_CHARS]
        elif tag == "link":
            relations = (attributes.get("rel") or "").lower().split()
            if "alternate" in relations and (attributes.get("type") or "").strip().lower() in FEED_TYPES:
                feeds.append(attributes.get("href") or "")
            if canonical is None and "canonical" in relations:
                canonical = normalize_url(attributes.get("href") or "", base=base)
        elif (attributes.get("name") or "").strip().lower() == "robots":
            directives |= _parse_robots_directives(attributes.get("content") or "")
        elif refresh is None and (attributes.get("http-equiv") or "").strip().lower() == "refresh":
            # A refresh in noscript leads browsers without scripts to a page that asks for a browser with scripts.
            applies = not any(ancestor.tag == "noscript" for ancestor in iter_ancestors(node))
            text = attributes.get("content") or "" if applies else ""
            refresh, is_instant_refresh = _parse_refresh(text, base=base, url=url)
    return PageContent(
        title=title or "",
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
