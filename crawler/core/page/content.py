"""Extract the content of a body: its text, its links and its directives for crawlers. Any bytes can be read."""

import re
from dataclasses import dataclass, replace
from enum import StrEnum

from selectolax.lexbor import LexborHTMLParser

from crawler.core.http.urls import Url, normalise, normalise_all
from crawler.core.page.blocks import text_and_main_of, without_frame
from crawler.core.page.charset import decoded
from crawler.core.page.document import Document, PickledAsCall, ReadDocument, collapsed, read_json
from crawler.core.page.html import Markup, above_of, base_of, parse_html
from crawler.core.page.lists.feeds import read_xml
from crawler.core.page.media_type import Kind, kind_of
from crawler.core.page.script_signs import ScriptSign, script_signs_of

MAX_TITLE_CHARS = 1024
TAIL_CHARS = 1024
FEED_TYPES = frozenset({"application/rss+xml", "application/atom+xml", "application/rdf+xml"})
MOST_FEEDS = 8  # of one page
MAX_LANGUAGE_CHARS = 35  # RFC 5646, 4.4.1


class HtmlEnd(StrEnum):
    """The way in which the body of a web page ends."""

    CLOSED = "closed"  # with a closing tag of html or body
    OPEN = "open"  # without one, which the standard allows
    TORN = "torn"  # within a tag, which the standard does not allow


@dataclass(frozen=True, slots=True)
class PageContent(PickledAsCall):
    """The content of a body.

    text: all that a reader sees, one block per line, whitespace collapsed.  main: the text without menus, footers and
    the like, or all of it where these cannot be told.  Both are empty for a body without text, or that could not be
    read as a whole: then the digest of the bytes is what counts.
    images_and_meta: names and texts of its images, and the descriptions in its head.
    links: distinct, in order of the page, without those marked nofollow.  canonical, refresh: targets that the head
    names; refresh is also among the links.  is_passed_on: the refresh comes at once, as a redirect.
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
    is_passed_on: bool = False
    noindex: bool = False
    nofollow: bool = False
    language: str = ""
    charset: str = ""
    kind: Kind = "binary"
    html_end: HtmlEnd = HtmlEnd.CLOSED
    has_password_field: bool = False
    script_signs: tuple[ScriptSign, ...] = ()


def extract(
    body: bytes,
    *,
    url: Url,
    content_type: str,
    robots_tag: str | None = None,
    refresh: str | None = None,
    markup: Markup | None = None,
    reader: ReadDocument | None = None,
) -> PageContent:
    """Read a body of any kind. Never raises, whatever the bytes; but what a given reader raises.

    url: where it was found, for its relative links.  content_type, robots_tag, refresh: the HTTP headers, as they
    came.
    markup: of a web page, where it was parsed already.  reader: of this body, which then is no web page.
    A page that is made to be too costly to parse is read only as far as that is affordable (page/html).
    """
    stated = _refresh_of(refresh or "", base=url, url=url)
    if reader is None and kind_of(body, content_type) == "html":
        content = _read_html(body, markup or parse_html(body, content_type), url=url, stated=stated)
    else:
        content = _read_other(body, url=url, content_type=content_type, reader=reader)
        links = tuple(dict.fromkeys((*content.links, *filter(None, stated[:1]))))
        content = replace(content, links=links, refresh=stated[0], is_passed_on=stated[1])
    directives = _robots(robots_tag or "")
    if not directives:
        return content
    noindex, nofollow = content.noindex or "noindex" in directives, content.nofollow or "nofollow" in directives
    return replace(content, noindex=noindex, nofollow=nofollow)


def _read_html(body: bytes, markup: Markup, *, url: Url, stated: tuple[Url | None, bool]) -> PageContent:
    """The content of a web page. stated: where the server says that it leads, which comes before what the page says."""
    tree = markup.tree
    base = base_of(tree, url)
    head = _read_head(tree, base, url)
    if stated[0] is not None:
        head = replace(head, refresh=stated[0], is_passed_on=stated[1])
    text, main = text_and_main_of(tree)
    hrefs = [found.get("href") or found.get("src") or "" for found in (node.attrs for node in tree.css(_LINKS))]
    links = normalise_all([*hrefs, *filter(None, [head.refresh])], base=base)
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
        html_end=html_end_of(markup.source),
        has_password_field=has_password_field_in(tree),
        script_signs=script_signs_of(body, markup, text=text, main=main, links=links, base=base),
    )


def main_html(body: bytes, content_type: str, *, url: Url) -> str:
    """The main content of a web page as HTML, without what frames it, with absolute links; empty for one without any.

    Never raises, whatever the bytes; a page that is made to be too costly is read as far as `extract` reads it.
    """
    tree = parse_html(body, content_type).tree
    base = base_of(tree, url)
    without_frame(tree)
    for node in tree.css("a[href],img[src]"):
        name = "src" if node.tag == "img" else "href"
        node.attrs[name] = normalise(node.attrs.get(name) or "", base=base) or ""
    return (tree.body.html or "") if tree.body is not None else ""


def html_end_of(source: str) -> HtmlEnd:
    """The way in which a web page ends. Comments of caches and proxies may come after its end."""
    tail = source[-TAIL_CHARS:].rstrip()
    if tail.rfind("<") > tail.rfind(">"):
        return HtmlEnd.TORN
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
    is_passed_on = False
    directives: frozenset[str] = frozenset()
    feeds: list[str] = []
    for node in tree.css("title,meta[content],link[href]"):
        attributes = node.attrs
        tag = node.tag
        if tag == "title":
            if title is None and not any(above.tag == "svg" for above in above_of(node)):
                title = " ".join(node.text().split()).replace("\0", "")[:MAX_TITLE_CHARS]
        elif tag == "link":
            relations = (attributes.get("rel") or "").lower().split()
            if "alternate" in relations and (attributes.get("type") or "").strip().lower() in FEED_TYPES:
                feeds.append(attributes.get("href") or "")
            if canonical is None and "canonical" in relations:
                canonical = normalise(attributes.get("href") or "", base=base)
        elif (attributes.get("name") or "").strip().lower() == "robots":
            directives |= _robots(attributes.get("content") or "")
        elif refresh is None and (attributes.get("http-equiv") or "").strip().lower() == "refresh":
            # Within noscript it is for browsers that run no script, to be told to get one that does.
            is_said = not any(above.tag == "noscript" for above in above_of(node))
            text = attributes.get("content") or "" if is_said else ""
            refresh, is_passed_on = _refresh_of(text, base=base, url=url)
    return PageContent(
        title=title or "",
        feeds=normalise_all(feeds[:MOST_FEEDS], base=base),
        canonical=canonical,
        refresh=refresh,
        is_passed_on=is_passed_on,
        noindex="noindex" in directives,
        nofollow="nofollow" in directives,
    )


def _refresh_of(text: str, *, base: Url, url: Url) -> tuple[Url | None, bool]:
    """Where a refresh leads, None for the page itself and for nowhere; and whether it does so at once."""
    found = _REFRESH.match(text)
    target = normalise((found[2] or found[3] or found[4] or "").strip(), base=base) if found else None
    if found is None or target in {None, url}:
        return None, False
    return target, found[1] != "" and not found[1].strip("0")


def _robots(directives: str) -> frozenset[str]:
    """The directives noindex and nofollow that hold for everybody; those after "otherbot:" hold for that one only."""
    found = set()
    for part in directives.lower().split(","):
        agent, colon, rest = part.partition(":")
        if colon and agent.strip() not in _NAMED_DIRECTIVES and agent.strip() != "*":
            break
        found.add((rest if colon else part).strip())
    if "none" in found:
        found |= {"noindex", "nofollow"}
    return frozenset(found & {"noindex", "nofollow"})


def _read_other(body: bytes, *, url: Url, content_type: str, reader: ReadDocument | None) -> PageContent:
    """The content of a body that is no web page. Never raises, but what a given reader raises."""
    kind = kind_of(body, content_type) if reader is None else "text"
    charset, document = "", Document()
    if reader is not None:
        document = reader(body, url=url, content_type=content_type)
    elif kind == "pdf":
        from crawler.core.page.pdf import read_pdf  # noqa: PLC0415  its library takes long to load, and PDFs are rare

        document = read_pdf(body, url=url)
    elif kind != "binary":
        charset, source = decoded(body, content_type, kind)
        if kind == "xml":
            document = read_xml(source, url=url)
        else:
            document = read_json(source) if kind == "json" else Document(text=collapsed(source.splitlines()))
    return PageContent(
        title=document.title[:MAX_TITLE_CHARS],
        text=document.text,
        main=document.text if document.main is None else document.main,
        links=document.links,
        charset=charset,
        kind=kind,
    )
