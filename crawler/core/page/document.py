"""The content of a body that is not a web page."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from crawler.core.http.urls import Url, normalise_all

PART_CHARS = 1 << 17
_PART_END = re.compile(r"\s")


@dataclass(frozen=True, slots=True)
class Document:
    """The title, text and links of a body that is not a web page.

    text: one line for each block (see `collapsed`); empty for a body that cannot be read as a whole.
    main: the text without the lines that say when and by which program the file was made; None where there are none.
    links: distinct, in their order.
    """

    title: str = ""
    text: str = ""
    main: str | None = None
    links: tuple[Url, ...] = ()


class ReadDocument(Protocol):
    """A reader of bodies of some media type; it raises what it likes."""

    def __call__(self, body: bytes, *, url: Url, content_type: str) -> Document: ...


def document_of(text: str, *, title: str, links: Iterable[str], url: Url) -> Document:
    """A Document of what somebody else has read: white space collapsed, links made absolute, nothing that is no text.

    url: where the body was found.
    """
    text, title = (each.encode("utf-8", "replace").decode() for each in (text, title))
    return Document(
        title=spaced(title).replace("\0", ""), text=collapsed(text.splitlines()), links=normalise_all(links, base=url)
    )


def collapsed(lines: Iterable[str]) -> str:
    """The lines that are not empty, as one text, with white space collapsed; no NUL."""
    return joined(map(spaced, lines))


def joined(lines: Iterable[str]) -> str:
    """The lines that are not empty, as one text; no NUL."""
    text = "\n".join(filter(None, lines))
    return text.replace("\0", "") if "\0" in text else text


def spaced(text: str) -> str:
    """A text whose words stand one space apart. A long one is done in parts: its words apart take ten times as much."""
    if len(text) <= PART_CHARS:
        return " ".join(text.split())
    parts = []
    start = 0
    while start < len(text):
        end = _PART_END.search(text, start + PART_CHARS)
        parts.append(" ".join(text[start : end.end() if end else len(text)].split()))
        start = end.end() if end else len(text)
    return " ".join(part for part in parts if part)
