"""What a body says: its text, its links and what it asks of crawlers. Any bytes can be read."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from selectolax.lexbor import LexborHTMLParser, LexborNode

from crawler.core.documents import read_document
from crawler.core.kinds import Kind, kind_of
from crawler.core.lines import collapsed
from crawler.core.markup import Markup, parsed
from crawler.core.urls import Url, normalise, normalise_all

MAIN_SHARE = 0.25  # of the whole text; with less, the extractor has lost the page rather than found its content
MAX_TITLE_CHARS = 1024
TAIL_CHARS = 1024
MAX_LANGUAGE_CHARS = 35  # RFC 5646, 4.4.1


class Ending(StrEnum):
    """How the body of a web page ends."""

    CLOSED = "closed"
    OPEN = "open"  # which the standard allows
    TORN = "torn"  # within a tag, which it does not


@dataclass(frozen=True, slots=True)
class Reading:
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
    ending: Ending = Ending.CLOSED
    asks_password: bool = False


def read(
    body: bytes, *, url: Url, content_type: str, robots_tag: str | None = None, markup: Markup | None = None
) -> Reading:
    """Read a body of any kind. Never raises, whatever the bytes.

    url: where it was found, for its relative links.  content_type, robots_tag: the HTTP headers, as they came.
    markup: of a web page, where it was parsed already.
    A page that is made to be too costly to parse is read only as far as that is affordable (core/markup).
    """
    said = _robots(robots_tag) if robots_tag else frozenset()
    kind = kind_of(body, content_type)
    if kind != "html":
        charset, document = read_document(body, kind, url=url, content_type=content_type)
        return Reading(
            title=document.title[:MAX_TITLE_CHARS],
            text=document.text,
            main=document.text if document.main is None else document.main,
            links=document.links,
            noindex="noindex" in said,
            nofollow="nofollow" in said,
            charset=charset,
            kind=kind,
        )
    markup = markup or parsed(body, content_type)
    tree = markup.tree
    head = _head(tree, url)
    blocks = list(_blocks(tree))
    text = collapsed(block for block, _ in blocks)
    said |= head.robots
    return Reading(
        title=head.title,
        text=text,
        main=_main(blocks, text),
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
        ending=ending_of(markup.source),
        asks_password=tree.css_first("input[type=password i]") is not None,
    )


_CLOSED = re.compile(r"(?i)</(?:html|body)\s*>")


def ending_of(source: str) -> Ending:
    """Whether a web page ends as it should. Comments of caches and proxies may come after its end."""
    tail = source[-TAIL_CHARS:].rstrip()
    if tail.rfind("<") > tail.rfind(">"):
        return Ending.TORN
    return Ending.CLOSED if _CLOSED.search(tail) else Ending.OPEN


# Its text

BLOCK_TAGS = frozenset(
    {"address", "article", "aside", "blockquote", "body", "caption", "center", "dd", "details", "dialog", "dir", "div"}
    | {"dl", "dt", "fieldset", "figcaption", "figure", "footer", "form", "frameset", "h1", "h2", "h3", "h4", "h5", "h6"}
    | {"header", "hgroup", "hr", "html", "legend", "li", "listing", "main", "menu", "nav", "ol", "optgroup", "option"}
    | {"p", "plaintext", "pre", "search", "section", "select", "summary", "table", "tbody", "td", "tfoot", "th"}
    | {"thead", "tr", "ul", "xmp"}
)
UNSEEN_TAGS = frozenset(
    {"annotation", "audio", "canvas", "desc", "head", "iframe", "metadata", "noembed", "noframes", "noscript", "object"}
    | {"script", "style", "template", "textarea", "title", "video"}
)
# What frames the content, by the standard's own elements and roles. A header within the content belongs to it.
_FRAME_TAGS = frozenset({"nav", "footer", "aside", "search"})
_CONTENT_TAGS = frozenset({"main", "article"})
_FRAME_ROLES = ",".join(
    f"[role={role} i]" for role in ("navigation", "banner", "contentinfo", "complementary", "search")
)
_NOT_SHOWN = re.compile(r"(?i)display\s*:\s*none")
_UNSEEN = 0  # in place of a block's number


def _tag_ids() -> tuple[int, int]:
    nodes = LexborHTMLParser("<p><br>text").css("p")[0].traverse(include_text=True)
    ids = {node.tag: node.tag_id for node in nodes}
    return ids["-text"], ids["br"]


TEXT_ID, BREAK_ID = _tag_ids()  # numbers compare three times faster than names, and there are hundreds of nodes


@dataclass(slots=True)
class _Outline:
    """The block that each element's own text belongs to, by their numbers, and where the blocks stand.

    roles: elements that say they frame the content.  framed, content: blocks within a frame, and within the content.
    """

    blocks: dict[int, int]
    roles: frozenset[int]
    framed: set[int]
    content: set[int]

    def block_of(self, node: LexborNode) -> int:
        """The block of an element's own text; learnt for all elements above it, too."""
        block = self.blocks.get(node.mem_id)
        return self._learn(node) if block is None else block

    def _learn(self, node: LexborNode) -> int:
        path: list[LexborNode] = []
        above: LexborNode | None = node
        block: int | None = None
        while above is not None and block is None:
            path.append(above)
            above = above.parent
            block = None if above is None else self.blocks.get(above.mem_id)
        block = -1 if block is None else block  # outside of all blocks
        for element in reversed(path):
            tag = element.tag
            if block != _UNSEEN and tag in UNSEEN_TAGS:
                block = _UNSEEN
            elif block != _UNSEEN and tag in BLOCK_TAGS:
                block = self._enter(element.mem_id, tag, above=block)
            self.blocks[element.mem_id] = block
        return block

    def _enter(self, block: int, tag: str, *, above: int) -> int:
        if above in self.content or tag in _CONTENT_TAGS:
            self.content.add(block)
        is_frame = tag in _FRAME_TAGS or block in self.roles or (tag == "header" and block not in self.content)
        if above in self.framed or is_frame:
            self.framed.add(block)
        return block


def _blocks(tree: LexborHTMLParser) -> Iterator[tuple[str, bool]]:
    """The visible text of each block as it is written, or nothing but space between blocks; and whether it is framing.

    A block is what stands in one block element, up to the next such element within it or a <br>.
    """
    root = tree.root
    if root is None:
        return
    roles = frozenset(node.mem_id for node in tree.css(_FRAME_ROLES))
    outline = _Outline(dict.fromkeys(not_shown(tree), _UNSEEN), roles, set(), set())
    blocks = outline.blocks
    current = _UNSEEN
    pieces: list[str] = []
    for node in root.traverse(include_text=True):
        kind = node.tag_id
        if kind == TEXT_ID:
            text = node.text_content or ""
            if text.isspace():  # wherever it belongs, it can only be between words or at an end
                pieces.append(" ")
                continue
            parent = node.parent
            assert parent is not None  # it was reached from the root
            block = blocks.get(parent.mem_id)
            if block is None:
                block = outline.block_of(parent)
            if block == _UNSEEN:
                continue
            if block != current:
                yield "".join(pieces), current in outline.framed
                pieces.clear()
                current = block
            pieces.append(text)
        elif kind == BREAK_ID:
            yield "".join(pieces), current in outline.framed
            pieces.clear()
    yield "".join(pieces), current in outline.framed


def not_shown(tree: LexborHTMLParser) -> Iterator[int]:
    """The numbers of elements that say themselves that they are not shown."""
    for node in tree.css('[hidden],[style*="display" i]'):
        if "hidden" in node.attrs or _NOT_SHOWN.search(node.attrs.get("style") or ""):
            yield node.mem_id


def _main(blocks: list[tuple[str, bool]], text: str) -> str:
    """The text without what frames it; all of it where the frame is nearly everything."""
    found = collapsed(block for block, is_framing in blocks if not is_framing)
    return found if len(found) >= MAIN_SHARE * len(text) else text


# Its head and its links

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
