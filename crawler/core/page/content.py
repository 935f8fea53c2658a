"""What a body says: its text, its links and what it asks of crawlers. Any bytes can be read."""

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal, assert_never

from selectolax.lexbor import LexborHTMLParser, LexborNode

from crawler.core.http import Url, normalise, normalise_all
from crawler.core.page.blocks import blocks_of, main_of
from crawler.core.page.charset import decoded
from crawler.core.page.document import Document, collapsed
from crawler.core.page.feeds import read_xml
from crawler.core.page.html import Markup, parse_html
from crawler.core.page.json_text import read_json
from crawler.core.page.media_type import Kind, kind_of
from crawler.core.page.pdf import read_pdf

MAX_TITLE_CHARS = 1024
TAIL_CHARS = 1024
MAX_LANGUAGE_CHARS = 35  # RFC 5646, 4.4.1


class HtmlEnd(StrEnum):
    """How the body of a web page ends."""

    CLOSED = "closed"
    OPEN = "open"  # which the standard allows
    TORN = "torn"  # within a tag, which it does not


@dataclass(frozen=True, slots=True)
class PageContent:
    """A body, understood.

    text: all that a reader sees, one block per line, whitespace collapsed.  main: the same without what frames it
    (menus, footers), or all of it where that cannot be told.  Both are empty for what has no text, or none that could
    be read as a whole: then the digest of the bytes is what counts.
    beside: what the page shows and says of itself beside its text: its images, and what its head tells.
    links: distinct, in order of the page, without those that are marked nofollow.  canonical, refresh: what the page
    says of itself; refresh is also among the links.  is_passed_on: the refresh comes at once, as a redirect.
    noindex, nofollow: of the page, by its head or its HTTP header.
    ending, asks_password: of a web page; what else is read is closed, and asks nothing.
    Always: no NUL, no lone surrogate in any string.
    """

    title: str = ""
    text: str = ""
    main: str = ""
    beside: str = ""
    links: tuple[Url, ...] = ()
    canonical: Url | None = None
    refresh: Url | None = None
    is_passed_on: bool = False
    noindex: bool = False
    nofollow: bool = False
    language: str = ""
    charset: str = ""
    kind: Kind = "binary"
    html_end: HtmlEnd = HtmlEnd.CLOSED
    has_password_field: bool = False


def extract(
    body: bytes, *, url: Url, content_type: str, robots_tag: str | None = None, markup: Markup | None = None
) -> PageContent:
    """Read a body of any kind. Never raises, whatever the bytes.

    url: where it was found, for its relative links.  content_type, robots_tag: the HTTP headers, as they came.
    markup: of a web page, where it was parsed already.
    A page that is made to be too costly to parse is read only as far as that is affordable (html.py).
    """
    said = _robots(robots_tag) if robots_tag else frozenset()
    kind = kind_of(body, content_type)
    if kind != "html":
        charset, document = read_document(body, kind, url=url, content_type=content_type)
        return PageContent(
            title=document.title[:MAX_TITLE_CHARS],
            text=document.text,
            main=document.text if document.main is None else document.main,
            links=document.links,
            noindex="noindex" in said,
            nofollow="nofollow" in said,
            charset=charset,
            kind=kind,
        )
    markup = markup or parse_html(body, content_type)
    tree = markup.tree
    head = _head(tree, url)
    blocks = list(blocks_of(tree))
    text = collapsed(block for block, _ in blocks)
    said |= head.robots
    return PageContent(
        title=head.title,
        text=text,
        main=main_of(blocks, text),
        beside=_beside(tree),
        links=_links(tree, head),
        canonical=head.canonical,
        refresh=head.refresh,
        is_passed_on=head.is_passed_on,
        noindex="noindex" in said,
        nofollow="nofollow" in said,
        language=_language(tree),
        charset=markup.charset,
        kind=kind,
        html_end=html_end_of(markup.source),
        has_password_field=has_password_field_in(tree),
    )


_CLOSED = re.compile(r"(?i)</(?:html|body)\s*>")


def html_end_of(source: str) -> HtmlEnd:
    """Whether a web page ends as it should. Comments of caches and proxies may come after its end."""
    tail = source[-TAIL_CHARS:].rstrip()
    if tail.rfind("<") > tail.rfind(">"):
        return HtmlEnd.TORN
    return HtmlEnd.CLOSED if _CLOSED.search(tail) else HtmlEnd.OPEN


def has_password_field_in(tree: LexborHTMLParser) -> bool:
    """Whether there is a field for a password, which is markup in any language."""
    return tree.css_first("input[type=password i]") is not None


# What it says of itself to others.
TOLD = 'meta[name="description" i][content],meta[name="keywords" i][content],meta[property^="og:" i][content]'

_REFRESH = re.compile(r"(?is)\s*(\d*)(?:\.\d*)?\s*(?:[;,]\s*|\s+)(?:url\s*=\s*)?+(?:\"([^\"]*)|'([^']*)|(.*))")
_LINKS = (
    "a[href]:not([rel~=nofollow i]),area[href]:not([rel~=nofollow i]),iframe[src],frame[src],"
    # The rest of a list that goes on over many pages. Not rel=alternate: that is the same page in another form.
    "link[href][rel~=next i],link[href][rel~=prev i]"
)
_NAMED_DIRECTIVES = ("unavailable_after", "max-snippet", "max-image-preview", "max-video-preview")


@dataclass(frozen=True, slots=True)
class _Head:
    base: Url
    title: str
    canonical: Url | None
    refresh: Url | None
    is_passed_on: bool
    robots: frozenset[str]


def _head(tree: LexborHTMLParser, url: Url) -> _Head:
    base = base_of(tree, url)
    title: str | None = None
    canonical = refresh = None
    is_passed_on = False
    robots: frozenset[str] = frozenset()
    for node in tree.css("title,meta[content],link[href]"):
        attributes = node.attrs
        tag = node.tag
        if tag == "title":
            if title is None and not _is_within(node, "svg"):
                title = " ".join(node.text().split()).replace("\0", "")[:MAX_TITLE_CHARS]
        elif tag == "link":
            if canonical is None and "canonical" in (attributes.get("rel") or "").lower().split():
                canonical = normalise(attributes.get("href") or "", base=base)
        elif (attributes.get("name") or "").strip().lower() == "robots":
            robots |= _robots(attributes.get("content") or "")
        elif refresh is None and (attributes.get("http-equiv") or "").strip().lower() == "refresh":
            # Within noscript it is for browsers that run no script, to be told to get one that does.
            target = _REFRESH.match(attributes.get("content") or "")
            if target and not _is_within(node, "noscript"):
                refresh = normalise((target[2] or target[3] or target[4] or "").strip(), base=base)
                is_passed_on = refresh not in {None, url} and target[1] != "" and not target[1].strip("0")
    return _Head(base, title or "", canonical, None if refresh == url else refresh, is_passed_on, robots)


def _beside(tree: LexborHTMLParser) -> str:
    told = (node.attrs for node in tree.css(f"img,{TOLD}"))
    return "\n".join(" ".join(each.get(name) or "" for name in ("content", "alt", "src")) for each in told)


def base_of(tree: LexborHTMLParser, url: Url) -> Url:
    found = tree.css_first("base[href]")
    return (normalise(found.attrs.get("href") or "", base=url) if found is not None else None) or url


def _links(tree: LexborHTMLParser, head: _Head) -> tuple[Url, ...]:
    hrefs: list[str] = []
    for node in tree.css(_LINKS):
        attributes = node.attrs
        hrefs.append(attributes.get("href") or attributes.get("src") or "")
    if head.refresh is not None:
        hrefs.append(head.refresh)
    return normalise_all(hrefs, base=head.base)


def _robots(directives: str) -> frozenset[str]:
    """Which of noindex and nofollow hold for everybody; those after "otherbot:" hold for that one only."""
    found = set()
    for part in directives.lower().split(","):
        agent, colon, rest = part.partition(":")
        if colon and agent.strip() not in _NAMED_DIRECTIVES and agent.strip() != "*":
            break
        found.add((rest if colon else part).strip())
    if "none" in found:
        found |= {"noindex", "nofollow"}
    return frozenset(found & {"noindex", "nofollow"})


def _language(tree: LexborHTMLParser) -> str:
    root = tree.root
    language = (root.attrs.get("lang") or root.attrs.get("xml:lang") or "") if root is not None else ""
    return language.strip().replace("\0", "")[:MAX_LANGUAGE_CHARS]


def _is_within(node: LexborNode, tag: str) -> bool:
    parent = node.parent
    while parent is not None:
        if parent.tag == tag:
            return True
        parent = parent.parent
    return False


def read_document(
    body: bytes, kind: Literal["text", "xml", "json", "pdf", "binary"], *, url: Url, content_type: str
) -> tuple[str, Document]:
    """What a body says that is no web page, and its charset, empty where it has none. Never raises."""
    if kind == "binary":
        return "", Document()
    if kind == "pdf":
        return "", read_pdf(body, url=url)
    charset, source = decoded(body, content_type, kind)
    match kind:
        case "xml":
            return charset, read_xml(source, url=url)
        case "json":
            return charset, read_json(source)
        case "text":
            return charset, Document(text=collapsed(source.splitlines()))
        case _:
            assert_never(kind)
