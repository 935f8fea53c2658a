"""What a body that is not a web page says."""

from dataclasses import dataclass

from crawler.core.http.urls import Url


@dataclass(frozen=True, slots=True)
class Document:
    """Its title, its text and where it leads.

    text: one line for each piece (core/lines); empty for what cannot be read as a whole.  main: the same without what
    tells when and by what the file was made; None where nothing does.  links: distinct, in their order.
    """

    title: str = ""
    text: str = ""
    main: str | None = None
    links: tuple[Url, ...] = ()
