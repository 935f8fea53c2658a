"""The content of a body that is not a web page."""

from collections.abc import Iterable
from dataclasses import dataclass

from crawler.core.http import Url


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


def collapsed(lines: Iterable[str]) -> str:
    """The lines that are not empty, as one text, with white space collapsed; no NUL."""
    text = "\n".join([line for line in [" ".join(line.split()) for line in lines] if line])
    return text.replace("\0", "") if "\0" in text else text
