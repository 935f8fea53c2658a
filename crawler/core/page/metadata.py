"""What a web page says about itself for programs: author, dates, description, and its JSON-LD."""

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from crawler.core.page.document import collapse_spaces
from crawler.core.page.scan import Record, RecordKind

MAX_CHARS = 1000  # of one value
MAX_JSON_LD_CHARS = 20_000  # of the JSON-LD of one page; further items are left out
MAX_JSON_LD_DEPTH = 20  # of an item; deeper ones are left out

# The names of meta elements and of JSON-LD properties, the most reliable first.
_META_NAMES = {
    "author": ("author", "article:author", "dc.creator", "dcterms.creator", "parsely-author", "sailthru.author"),
    "published": ("article:published_time", "datepublished", "dc.date", "dcterms.created", "pubdate", "date"),
    "modified": ("article:modified_time", "og:updated_time", "datemodified", "dcterms.modified", "last-modified"),
    "description": ("description", "og:description", "dc.description", "twitter:description"),
    "site": ("og:site_name", "application-name"),
    "image": ("og:image", "twitter:image"),
    "type": ("og:type",),
}
_JSON_LD_NAMES = {"author": "author", "published": "datePublished", "modified": "dateModified"}
_JSON_LD_NAMES |= {"description": "description"}

# Postgres stores neither in JSON.
_NUL_ESCAPE = "\\u0000"
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


def read_metadata(records: Sequence[Record]) -> dict[str, Any]:
    """Return the metadata of a page from its records, as values for JSON; only what the page states.

    Keys: author, published, modified, description, site, image, type: texts as written, of at most MAX_CHARS.
    json_ld: the page's JSON-LD items, as objects.
    """
    stated: dict[str, str] = {}
    items: list[Any] = []
    chars_left = MAX_JSON_LD_CHARS
    for kind, values in records:
        if kind == RecordKind.META:
            content, name, _, group, _ = values
            for each in filter(None, (name.strip().lower(), group.strip().lower())):
                stated.setdefault(each, _clean(content))
        elif kind == RecordKind.SCRIPT and values[0].strip().lower() == "application/ld+json":
            chars_left -= len(values[1])
            items += parse_json_ld(values[1]) if chars_left >= 0 else ()
    found = {key: next(filter(None, map(stated.get, names)), "") for key, names in _META_NAMES.items()}
    described = [item for item in items if "datePublished" in item or "author" in item] or items
    for key, name in _JSON_LD_NAMES.items():
        found[key] = found[key] or next(filter(None, (_get_text(item.get(name)) for item in described)), "")
    metadata: dict[str, Any] = {key: text for key, text in found.items() if text}
    return metadata | ({"json_ld": items} if items else {})


def _remove_nuls(value: Any) -> Any:
    """Return a JSON value without NUL characters in its texts and names."""
    if isinstance(value, str):
        return value.replace("\0", "")
    if isinstance(value, list):
        return [_remove_nuls(each) for each in value]
    return {_remove_nuls(key): _remove_nuls(each) for key, each in value.items()} if isinstance(value, dict) else value


def parse_json_ld(source: str) -> Iterator[Mapping[str, Any]]:
    """Yield the items of a JSON-LD script; none if it is not valid JSON, or too deep."""
    try:
        source = source.replace("\0", "")
        value = json.loads(source, parse_constant=str, parse_float=_parse_float)
        if _SURROGATE.search(source):
            value = json.loads(json.dumps(value, ensure_ascii=False).encode("utf-8", "replace"))
        _check_depth(value, MAX_JSON_LD_DEPTH)
        value = _remove_nuls(value) if _NUL_ESCAPE in source else value
    except (ValueError, RecursionError):
        return
    for item in value if isinstance(value, list) else [value]:
        if isinstance(item, dict):
            graph = item.get("@graph")
            yield from (each for each in (graph if isinstance(graph, list) else [item]) if isinstance(each, dict))


def _parse_float(text: str) -> float | str:
    """Return a number, or its text if it is too large: Postgres stores no infinite number in JSON."""
    return number if math.isfinite(number := float(text)) else text


def _check_depth(value: object, depth: int) -> None:
    if depth == 0:
        raise ValueError("too deep")
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for each in inner:
        _check_depth(each, depth - 1)


def _get_text(value: object) -> str:
    """Return a property's text: itself, or the name of the first object in it."""
    if isinstance(value, list):
        return ", ".join(filter(None, map(_get_text, value[:10])))[:MAX_CHARS]
    if isinstance(value, dict):
        value = value.get("name")
    return _clean(value) if isinstance(value, str) else ""


def _clean(text: str) -> str:
    return collapse_spaces(text.replace("\0", ""))[:MAX_CHARS]
