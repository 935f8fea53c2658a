"""Extract the content of a body: its text, its links and its directives for crawlers. Any bytes can be read."""

import re
from dataclasses import dataclass, replace
from enum import StrEnum

from selectolax.lexbor import LexborHTMLParser

from crawler.core.http.urls import Url, normalize_url, normalize_urls
from crawler.core.page.blocks import extract_text_and_main, remove_boilerplate
from crawler.core.page.charset import decode_body
from crawler.core.page.document import Document, DocumentReader, PickledAsCall, collapse_lines, read_json
from crawler.core.page.html import Markup, get_base_url, iter_ancestors, parse_html
from crawler.core.page.lists.feeds import read_xml
from crawler.core.page.media_type import MediaKind, detect_kind
from crawler.core.page.script_signs import ScriptSign, find_script_signs

MAX_TITLE_CHARS = 1024
TAIL_CHARS = 1024
FEED_TYPES = frozenset({"application/rss+xml", "application/atom+xml", "application/rdf+xml"})
MAX_FEEDS = 8  # of one page
MAX_LANGUAGE_CHARS = 35  # RFC 5646, 4.4.1


class HtmlEnd(StrEnum):
    """The way in which the body of a web page ends."""

    CLOSED = "closed"  # with a closing tag of html or body
    OPEN = "open"  # without one, which the standard allows
    TRUNCATED = "torn"  # within a tag, which the standard does not allow


@dataclass(frozen=True, slots=True)
class PageContent(PickledAsCall):
    """The content of a body.

    text: all that a reader sees, one block per line, whitespace collapsed.  main: the text without menus, footers and
    the like, or all of it where these cannot be told.  Both are empty for a body without text, or that could not be
    read as a whole: then the digest of the bytes is what counts.
    images_and_meta: names and texts of its images, and the descriptions in its head.
    links: distinct, in order of the page, without those marked nofollow.  canonical, refresh: targets that the head
    names; refresh is also among the links.  is_instant_refresh: the refresh comes at once, as a redirect.
    feeds: of the site, that the head names; not among the links.
    noindex, nofollow: of the page, by its head or its HTTP header.
    html_end, has_password_field: of a web page; CLOSED and False for other bodies.
    script_signs: that the scripts of a web page write a part of it.
    Always: no NUL, no lone surrogate in any string.
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
    """Read a body of any kind. Never raises, whatever the bytes; but what a given reader raises.

    url: where it was found, for its relative links.  content_type, robots_tag, refresh: the HTTP headers, as they
    came.
    markup: of a web page, where it was parsed already.  reader: of this body, which then is no web page.
    A page that is made to be too costly to parse is read only as far as that is affordable (page/html).
    """
    header_refresh = _parse_refresh(refresh or "", base=url, url=url)
    if reader is None and detect_kind(body, content_type) == "html":
        content = _read_html(body, markup or parse_html(body, content_type), url=url, header_refresh=header_refresh)
    else:
        content = _read_other(body, url=url, content_type=content_type, reader=reader)
        links = tuple(dict.fromkeys((*content.links, *filter(None, header_refresh[:1]))))
        content = replace(content, links=links, refresh=header_refresh[0], is_instant_refresh=header_refresh[1])
    directives = _parse_robots_directives(robots_tag or "")
    if not directives:
        return content
    noindex, nofollow = content.noindex or "noindex" in directives, content.nofollow or "nofollow" in directives
    return replace(content, noindex=noindex, nofollow=nofollow)


def _read_html(body: bytes, markup: Markup, *, url: Url, header_refresh: tuple[Url | None, bool]) -> PageContent:
    """The content of a web page.

    header_refresh: where the server says that it leads, which comes before what the page says.
    """
    tree = markup.tree
    base = get_base_url(tree, url)
    head = _read_head(tree, base, url)
    if header_refresh[0] is not None:
        head = replace(head, refresh=header_refresh[0], is_instant_refresh=header_refresh[1])
    text, main = extract_text_and_main(tree)
    hrefs = [
        attributes.get("href") or attributes.get("src") or ""
        for attributes in (node.attrs for node in tree.css(_LINKS))
    ]
    links = normalize_urls([*hrefs, *filter(None, [head.refresh])], base=base)
    images_and_meta = (node.attrs for node in tree.css(f"img,{META_SELECTOR}"))
    language = (tree.root.attrs.get("lang") or tree.root.attrs.get("xml:lang") or "") if tree.root is not None else ""
    return replace(
        head,
        text=text,
        main=main,
        images_and_meta="\n".join(
            " ".join(each.get(name) or "" for name in ("content", "alt", "src")) for each in images_and_meta
        ),
        links=links,
        language=language.strip().replace("\0", "")[:MAX_LANGUAGE_CHARS],
        charset=markup.charset,
        kind="html",
        html_end=detect_html_end(markup.source),
        has_password_field=has_password_field_in(tree),
        script_signs=find_script_signs(body, markup, text=text, main=main, links=links, base=base),
    )


def extract_main_html(body: bytes, content_type: str, *, url: Url) -> str:
    """The main content of a web page as HTML, without what frames it, with absolute links; empty for one without any.

    Never raises, whatever the bytes; a page that is made to be too costly is read as far as `extract_content` reads it.
    """
    tree = parse_html(body, content_type).tree
    base = get_base_url(tree, url)
    remove_boilerplate(tree)
    for node in tree.css("a[href],img[src]"):
        name = "src" if node.tag == "img" else "href"
        node.attrs[name] = normalize_url(node.attrs.get(name) or "", base=base) or ""
    return (tree.body.html or "") if tree.body is not None else ""


def detect_html_end(source: str) -> HtmlEnd:
    """The way in which a web page ends. Comments of caches and proxies may come after its end."""
    tail = source[-TAIL_CHARS:].rstrip()
    if tail.rfind("<") > tail.rfind(">"):
        return HtmlEnd.TRUNCATED
    return HtmlEnd.CLOSED if _CLOSED.search(tail) else HtmlEnd.OPEN


def has_password_field_in(tree: LexborHTMLParser) -> bool:
    """Whether a page has a field for a password; that is markup, in whatever language the page is."""
    return tree.css_first("input[type=password i]") is not None


_CLOSED = re.compile(r"(?i)</(?:html|body)\s*>")
# The descriptions that a page gives of itself to search engines and link previews.
META_SELECTOR = 'meta[name="description" i][content],meta[name="keywords" i][content],meta[property^="og:" i][content]'

_REFRESH = re.compile(r"(?is)\s*(\d*)(?:\.\d*)?\s*(?:[;,]\s*|\s+)(?:url\s*=\s*)?+(?:\"([^\"]*)|'([^']*)|(.*))")
_LINKS = (
    "a[href]:not([rel~=nofollow i]),area[href]:not([rel~=nofollow i]),iframe[src],frame[src],"
    # The rest of a list that goes on over many pages. Not rel=alternate: that is the same page in another form.
    "link[href][rel~=next i],link[href][rel~=prev i]"
)
_NAMED_DIRECTIVES = ("unavailable_after", "max-snippet", "max-image-preview", "max-video-preview")


def _read_head(tree: LexborHTMLParser, base: Url, url: Url) -> PageContent:
    """What the head of a web page says."""
    title: str | None = None
    canonical = refresh = None
    is_instant_refresh = False
    directives: frozenset[str] = frozenset()
    feeds: list[str] = []
    for node in tree.css("title,meta[content],link[href]"):
        attributes = node.attrs
        tag = node.tag
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
            # Within noscript it is for browsers that run no script, to be told to get one that does.
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
    """Where a refresh leads, None for the page itself and for nowhere; and whether it does so at once."""
    match = _REFRESH.match(text)
    target = normalize_url((match[2] or match[3] or match[4] or "").strip(), base=base) if match else None
    if match is None or target in {None, url}:
        return None, False
    return target, match[1] != "" and not match[1].strip("0")


def _parse_robots_directives(directives: str) -> frozenset[str]:
    """The directives noindex and nofollow that hold for everybody; those after "otherbot:" hold for that one only."""
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
    """The content of a body that is no web page. Never raises, but what a given reader raises."""
    kind = detect_kind(body, content_type) if reader is None else "text"
    charset, document = "", Document()
    if reader is not None:
        document = reader(body, url=url, content_type=content_type)
    elif kind == "pdf":
        from crawler.core.page.pdf import read_pdf  # noqa: PLC0415  its library takes long to load, and PDFs are rare

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
