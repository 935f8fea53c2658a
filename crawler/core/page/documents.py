"""Reading what is not HTML, each kind by what it is made of."""

from typing import Literal, assert_never

from crawler.core.http.urls import Url
from crawler.core.page.charset import decoded
from crawler.core.page.document import Document
from crawler.core.page.feeds import read_xml
from crawler.core.page.json_text import read_json
from crawler.core.page.lines import collapsed
from crawler.core.page.pdf import read_pdf


def read_document(
    body: bytes, kind: Literal["text", "xml", "json", "pdf", "binary"], *, url: Url, content_type: str
) -> tuple[str, Document]:
    """What a body says that is no web page, and its charset, empty where it has none. Never raises."""
    if kind == "binary":
        return "", Document()
    if kind == "pdf":
        return "", read_pdf(body, url=url)
    charset, source = decoded(body, content_type, kind)
    match kind:
        case "xml":
            return charset, read_xml(source, url=url)
        case "json":
            return charset, read_json(source)
        case "text":
            return charset, Document(text=collapsed(source.splitlines()))
        case _:
            assert_never(kind)
