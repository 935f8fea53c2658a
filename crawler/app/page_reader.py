"""Which version of the page reader runs."""

import crawler.engine  # reads RECRAWL_READER
from crawler.core.page.compiled_scan import describe_reader


def describe_page_reader() -> str:
    """Return which version reads pages: "compiled", or "Python, because ..."."""
    return describe_reader()
