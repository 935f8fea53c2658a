"""Which version of the page reader runs."""

import crawler.engine  # reads RECRAWL_READER
from crawler.core.page.compiled_scan import describe_reader
from crawler.core.page.main_content.compiled_scores import load_scoring_library


def describe_page_reader() -> str:
    """Return which version reads pages: "compiled", or "Python, because ..."; and whether only one part of it is."""
    reader = describe_reader()
    is_partial = reader == "compiled" and load_scoring_library() is None
    return f"{reader}, but Python chooses the content" if is_partial else reader
