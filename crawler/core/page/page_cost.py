"""The cost of parsing a web page, estimated before the page is parsed.

Parsing HTML as browsers do takes quadratic time in the depth of open elements and in the attributes of one tag. Twenty
kilobytes of unclosed formatting elements yield two million nodes. No honest page comes near the bounds below. Of a page
beyond them, only the start is read.
"""

import re
from collections import Counter

# The cost of a page within both bounds is not estimated: it is at most a second and 100 MB.
FREE_TAGS = 1000
FREE_CHARS = 65_536
# Maximum estimates for any page:
TREE_STEPS = 20_000_000  # a tenth of a second of parsing
FORMATTED_NODES = 200_000  # copies of unclosed formatting elements, in 75 MB
READING_BYTES = 120_000_000  # of memory, for a page and everything built from it; two seconds
BYTES_PER_TAG = 500
BYTES_PER_CHAR = 8
MANY_ATTRIBUTES_CHARS = 2000  # shorter tags have too few attributes to matter

FORMATTING_TAGS = {"a", "b", "big", "code", "em", "font", "i", "nobr", "s", "small", "strike", "strong", "tt", "u"}
# Elements without content, and elements that the next one of their kind closes: they add no depth.
SHALLOW_TAGS = frozenset(
    {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "track", "wbr"}
    | {"body", "head", "html", "li", "dt", "dd", "optgroup", "option", "p", "rp", "rt"}
    | {"tbody", "td", "tfoot", "th", "thead", "tr"}
)
RAW_TAGS = ("iframe", "noembed", "noframes", "script", "style", "textarea", "title", "xmp")  # tags inside them are text
_TAG = re.compile(
    r"""<(?: !-- | (/?) ([a-zA-Z][^\s/>]*+) ( [^>=]*+ (?: = (?: \s*+ (?: "[^"]*+" | '[^']*+' ) )?+ [^>=]*+ )*+ ) )""",
    re.VERBOSE,
)
# Where elements with raw text end, by name; the empty name stands for comments.
_ENDS = {"": re.compile("--!?>"), **{name: re.compile(f"(?i)</{name}") for name in RAW_TAGS}}


def count_affordable_chars(html: str) -> int:
    """Return how many characters of a page, from its start, can be parsed in bounded time and memory; usually all.

    The estimate uses the tags and the length. The number of steps is the sum, over all tags, of the elements open at
    that point, plus a quadratic term for tags with many attributes.
    """
    if len(html) <= FREE_CHARS and html.count("<") <= FREE_TAGS:
        return len(html)
    max_tags = (READING_BYTES - BYTES_PER_CHAR * len(html)) // BYTES_PER_TAG
    opened: Counter[str] = Counter()
    depth = formatting = steps = nodes = count = 0
    tags = _TAG.finditer(html)
    while tag := next(tags, None):
        closing, name, rest = tag.groups("")
        name = name.lower()
        if closing:
            if opened[name]:
                opened[name] -= 1
                depth -= 1
                formatting -= name in FORMATTING_TAGS
        elif name in _ENDS and not (name and (opened["svg"] or opened["math"])):  # in drawings, tags in it are tags
            end = _ENDS[name].search(html, tag.end())
            if end is None:
                break
            tags = _TAG.finditer(html, end.end())
        elif name not in SHALLOW_TAGS and not (rest.endswith("/") and (opened["svg"] or opened["math"])):
            opened[name] += 1
            depth += 1
            formatting += name in FORMATTING_TAGS
        if len(rest) > MANY_ATTRIBUTES_CHARS:
            steps += len(rest.split()) ** 2 // 4
        steps += depth
        nodes += formatting
        count += not closing
        if count > max_tags or steps > TREE_STEPS or nodes > FORMATTED_NODES:
            return tag.start()
    return len(html)
