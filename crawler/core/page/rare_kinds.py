"""What reads kinds of bodies that are rare is imported with the first of them, unless somebody wants it before."""

from importlib import import_module

RARE = (
    "crawler.core.page.pdf",
    "crawler.core.page.xpath",
    "lxml.etree",
    "re2",
    "resiliparse.parse.encoding",
)


def load_rare_kinds() -> None:
    """Import what reads PDFs, lists, XPath, old charsets and expressions: for a process whose memory is then bound."""
    for name in RARE:
        import_module(name)
