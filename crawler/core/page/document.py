"""What a body that is not a web page says."""

from collections.abc import Iterable
from dataclasses import dataclass

from crawler.core.http import Url


@dataclass(frozen=True, slots=True)
class Document:
    """Its title, its text and where it leads.

    text: one line for each piece; empty for what cannot be read as a whole.  main: the same without what
    tells when and by what the file was made; None where nothing does.  links: distinct, in their order.
    """

    title: str = ""
    text: str = ""
    main: str | None = None
    links: tuple[Url, ...] = ()


def collapsed(lines: Iterable[str]) -> str:
    """One line for each that holds anything, white space collapsed; no NUL."""
    text = "\n".join([line for line in [" ".join(line.split()) for line in lines] if line])
    return text.replace("\0", "") if "\0" in text else text
