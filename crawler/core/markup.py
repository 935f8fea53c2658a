"""What it would cost to build a tree from some markup, found out before anybody tries.

HTML as browsers parse it is quadratic in the depth of open elements and in the attributes of one tag, and in twenty
kilobytes of unclosed formatting elements there are two million nodes. No honest page comes near; a page that does is
read as far as can be afforded.
"""

import re
from collections import Counter

FREE_TAGS = 1000  # with fewer, nothing costs more than a second and 100 MB, and to count would not pay
FREE_CHARS = 65_536
TREE_STEPS = 20_000_000  # a tenth of a second in the parser
FORMATTED_NODES = 1_000_000  # 370 MB
MANY_ATTRIBUTES_CHARS = 2000  # no shorter tag has so many attributes that it matters

_FORMATTING = frozenset(
    {"a", "b", "big", "code", "em", "font", "i", "nobr", "s", "small", "strike", "strong", "tt", "u"}
)
# Elements without content, and those that the next one of their kind ends: no depth comes of them.
_SHALLOW = frozenset(
    {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "track", "wbr"}
    | {"body", "head", "html", "li", "dt", "dd", "optgroup", "option", "p", "rp", "rt"}
    | {"tbody", "td", "tfoot", "th", "thead", "tr"}
)
_RAW = ("iframe", "noembed", "noframes", "script", "style", "textarea", "title", "xmp")  # in them a tag is text
_RAW_ENDS = {name: re.compile(f"(?i)</{name}") for name in _RAW}
_TAG = re.compile(
    r"""<(?: !-- | (/?) ([a-zA-Z][^\s/>]*+) ( [^>=]*+ (?: = (?: \s*+ (?: "[^"]*+" | '[^']*+' ) )?+ [^>=]*+ )*+ ) )""",
    re.VERBOSE,
)
_COMMENT_ENDS = re.compile("--!?>")


def affordable(html: str) -> int:
    """How many characters of a page, from its start, can be read in bounded time and memory: nearly always all.

    Estimated from the tags alone: the steps are the sum, over all tags, of the elements that are then open.
    """
    if len(html) <= FREE_CHARS and html.count("<") <= FREE_TAGS:
        return len(html)
    opened: Counter[str] = Counter()
    depth = formatting = steps = nodes = position = 0
    while tag := _TAG.search(html, position):
        position = tag.end()
        closing, name, rest = tag.groups()
        name = (name or "").lower()  # none: a comment
        if closing:
            if opened[name]:
                opened[name] -= 1
                depth -= 1
                formatting -= name in _FORMATTING
        elif not name or name in _RAW_ENDS:
            end = (_RAW_ENDS[name] if name else _COMMENT_ENDS).search(html, position)
            if end is None:
                break
            position = end.end()
        elif name not in _SHALLOW and not (rest.endswith("/") and (opened["svg"] or opened["math"])):
            opened[name] += 1
            depth += 1
            formatting += name in _FORMATTING
        if rest and len(rest) > MANY_ATTRIBUTES_CHARS:
            steps += len(rest.split()) ** 2 // 4
        steps += depth
        nodes += formatting
        if steps > TREE_STEPS or nodes > FORMATTED_NODES:
            return tag.start()
    return len(html)
