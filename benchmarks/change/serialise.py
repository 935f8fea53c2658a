"""Rewrites that change the bytes of a page but not its content, as servers, minifiers and replicas do."""

import re
from collections.abc import Callable, Mapping
from random import Random

from benchmarks.change.dialect import pick
from benchmarks.change.elements import TAG
from benchmarks.change.widgets import Scene

_ATTRIBUTE = re.compile(r'\s+([\w:.-]+)="([^"]*)"')
_KEPT = re.compile(r"(<(pre|script|style|textarea)\b.*?</\2>)", re.DOTALL)
_BLOCK_END = re.compile(r"(</(?:p|div|ul|ol|dl|table|h[1-6]|section|li|dd|tr)>)\s*")
_SPACE = re.compile(r"(?<=[\w.,;>)])[ \n]+(?=[\w(<])")
# An end tag may be omitted where the next tag ends the element anyway (HTML, 13.1.2.4).
_OPTIONAL = re.compile(
    r"</li>(?=\s*(?:<li\b|</ul|</ol))|</td>(?=\s*(?:<t[dh]\b|</tr))|</tr>(?=\s*(?:<tr\b|</tbody|</table))"
    r"|</p>(?=\s*<(?:p|div|ul|ol|dl|table|h[1-6]|pre|section)\b)|</dd>(?=\s*(?:<d[td]\b|</dl))|</dt>(?=\s*<d[td]\b)"
)
_BARE = re.compile(r"[\w./-]+")
_LINK = re.compile(r'(<a\b[^<>]*?\bhref=")(?!#|https?:|mailto:|/click)([^"#]*)')
_ASSET = re.compile(r'(<(?:img|script|link)\b[^<>]*?\b(?:src|href)="/?[^"?]*\.(?:jpg|gif|png|js|css))(?=")')


def attribute_order(html: str, scene: Scene) -> str:
    rng = scene.now()

    def shuffled(match: re.Match[str]) -> str:
        attributes = _ATTRIBUTE.findall(match[3])
        if len(attributes) < 2 or _ATTRIBUTE.sub("", match[3]).strip():
            return match[0]
        rng.shuffle(attributes)
        return "<" + match[2] + "".join(f' {name}="{value}"' for name, value in attributes) + ">"

    return TAG.sub(shuffled, html)


def white_space(html: str, scene: Scene) -> str:
    """Vary white space where it has no meaning: between blocks, and next to other white space."""
    rng = scene.now()
    between, within = rng.choice(("\n", "\n\n  ", " ")), rng.choice((" ", "\n", "\n    "))
    parts = _KEPT.split(html)
    for at in range(0, len(parts), 3):  # text, kept element, its tag, text, ...
        spaced = _SPACE.sub(lambda _: within if rng.random() < 0.2 else " ", parts[at])
        parts[at] = _BLOCK_END.sub(lambda match: match[1] + between, spaced)
    return "".join(part for at, part in enumerate(parts) if at % 3 != 2)


def minified(html: str, scene: Scene) -> str:
    """Serialize the page differently: optional end tags and quotes, case of tags, character references."""
    rng = scene.now()
    if rng.random() < 0.7:
        html = _OPTIONAL.sub("", html)
    if rng.random() < 0.7:
        html = TAG.sub(_unquoted, html)
    if rng.random() < 0.4:
        html = TAG.sub(lambda match: f"<{match[1]}{match[2].upper()}{match[3]}>", html)
    if rng.random() < 0.7:
        html = html.replace("&nbsp;", "&#160;").replace("&amp;", "&#38;").replace("&lt;", "&#x3c;")
    return html


def _unquoted(match: re.Match[str]) -> str:
    def bare(attribute: re.Match[str]) -> str:
        is_bare = _BARE.fullmatch(attribute[2]) and not attribute[2].endswith("/")
        return f" {attribute[1]}={attribute[2]}" if is_bare else attribute[0]

    return f"<{match[1]}{match[2]}{_ATTRIBUTE.sub(bare, match[3])}>"


def session_links(html: str, scene: Scene) -> str:
    """Add a session id to every link, as a query or, in Java's style, in the path."""
    name, value = pick(scene.always(), scene.dialect.session), f"{scene.now().getrandbits(96):024x}"
    sign = "?" if scene.always("sign").random() < 0.6 else ";"
    return _LINK.sub(lambda match: f"{match[1]}{match[2]}{sign}{name}={value}", html)


def asset_query(html: str, scene: Scene) -> str:
    """Add a version to the address of each image, script and style sheet, by daily build or by request."""
    is_daily = scene.always().random() < 0.5
    value = Random(f"{scene.section}/{scene.at.date()}") if is_daily else scene.now()
    return _ASSET.sub(rf"\g<1>?v={value.getrandbits(32):08x}", html)


REWRITES: Mapping[str, Callable[[str, Scene], str]] = {
    "session-links": session_links,
    "asset-query": asset_query,
    "attribute-order": attribute_order,
    "white-space": white_space,
    "minified": minified,
}
"""The rewrites in the order in which they are applied. Removal of quotes comes last because the others match quotes."""

CHARSETS = (
    ("utf-8", "utf-8"),
    ("utf-8-sig", "utf-8"),
    ("utf-16", "utf-16"),
    ("iso-8859-1", "iso-8859-1"),
    ("cp1251", "windows-1251"),
)


def encoded(html: str, scene: Scene, *, varies: bool) -> tuple[bytes, str]:
    """Return the body and its Content-Type. If the charset varies, missing characters become numeric references."""
    codec, label = CHARSETS[scene.now("charset").randrange(len(CHARSETS))] if varies else CHARSETS[0]
    said = html.replace('<meta charset="utf-8">', f'<meta charset="{label}">', 1)
    return said.encode(codec, "xmlcharrefreplace"), f"text/html; charset={label}"
